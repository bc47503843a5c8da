// SPDX-License-Identifier: BSD-3-Clause
// Tensors that lie flattened one after another over the ranks, taken for the reverse order: buckets
// of optimizers are filled from the last parameter, files are not.
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
  // Of all buffers that have the name of this one; none of it matters unless they are flat.
  FlatOrder(const Stored& side, std::string_view name, const std::vector<Rank>& ranks);

  bool is_flat() const { return !orders_.empty(); }
  // By order that is possible, whether an element would lie there if the tensors were in reverse.
  std::vector<bool> reversed(ModelTensorId tensor, const DimVector& index, Rank rank,
                             std::int64_t offset) const;

 private:
  using Begins = std::map<ModelTensorId, std::int64_t>;  // over all ranks

  bool find_begins(const std::vector<Rank>& ranks);
  void reverse(std::int64_t align);

  const Stored& side_;
  std::string_view name_;
  std::int64_t each_ = 0;             // elements of a rank
  std::map<Rank, std::int64_t> nth_;  // of the ranks
  Begins begins_;
  std::vector<Begins> orders_;  // reversed, by alignment
};

}  // namespace reshard
