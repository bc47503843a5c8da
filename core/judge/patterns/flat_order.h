// SPDX-License-Identifier: BSD-3-Clause
// Tensors that lie flattened one after another over the ranks, but are taken to be in reverse
// order: optimizers fill their buckets from the last parameter, files begin with the first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/judge/locations.h"
#include "core/stored/stored.h"

namespace reshard {

class FlatOrder {
 public:
  // Considers all buffers of this name on `ranks`; finds no order unless they are flat.
  FlatOrder(const Stored& side, std::string_view name, const std::vector<Rank>& ranks);

  bool is_flat() const { return !orders_.empty(); }
  // For each order that is possible, whether the element would be at this place of the rank if the
  // tensors lay in reverse.
  std::vector<bool> reversed(ModelTensorId tensor, const DimVector& index, Rank rank,
                             std::int64_t offset) const;

 private:
  using Begins = std::map<ModelTensorId, std::int64_t>;  // offsets over all ranks

  bool find_begins(const std::vector<Rank>& ranks);
  void reverse(std::int64_t align);

  const Stored& side_;
  std::string_view name_;
  std::int64_t each_ = 0;             // elements per rank
  std::map<Rank, std::int64_t> nth_;  // the place of each rank among `ranks`
  Begins begins_;
  std::vector<Begins> orders_;  // reversed orders, one for each alignment
};

}  // namespace reshard
