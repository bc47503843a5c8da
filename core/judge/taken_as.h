// SPDX-License-Identifier: BSD-3-Clause
// Computes where the elements of a buffer would be if its tensors were laid out in another way.
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
  // `ranks` are all ranks of the side.
  TakenAs(const Stored& side, StoredBufferId buffer, const std::vector<Rank>& ranks);

  bool is_one_tensor() const { return order_.size() < 2; }
  // Whether the dims of some part are not in memory order.
  bool is_transposed() const { return is_transposed_; }
  // "[q
  // k
  // v]", in the order in which the tensors begin.
  std::string text() const;
  // "gate and up".
  std::string names_text() const;

  // The offset of an element if the tensors lay one after another, each row-major.
  std::optional<std::int64_t> in_blocks(ModelTensorId tensor, const DimVector& index) const;
  // The offset of an element if each index of the first dim had its part of all tensors, each
  // row-major; none unless all tensors are stacks of equally many matrices.
  std::optional<std::int64_t> stacked(ModelTensorId tensor, const DimVector& index) const;
  // The offset of an element if the rows of the tensors alternated; none if their rows differ.
  std::optional<std::int64_t> alternating(ModelTensorId tensor, const DimVector& index) const;
  // The offset of an element if the tensors were joined first and then cut by rows for the ranks;
  // none if another rank would have it.
  std::optional<std::int64_t> joined(ModelTensorId tensor, const DimVector& index) const;
  // A dim along which the buffer's one tensor, cut into as many pieces as it is along cut_dim(),
  // would have the element at that offset; -1 if there is none.
  int cut_along(ModelTensorId tensor, const DimVector& index, std::int64_t offset) const;
  int cut_dim() const { return cut_dim_; }
  // Where this rank's rows would begin in that case, counted in elements of all tensors.
  std::int64_t joined_begin() const { return piece_ * size_; }

 private:
  void find_cut(const StoredPart& part);

  const Stored& side_;
  StoredBufferId buffer_;
  bool is_transposed_ = false;
  int cut_dim_ = -1;  // the one dim that its only part, row-major, is cut along evenly
  std::int64_t cuts_ = 0, cut_ = 0;  // how many pieces, and which of them
  std::vector<ModelTensorId> order_;
  std::map<ModelTensorId, std::vector<const StoredPart*>> parts_;  // each list ascending by box
  std::map<ModelTensorId, std::int64_t> begin_, volume_;
  std::int64_t size_ = 0;   // of all parts
  std::int64_t piece_ = 0;  // which piece of the ranks' buffers of this name, by their first rows
};

}  // namespace reshard
