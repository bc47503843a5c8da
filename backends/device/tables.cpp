// SPDX-License-Identifier: BSD-3-Clause
#include "backends/device/tables.h"

#include <algorithm>
#include <bit>

#include "core/base/errors.h"
#include "core/base/ids.h"
#include "core/base/integers.h"

namespace reshard::backends {
namespace {

constexpr std::int64_t kLargeTileBytes = 64 << 10, kSmallTileBytes = 16 << 10;
// From this size on, even large tiles are enough to keep a GPU busy.
constexpr std::int64_t kLargeLaunchBytes = 256 << 20;
// A row is cut at multiples of the GPU's memory line, so segments start on a line if the row does.
constexpr std::int64_t kLineBytes = 128;
constexpr int kWideUnit = 16;

// How a box is cut: a tile has `rows` rows of at most `segment_bytes` bytes.
struct Cut {
  std::int64_t rows, segment_bytes;
};

// Moves the dim along which a tile gathers its rows to the front of the outer dims.
template <class Offsets>
Cut cut(BoxRows<Offsets>& box, std::int64_t tile_bytes) {
  if (box.row_bytes > tile_bytes) {
    std::int64_t segments = ceil_div(box.row_bytes, tile_bytes);
    return {1, ceil_div(ceil_div(box.row_bytes, segments), kLineBytes) * kLineBytes};
  }
  std::int64_t fit = tile_bytes / box.row_bytes;
  int longest = 0;
  for (int d = 1; d < box.outer_dims; ++d) {
    auto gathers = [&](int dim) { return std::min(fit, box.outer[to_index(dim)].extent); };
    if (gathers(d) > gathers(longest)) longest = d;
  }
  if (longest > 0) std::swap(box.outer[0], box.outer[to_index(longest)]);
  std::int64_t rows = box.outer_dims == 0 ? 1 : box.outer[0].extent;
  // Tiles of about equal size rather than a short last one.
  return {ceil_div(rows, ceil_div(rows, fit)), box.row_bytes};
}

// Calls block(offsets) for every index of the outer dims after the first, with the offsets of its
// first row.
template <class Offsets, class Block>
void for_each_block(const BoxRows<Offsets>& box, Block&& block) {
  box.for_each(box.outer_dims == 0 ? 0 : 1, block);
}

template <class Offsets>
std::int64_t rows_of(const BoxRows<Offsets>& box) {
  return box.outer_dims == 0 ? 1 : box.outer[0].extent;
}

template <class Offsets>
std::int64_t pitch_of(const BoxRows<Offsets>& box, std::size_t array) {
  return box.outer_dims == 0 ? box.row_bytes : box.outer[0].stride[array];
}

// The bitwise or of everything that the unit must divide: the lowest set bit is the largest unit.
template <class Offsets>
std::uint64_t alignment_bits(const BoxRows<Offsets>& box,
                             std::span<const std::byte* const> arrays) {
  auto bits = static_cast<std::uint64_t>(box.row_bytes);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    bits |= reinterpret_cast<std::uintptr_t>(arrays[i]) + static_cast<std::uint64_t>(box.start[i]);
    for (int d = 0; d < box.outer_dims; ++d)
      bits |= static_cast<std::uint64_t>(box.outer[to_index(d)].stride[i]);
  }
  return bits;
}

// Calls tile(first row, rows, offset in the row, bytes) for all tiles of one block.
template <class Tile>
void for_each_tile(std::int64_t rows, std::int64_t row_bytes, const Cut& cut, Tile&& tile) {
  for (std::int64_t row = 0; row < rows; row += cut.rows)
    for (std::int64_t at = 0; at < row_bytes; at += cut.segment_bytes)
      tile(row, std::min(cut.rows, rows - row), at, std::min(cut.segment_bytes, row_bytes - at));
}

// One array (the destination) or two (destination and source).
template <std::size_t kArrays>
void add_copies(std::array<std::vector<CopyTile>, CopyTiles::kUnits>& groups,
                std::int64_t tile_bytes, std::byte* destination, const std::byte* source,
                const std::array<BoxPlace, kArrays>& places, const DimVector& extents,
                std::int64_t element_bytes) {
  BoxRows<std::array<std::int64_t, kArrays>> box({}, places, extents, element_bytes);
  std::array<const std::byte*, 2> arrays{destination, source};
  Cut pieces = cut(box, tile_bytes);
  auto group =
      to_index(std::min(4, std::countr_zero(alignment_bits(
                               box, std::span<const std::byte* const>(arrays).first(kArrays)))));
  std::int64_t to_pitch = pitch_of(box, 0), from_pitch = pitch_of(box, kArrays - 1);
  for_each_block(box, [&](const std::array<std::int64_t, kArrays>& at) {
    for_each_tile(
        rows_of(box), box.row_bytes, pieces,
        [&](std::int64_t row, std::int64_t rows, std::int64_t offset, std::int64_t bytes) {
          const std::byte* from =
              kArrays == 1 ? nullptr : source + at[kArrays - 1] + row * from_pitch + offset;
          groups[group].push_back({destination + at[0] + row * to_pitch + offset, from, to_pitch,
                                   kArrays == 1 ? 0 : from_pitch, static_cast<std::int32_t>(rows),
                                   static_cast<std::int32_t>(bytes >> group)});
        });
  });
}

}  // namespace

