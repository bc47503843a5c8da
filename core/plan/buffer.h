// SPDX-License-Identifier: BSD-3-Clause
// A buffer of a plan: what every rank has of a tensor's source, of its destination, or of a
// temporary.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/ids.h"
#include "core/layout/box.h"

namespace reshard {

enum class BufferRole : std::uint8_t { Source, Destination, Temporary };

// A buffer's local shape per slot, in one flat array. Copies share it until one of them changes, so
// that equal tensors of a job need only one.
class Buffer {
 public:
  // At first no rank has it.
  Buffer(BufferRole role, TensorId tensor, int dims, std::size_t slots, std::int64_t first = 0)
      : role_(role),
        tensor_(tensor),
        first_(first),
        dims_(dims),
        extents_(std::make_shared<std::vector<std::int64_t>>(slots * to_index(dims), -1)) {}
  // A buffer of another tensor, with the same shapes.
  Buffer of(TensorId tensor) const {
    Buffer out = *this;
    out.tensor_ = tensor;
    return out;
  }

  BufferRole role() const { return role_; }
  TensorId tensor() const { return tensor_; }
  // In a temporary of a series, the first of the tensors that it is for; otherwise 0.
  std::int64_t first_of_series() const { return first_; }
  int dims() const { return dims_; }
  bool exists(Slot slot) const { return (*extents_)[at(slot)] >= 0; }
  Shape shape(Slot slot) const {
    Shape out;
    for (int d = 0; d < dims_; ++d) out.push_back(extent(slot, d));
    return out;
  }
  std::int64_t extent(Slot slot, int d) const { return (*extents_)[at(slot) + to_index(d)]; }
  void set_shape(Slot slot, const Shape& shape) {
    if (extents_.use_count() > 1) extents_ = std::make_shared<std::vector<std::int64_t>>(*extents_);
    for (int d = 0; d < dims_; ++d) (*extents_)[at(slot) + to_index(d)] = shape[d];
  }
  // 0 if the slot does not have the buffer.
  std::int64_t elements(Slot slot) const { return exists(slot) ? element_count(shape(slot)) : 0; }
  friend bool operator==(const Buffer& a, const Buffer& b) {
    return a.role_ == b.role_ && a.tensor_ == b.tensor_ && a.first_ == b.first_ &&
           a.dims_ == b.dims_ && (a.extents_ == b.extents_ || *a.extents_ == *b.extents_);
  }

 private:
  std::size_t at(Slot slot) const { return to_index(slot) * to_index(dims_); }

  BufferRole role_;
  TensorId tensor_;
  std::int64_t first_;
  int dims_;
  std::shared_ptr<std::vector<std::int64_t>> extents_;
};

}  // namespace reshard
