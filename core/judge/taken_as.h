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
  // `ranks` are those of the side.
  TakenAs(const Stored& side, StoredBufferId buffer, const std::vector<Rank>& ranks);

  bool is_one_tensor() const { return order_.size() < 2; }
  // Whether the dims of some part are not in the order of memory.
  bool is_transposed() const { return is_transposed_; }
  // "[q | k | v]": in the order in which they begin.
  std::string text() const;
  // "gate and up".
  std::string names_text() const;

  // Where an element would be if the tensors lay one after another, each row-major.
  std::optional<std::int64_t> in_blocks(ModelTensorId tensor, const DimVector& index) const;
  // Where it would be if each index of the first dim had its part of all tensors, each row-major;
  // none if they are no stacks of as many matrices.
  std::optional<std::int64_t> stacked(ModelTensorId tensor, const DimVector& index) const;
  // Where it would be if a row of each followed the other's; none if they differ in their rows.
  std::optional<std::int64_t> alternating(ModelTensorId tensor, const DimVector& index) const;
  // Where it would be if all tensors were joined first and then cut by rows for the ranks; none if
  // another rank would have it.
  std::optional<std::int64_t> joined(ModelTensorId tensor, const DimVector& index) const;
  // A dim along which its one tensor could be cut for the ranks, in as many pieces as cut_dim() is,
  // so that the element would be at that offset; -1 if there is none.
  int cut_along(ModelTensorId tensor, const DimVector& index, std::int64_t offset) const;
  int cut_dim() const { return cut_dim_; }
  // Where this rank's rows would begin then, in elements of all tensors.
  std::int64_t joined_begin() const { return piece_ * size_; }

 private:
  void find_cut(const StoredPart& part);

  const Stored& side_;
  StoredBufferId buffer_;
  bool is_transposed_ = false;
  int cut_dim_ = -1;                 // of one part, if it is row-major and cut evenly along one dim
  std::int64_t cuts_ = 0, cut_ = 0;  // how many, and which
  std::vector<ModelTensorId> order_;
  std::map<ModelTensorId, std::vector<const StoredPart*>> parts_;  // each ascending by box
  std::map<ModelTensorId, std::int64_t> begin_, volume_;
  std::int64_t size_ = 0;   // of all parts
  std::int64_t piece_ = 0;  // of what ranks have under this name, by first rows
};

}  // namespace reshard