std::int64_t tile_bytes_for(std::int64_t total_bytes) {
  return total_bytes >= kLargeLaunchBytes ? kLargeTileBytes : kSmallTileBytes;
}

// At sixteen units per lane, reading the descriptor costs little; in a small launch a lane gets
// only four, so that more threads run. In no tile does a lane get more than 64 units.
int lanes_for(std::int64_t units, std::int64_t most, std::int64_t tile_bytes) {
  std::int64_t per_lane = tile_bytes == kLargeTileBytes ? 16 : 4;
  auto wanted = static_cast<std::uint64_t>(
      std::max({ceil_div(units, per_lane), ceil_div(most, std::int64_t{64}), std::int64_t{1}}));
  return static_cast<int>(std::bit_ceil(wanted));
}

void CopyTiles::copy(std::byte* destination, const BoxPlace& destination_place,
                     const std::byte* source, const BoxPlace& source_place,
                     const DimVector& extents, std::int64_t element_bytes) {
  add_copies<2>(groups_, tile_bytes_, destination, source, {{destination_place, source_place}},
                extents, element_bytes);
}

void CopyTiles::clear(std::byte* destination, const BoxPlace& place, const DimVector& extents,
                      std::int64_t element_bytes) {
  add_copies<1>(groups_, tile_bytes_, destination, nullptr, {{place}}, extents, element_bytes);
}

void FoldTiles::fold(std::byte* destination, const BoxPlace& destination_place,
                     std::span<const std::byte* const> operands,
                     std::span<const BoxPlace> operand_places, const DimVector& extents) {
  RESHARD_CHECK(!operands.empty() && operands.size() == operand_places.size(),
                "operands of a fold");
  using Offsets = std::vector<std::int64_t>;
  std::vector<const std::byte*> arrays{destination};
  arrays.insert(arrays.end(), operands.begin(), operands.end());
  std::vector<BoxPlace> places{destination_place};
  for (const BoxPlace& place : operand_places) places.push_back(place);
  BoxRows<Offsets> box(Offsets(arrays.size()), places, extents, element_bytes_);
  Cut pieces = cut(box, tile_bytes_);
  std::vector<Tile>& tiles = alignment_bits(box, arrays) % kWideUnit == 0 ? wide_ : narrow_;
  std::int64_t to_pitch = pitch_of(box, 0);
  for_each_block(box, [&](const Offsets& at) {
    std::size_t first_operand = operands_.size();
    for (std::size_t k = 0; k < operands.size(); ++k)
      operands_.push_back({operands[k] + at[k + 1], pitch_of(box, k + 1)});
    for_each_tile(
        rows_of(box), box.row_bytes, pieces,
        [&](std::int64_t row, std::int64_t rows, std::int64_t offset, std::int64_t bytes) {
          FoldTile tile{};
          tile.destination = destination + at[0] + row * to_pitch + offset;
          tile.destination_pitch = to_pitch;
          tile.first_row = row;
          tile.offset = offset;
          tile.operand_count = static_cast<std::int32_t>(operands.size());
          tile.rows = static_cast<std::int32_t>(rows);
          tile.count = static_cast<std::int32_t>(bytes / element_bytes_);
          tiles.push_back({tile, first_operand});
        });
  });
}

}  // namespace reshard::backends
