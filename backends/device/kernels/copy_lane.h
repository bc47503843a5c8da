// SPDX-License-Identifier: BSD-3-Clause
// What one thread does in a copy: it is one lane of one tile, and reads the tile's descriptor once.
// Four units are in flight at a time, all loaded before the first is stored, to hide the memory's
// latency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/device/device.h"
#include "backends/device/kernels/lane_walk.h"

namespace reshard::backends::kernels {

// What one lane moves at a time. A GPU loads 16 bytes in one instruction.
template <int kBytes>
struct alignas(kBytes) Unit {
  using Word = std::conditional_t<(kBytes >= 4), std::uint32_t,
                                  std::conditional_t<kBytes == 2, std::uint16_t, std::uint8_t>>;
  Word words[static_cast<std::size_t>(kBytes) / sizeof(Word)];
};

template <int kBytes>
struct CopyLane {
  const CopyTile* tiles;
  int lanes, log2_lanes;

  RESHARD_ON_DEVICE void operator()(std::int64_t thread) const {
    const CopyTile tile = tiles[thread >> log2_lanes];
    auto lane = static_cast<std::int32_t>(thread & (lanes - 1));
    std::int32_t left = tile.rows * tile.units - lane;
    if (left <= 0) return;
    Walk walk(tile.units, lanes, lane);
    Track<std::byte> to(tile.destination, tile.destination_pitch, kBytes, walk);
    if (tile.source == nullptr)
      clear(to, walk, left);
    else
      move(to, Track<const std::byte>(tile.source, tile.source_pitch, kBytes, walk), walk, left);
  }

 private:
  RESHARD_ON_DEVICE void move(Track<std::byte> to, Track<const std::byte> from, Walk walk,
                              std::int32_t left) const {
    for (; left > (kUnroll - 1) * lanes; left -= kUnroll * lanes) {
      Unit<kBytes> units[kUnroll];
      std::byte* out[kUnroll];
      RESHARD_UNROLL
      for (int k = 0; k < kUnroll; ++k) {
        units[k] = load<Unit<kBytes>>(from.at);
        out[k] = to.at;
        bool wraps = walk.advance();
        from.advance(wraps);
        to.advance(wraps);
      }
      RESHARD_UNROLL
      for (int k = 0; k < kUnroll; ++k) store(out[k], units[k]);
    }
    for (; left > 0; left -= lanes) {
      store(to.at, load<Unit<kBytes>>(from.at));
      bool wraps = walk.advance();
      from.advance(wraps);
      to.advance(wraps);
    }
  }

  RESHARD_ON_DEVICE void clear(Track<std::byte> to, Walk walk, std::int32_t left) const {
    for (; left > 0; left -= lanes) {
      store(to.at, Unit<kBytes>{});
      to.advance(walk.advance());
    }
  }
};

}  // namespace reshard::backends::kernels
