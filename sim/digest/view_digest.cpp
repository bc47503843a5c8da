// SPDX-License-Identifier: BSD-3-Clause
#include "sim/digest/view_digest.h"

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"

namespace reshard::sim {
namespace {

// Pieces shorter than kShort are gathered first: a call of the hash costs as much as copying them.
constexpr std::size_t kShort = 4096, kGathered = std::size_t{1} << 15;
// Rows with distant elements are gathered several at a time, so that every cache line that is read
// is used completely.
constexpr std::int64_t kRowsAcross = 64, kBytesAcross = std::int64_t{1} << 20;

// Rows of `columns` elements, in which the elements of a column are adjacent in memory.
struct Across {
  const std::byte* from;
  std::int64_t row_stride, column_stride, rows, columns;  // in elements
};

// Gathers row by row; rows begin `pitch` bytes apart.
template <std::size_t kSize>
void gather(const Across& across, std::byte* to, std::int64_t pitch) {
  constexpr auto kStep = static_cast<std::int64_t>(kSize);
  for (std::int64_t column = 0; column < across.columns; ++column)
    for (std::int64_t row = 0; row < across.rows; ++row)
      std::memcpy(to + row * pitch + column * kStep,
                  across.from + (row * across.row_stride + column * across.column_stride) * kStep,
                  kSize);
}

// Elements have 1, 2, 4 or 8 bytes.
void gather(std::int64_t size, const Across& across, std::byte* to, std::int64_t pitch) {
  auto* gather_of = size == 1   ? gather<1>
                    : size == 2 ? gather<2>
                    : size == 4 ? gather<4>
                                : gather<8>;
  gather_of(across, to, pitch);
}

}  // namespace

std::uint64_t ViewDigester::digest(std::span<const std::byte> memory, const StridedView& view,
                                   std::int64_t element_bytes, std::int64_t most_bytes) {
  // The trailing dims that are contiguous, then the next dim, along which most steps are.
  std::int64_t run = 1;
  int dim = view.dims() - 1;
  for (; dim >= 0; --dim) {
    if (view.extents[dim] == 1) continue;
    if (view.strides[dim] != run) break;
    run *= view.extents[dim];
  }
  auto at = [&](std::int64_t element, std::int64_t count) {
    return memory.subspan(to_index(element * element_bytes), to_index(count * element_bytes));
  };
  RESHARD_CHECK(view.offset >= 0 && to_index(view.end() * element_bytes) <= memory.size(),
                "a view beyond its memory");
  if (dim < 0) {
    std::span<const std::byte> whole = at(view.offset, run);
    return digest64_of(whole.first(std::min(whole.size(), static_cast<std::size_t>(most_bytes))));
  }
  left_ = most_bytes;
  int row_dim = dim - 1;
  while (row_dim >= 0 && view.extents[row_dim] == 1) --row_dim;
  const std::int64_t columns = view.extents[dim];
  std::int64_t at_once = 1;
  if (run == 1 && row_dim >= 0 && view.strides[row_dim] < view.strides[dim])
    at_once = std::min(kRowsAcross, kBytesAcross / element_bytes / columns);
  DimVector outer(dim, 0);
  do {
    std::int64_t from = view.offset;
    for (int d = 0; d < dim; ++d) from += outer[d] * view.strides[d];
    if (at_once > 1) {
      std::int64_t rows = std::min(at_once, view.extents[row_dim] - outer[row_dim]);
      // Rows are one cache line further apart than their size, because rows at a distance of some
      // powers of two would compete for few places of the cache.
      std::int64_t row_bytes = columns * element_bytes, pitch = row_bytes + 64;
      across_.resize(to_index(rows * pitch));
      gather(element_bytes,
             {at(from, 1).data(), view.strides[row_dim], view.strides[dim], rows, columns},
             across_.data(), pitch);
      for (std::int64_t row = 0; row < rows && left_ > 0; ++row)
        add(std::span(across_).subspan(to_index(row * pitch), to_index(row_bytes)));
      outer[row_dim] += rows - 1;
      continue;
    }
    for (std::int64_t i = 0; i < columns && left_ > 0; ++i)
      add(at(from + i * view.strides[dim], run));
  } while (left_ > 0 && next_index(outer, [&](int d) { return view.extents[d]; }));
  return take();
}

std::uint64_t ViewDigester::zeros(std::int64_t bytes) {
  const std::vector<std::byte> some(std::min(kGathered, static_cast<std::size_t>(bytes)));
  for (; bytes > 0; bytes -= std::min(bytes, static_cast<std::int64_t>(some.size())))
    hasher_.add(std::span(some).first(std::min(some.size(), static_cast<std::size_t>(bytes))));
  return hasher_.take();
}

void ViewDigester::add(std::span<const std::byte> piece) {
  if (static_cast<std::int64_t>(piece.size()) > left_) piece = piece.first(to_index(left_));
  left_ -= static_cast<std::int64_t>(piece.size());
  if (piece.size() < kShort) {
    gathered_.insert(gathered_.end(), piece.begin(), piece.end());
    if (gathered_.size() < kGathered) return;
    piece = {};
  }
  if (!gathered_.empty()) hasher_.add(gathered_);
  gathered_.clear();
  hasher_.add(piece);
}

std::uint64_t ViewDigester::take() {
  if (!gathered_.empty()) hasher_.add(gathered_);
  gathered_.clear();
  return hasher_.take();
}

}  // namespace reshard::sim
