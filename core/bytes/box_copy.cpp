// SPDX-License-Identifier: BSD-3-Clause
// Large boxes are written past the caches: an ordinary store first reads the line that it is about
// to overwrite, which is a third of the memory traffic of a copy. Small boxes are written through
// the caches, since they are likely to be read soon.
#include "core/bytes/box_copy.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace reshard {
namespace {

// Boxes of at least this many bytes, with rows of at least this many, are streamed.
constexpr std::int64_t kStreamBoxBytes = std::int64_t{1} << 20, kStreamRowBytes = 512;

using Pair = std::array<std::int64_t, 2>;

struct RowBlock {
  std::byte* destination;
  const std::byte* source;
  std::int64_t rows, row_bytes, destination_stride, source_stride;
};

// Rows of a compile-time size are one or two move instructions each.
template <std::size_t kBytes>
void copy_short_rows(const RowBlock& block) {
  std::byte* out = block.destination;
  const std::byte* in = block.source;
  for (std::int64_t r = 0; r < block.rows;
       ++r, out += block.destination_stride, in += block.source_stride)
    std::memcpy(out, in, kBytes);
}

void copy_rows(const RowBlock& block) {
  switch (block.row_bytes) {
    case 1:
      return copy_short_rows<1>(block);
    case 2:
      return copy_short_rows<2>(block);
    case 4:
      return copy_short_rows<4>(block);
    case 8:
      return copy_short_rows<8>(block);
    case 16:
      return copy_short_rows<16>(block);
    case 32:
      return copy_short_rows<32>(block);
    default:
      break;
  }
  std::byte* out = block.destination;
  const std::byte* in = block.source;
  for (std::int64_t r = 0; r < block.rows;
       ++r, out += block.destination_stride, in += block.source_stride)
    std::memcpy(out, in, static_cast<std::size_t>(block.row_bytes));
}

#if defined(__SSE2__)
constexpr std::int64_t kLine = 64;
// Rows that are written side by side: the processor prefetches within each of them, so several
// reads are in flight even if a row is only a page long.
constexpr std::int64_t kAbreast = 4;

inline void stream_line(std::byte* out, const std::byte* in) {
  const auto* from = reinterpret_cast<const __m128i*>(in);
  auto* to = reinterpret_cast<__m128i*>(out);
  __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2),
          d = _mm_loadu_si128(from + 3);
  _mm_stream_si128(to, a);
  _mm_stream_si128(to + 1, b);
  _mm_stream_si128(to + 2, c);
  _mm_stream_si128(to + 3, d);
}

// Streams whole lines only; what comes before the first and after the last goes through the caches.
void stream_row(std::byte* out, const std::byte* in, std::int64_t bytes) {
  std::int64_t head =
      -static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out) % kLine) & (kLine - 1);
  if (head > bytes) head = bytes;
  std::memcpy(out, in, static_cast<std::size_t>(head));
  std::int64_t at = head;
  for (; at + kLine <= bytes; at += kLine) stream_line(out + at, in + at);
  std::memcpy(out + at, in + at, static_cast<std::size_t>(bytes - at));
}

void stream_rows(const RowBlock& block) {
  std::byte* out = block.destination;
  const std::byte* in = block.source;
  std::int64_t r = 0;
  bool whole_lines = (reinterpret_cast<std::uintptr_t>(out) |
                      static_cast<std::uintptr_t>(block.destination_stride | block.row_bytes)) %
                         kLine ==
                     0;
  if (whole_lines)
    for (; r + kAbreast <= block.rows; r += kAbreast, out += kAbreast * block.destination_stride,
                                       in += kAbreast * block.source_stride)
      for (std::int64_t at = 0; at < block.row_bytes; at += kLine)
        for (std::int64_t k = 0; k < kAbreast; ++k)
          stream_line(out + k * block.destination_stride + at, in + k * block.source_stride + at);
  for (; r < block.rows; ++r, out += block.destination_stride, in += block.source_stride)
    stream_row(out, in, block.row_bytes);
}

void end_streaming() { _mm_sfence(); }
#else
void stream_rows(const RowBlock& block) { copy_rows(block); }
void end_streaming() {}
#endif

}  // namespace

// Contiguous if every dim after the first of extent above 1 is whole.
std::optional<std::int64_t> stretch_of(const Shape& shape, const DimVector& lo,
                                       const DimVector& extents) {
  std::int64_t offset = 0;
  bool begun = false;
  for (int d = 0; d < shape.size(); ++d) {
    if (begun && extents[d] != shape[d]) return std::nullopt;
    begun = begun || extents[d] > 1;
    offset = offset * shape[d] + lo[d];
  }
  return offset;
}

void copy_box(std::byte* destination, const BoxPlace& destination_place, const std::byte* source,
              const BoxPlace& source_place, const DimVector& extents, std::int64_t element_bytes) {
  std::array<BoxPlace, 2> places{{destination_place, source_place}};
  BoxRows<Pair> rows(Pair{}, places, extents, element_bytes);
  bool stream = rows.row_bytes >= kStreamRowBytes &&
                element_count(extents) * element_bytes >= kStreamBoxBytes;
  bool single = rows.outer_dims == 0;
  RowBlock block{nullptr,
                 nullptr,
                 single ? 1 : rows.outer[0].extent,
                 rows.row_bytes,
                 single ? 0 : rows.outer[0].stride[0],
                 single ? 0 : rows.outer[0].stride[1]};
  rows.for_each(single ? 0 : 1, [&](const Pair& at) {
    block.destination = destination + at[0];
    block.source = source + at[1];
    if (stream)
      stream_rows(block);
    else
      copy_rows(block);
  });
  if (stream) end_streaming();
}

void clear_box(std::byte* destination, const BoxPlace& place, const DimVector& extents,
               std::int64_t element_bytes) {
  using One = std::array<std::int64_t, 1>;
  BoxRows<One> rows(One{}, std::span(&place, 1), extents, element_bytes);
  rows.for_each(0, [&](const One& at) {
    std::memset(destination + at[0], 0, static_cast<std::size_t>(rows.row_bytes));
  });
}

}  // namespace reshard
