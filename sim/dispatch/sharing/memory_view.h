// SPDX-License-Identifier: BSD-3-Clause
// Where a tensor's elements are in the memory that it shares with its views, as if no tensor were
// sharded: PyTorch's offset and strides, in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/ops/attributes.h"
#include "core/ops/call.h"

namespace reshard::sim {

struct MemoryView {
  Shape shape;
  std::vector<std::int64_t> strides;  // by dim
  std::int64_t offset = 0, item_bytes = 1;

  // Offset of element `index` of the tensor.
  std::int64_t at(const Shape& index) const;
  friend bool operator==(const MemoryView&, const MemoryView&) = default;
};

// View of a tensor with its own memory, row-major.
MemoryView dense_view(const TensorMeta& meta);
// View of a tensor with its own memory and the dim order of `like`; row-major if `like` has gaps or
// overlapping elements.
MemoryView dense_view_like(const TensorMeta& meta, const MemoryView& like);

// The views that a view operator makes of its first tensor, one for each of `outputs`. None if it
// copies: every other operator does, and `reshape` and `contiguous` do if strides require it.
std::optional<std::vector<MemoryView>> views_of(
    std::string_view name, const TensorMeta& meta, const MemoryView& input,
    const OpAttributes& attributes, const std::vector<std::optional<TensorMeta>>& outputs);
// Whether views_of() can return views.
bool may_share_memory(std::string_view name);

// Whether an element of one overlaps an element of the other; yes if it would take too long to
// check every row.
bool overlap(const MemoryView& a, const MemoryView& b);
// Whether elements of `outer` cover all elements of `inner`; no if it would take too long to check.
bool covers(const MemoryView& outer, const MemoryView& inner);

}  // namespace reshard::sim
