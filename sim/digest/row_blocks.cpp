// SPDX-License-Identifier: BSD-3-Clause
#include "sim/digest/row_blocks.h"

#include <algorithm>

namespace reshard::sim {
namespace {

constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;

std::int64_t row_elements(const DimVector& extents) {
  std::int64_t out = 1;
  for (int d = 1; d < extents.size(); ++d) out *= extents[d];
  return out;
}

}  // namespace

std::int64_t default_rows(const ModelTensor& tensor) {
  if (element_count(tensor.shape) == 0) return 1;
  std::int64_t row_bytes = row_elements(tensor.shape) * size_bytes(tensor.dtype), rows = 1;
  while (rows * row_bytes < kBlockBytes) rows *= 2;
  return rows;
}

std::int64_t block_count(const Box& box, std::int64_t rows) {
  return box.dims() == 0 ? 1 : (box.hi[0] - 1) / rows - box.lo[0] / rows + 1;
}

Box block_at(const Box& box, std::int64_t rows, std::int64_t index) {
  Box out = box;
  if (box.dims() == 0) return out;
  std::int64_t first = box.lo[0] / rows + index;
  if (index > 0) out.lo[0] = first * rows;
  if (box.hi[0] - out.lo[0] > rows - out.lo[0] % rows)
    out.hi[0] = out.lo[0] + (rows - out.lo[0] % rows);
  return out;
}

Box head_of(const Box& block, std::int64_t element_bytes) {
  Box out = block;
  if (block.dims() == 0) return out;
  std::int64_t row_bytes = row_elements(block.extents()) * element_bytes;
  out.hi[0] = out.lo[0] + std::min(block.extent(0), ceil_div(kShortHeadBytes, row_bytes));
  return out;
}

StridedView view_within(const StridedView& view, const Box& of, const Box& cut) {
  StridedView out{view.offset, cut.extents(), view.strides};
  for (int d = 0; d < cut.dims(); ++d) out.offset += (cut.lo[d] - of.lo[d]) * view.strides[d];
  return out;
}

BlockDigests digests_of(std::span<const std::byte> memory, const StridedView& view, const Box& box,
                        std::int64_t rows, std::int64_t element_bytes, ViewDigester& digester) {
  BlockDigests out;
  for (std::int64_t i = 0, count = block_count(box, rows); i < count; ++i) {
    Box block = block_at(box, rows, i), head = head_of(block, element_bytes);
    // The head comes first: it reads the first bytes of the block, which are then in the cache.
    std::uint64_t first =
        head_digest(memory, view_within(view, box, head), element_bytes, digester);
    out.blocks.push_back(
        head == block && block.volume() * element_bytes <= kHeadBytes
            ? first
            : digester.digest(memory, view_within(view, box, block), element_bytes));
    out.heads.push_back(first);
  }
  return out;
}

std::uint64_t head_digest(std::span<const std::byte> memory, const StridedView& head,
                          std::int64_t element_bytes, ViewDigester& digester) {
  return digester.digest(memory, head, element_bytes, kHeadBytes);
}

}  // namespace reshard::sim
