// SPDX-License-Identifier: BSD-3-Clause
// A buffer of several tensors, taken as if they lay in it in another way than they do.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/stored/stored.h"

namespace reshard {

class TakenAs {
 public:
  TakenAs(const Stored& side, StoredBufferId buffer);

  bool is_one_tensor() const { return order_.size() < 2; }
  // Whether the dims of some part are not in the order of memory.
  bool is_transposed() const { return is_transposed_; }
  // "[q | k | v]": in the order in which they begin.
  std::string text() const;
  // "rows of gate and up alternated".
  std::string alternating_text() const;

  // Where an element would be if the tensors lay one after another, each row-major.
  std::optional<std::int64_t> in_blocks(ModelTensorId tensor, const DimVector& index) const;
  // Where it would be if a row of each followed the other's; none if they differ in their rows.
  std::optional<std::int64_t> alternating(ModelTensorId tensor, const DimVector& index) const;

 private:
  const Stored& side_;
  bool is_transposed_ = false;
  std::vector<ModelTensorId> order_;
  std::map<ModelTensorId, std::vector<const StoredPart*>> parts_;  // each ascending by box
  std::map<ModelTensorId, std::int64_t> begin_, volume_;
};

}  // namespace reshard
