// SPDX-License-Identifier: BSD-3-Clause
// Where a tensor's elements lie in the memory that it shares with its views, counted as if no
// tensor was cut: what PyTorch calls offset and strides, in bytes.
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

  // Of element `index` of the tensor.
  std::int64_t at(const Shape& index) const;
  friend bool operator==(const MemoryView&, const MemoryView&) = default;
};

// Of a tensor of its own, row-major.
MemoryView dense_view(const TensorMeta& meta);
// Of a tensor of its own whose dims lie in the order of those of `like`; row-major where `like` has
// gaps, or elements on top of each other.
MemoryView dense_view_like(const TensorMeta& meta, const MemoryView& like);

// What an operator that makes views makes of its first tensor, one for each of `outputs`. None
// where it copies: as every other operator, and as `reshape` and `contiguous` where strides ask for
// it.
std::optional<std::vector<MemoryView>> views_of(
    std::string_view name, const TensorMeta& meta, const MemoryView& input,
    const OpAttributes& attributes, const std::vector<std::optional<TensorMeta>>& outputs);
// Whether views_of() may give some.
bool may_share_memory(std::string_view name);

// Both say yes where it would take too long to look at every row.

// Whether an element of one lies where one of the other lies.
bool overlap(const MemoryView& a, const MemoryView& b);
// Whether all elements of `inner` lie where elements of `outer` lie; no where it would take too
// long to look.
bool covers(const MemoryView& outer, const MemoryView& inner);

}  // namespace reshard::sim
