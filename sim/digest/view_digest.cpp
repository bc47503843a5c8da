// SPDX-License-Identifier: BSD-3-Clause
#include "sim/digest/view_digest.h"

#include <algorithm>

#include "core/base/errors.h"

namespace reshard::sim {
namespace {

// Pieces below this are gathered first: a call of the hash costs as much as copying them.
constexpr std::size_t kShort = 4096, kGathered = std::size_t{1} << 15;

}  // namespace

std::uint64_t ViewDigester::digest(std::span<const std::byte> memory, const StridedView& view,
                                   std::int64_t element_bytes, std::int64_t most_bytes) {
  // The trailing dims that lie in one piece, then the dim around them, by which most steps are.
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
  DimVector outer(dim, 0);
  do {
    std::int64_t from = view.offset;
    for (int d = 0; d < dim; ++d) from += outer[d] * view.strides[d];
    for (std::int64_t i = 0; i < view.extents[dim] && left_ > 0; ++i)
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
