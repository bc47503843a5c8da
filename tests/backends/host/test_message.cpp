// SPDX-License-Identifier: BSD-3-Clause
// Messages cut into chunks: the same at both ends, in row-major order, within the limit.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

#include "backends/host/message.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::backends;
using host::HostMessage;

namespace {

struct Draw {
  Shape shape;
  DimVector lo;
};

// Some array with room for a box of the extents.
Draw room_for(test::Prng& prng, const DimVector& extents) {
  Draw out;
  for (std::int64_t extent : extents) {
    std::int64_t before = prng.below(3), after = prng.below(3);
    out.shape.push_back(before + extent + after);
    out.lo.push_back(before);
  }
  return out;
}

// Values of the box in row-major order.
std::vector<std::uint16_t> values_of(const std::vector<std::uint16_t>& array, const Draw& draw,
                                     const DimVector& extents) {
  std::vector<std::uint16_t> out;
  for (std::int64_t i = 0; i < element_count(extents); ++i) {
    std::int64_t rest = i, at = 0, stride = 1;
    for (int d = extents.size() - 1; d >= 0; --d) {
      at += (draw.lo[d] + rest % extents[d]) * stride;
      rest /= extents[d];
      stride *= draw.shape[d];
    }
    out.push_back(array[static_cast<std::size_t>(at)]);
  }
  return out;
}

}  // namespace

TEST_CASE("drawn messages are cut alike at both ends and arrive whole") {
  test::Prng prng(7);
  std::int64_t in_place = 0, shared_chunks = 0;
  for (int draw = 0; draw < 3000; ++draw) {
    std::int64_t limit = prng.between(1, 40);
    HostMessage sent, received;
    std::vector<std::vector<std::uint16_t>> sources, destinations;
    std::vector<Draw> from, to;
    std::vector<DimVector> boxes;
    auto moves = static_cast<std::size_t>(prng.between(1, 4));
    int dims = static_cast<int>(prng.between(1, 4));
    for (std::size_t m = 0; m < moves; ++m) {
      DimVector extents;
      for (int d = 0; d < dims; ++d) extents.push_back(prng.between(1, 4));
      boxes.push_back(extents);
      from.push_back(room_for(prng, extents));
      to.push_back(room_for(prng, extents));
      sources.emplace_back(static_cast<std::size_t>(element_count(from[m].shape)));
      std::iota(sources[m].begin(), sources[m].end(), static_cast<std::uint16_t>(1000 * m + 1));
      destinations.emplace_back(static_cast<std::size_t>(element_count(to[m].shape)));
      append(
          sent,
          {reinterpret_cast<std::byte*>(sources[m].data()), from[m].shape, from[m].lo, extents, 2},
          limit);
      append(
          received,
          {reinterpret_cast<std::byte*>(destinations[m].data()), to[m].shape, to[m].lo, extents, 2},
          limit);
    }
    INFO("draw " << draw);
    REQUIRE(sent.chunks.size() == received.chunks.size());
    for (std::size_t c = 0; c < sent.chunks.size(); ++c) {
      const host::Chunk &out = sent.chunks[c], &in = received.chunks[c];
      REQUIRE(out.bytes == in.bytes);
      CHECK(out.bytes <= std::max<std::int64_t>(limit, 2));
      shared_chunks += out.piece_count > 1;
      std::vector<std::byte> way(static_cast<std::size_t>(out.bytes));
      pack(sent, out, way.data());
      if (out.in_place != nullptr) {
        ++in_place;
        CHECK(std::equal(way.begin(), way.end(), out.in_place));
      }
      unpack(received, in, way.data());
    }
    for (std::size_t m = 0; m < moves; ++m)
      CHECK(values_of(destinations[m], to[m], boxes[m]) ==
            values_of(sources[m], from[m], boxes[m]));
  }
  CHECK(in_place > 1000);
  CHECK(shared_chunks > 1000);
}

TEST_CASE(
    "a box that is one stretch of its buffer is one chunk in place, a large one is cut into equal "
    "ones") {
  std::vector<float> buffer(6 * 8);
  HostMessage message;
  append(message, {reinterpret_cast<std::byte*>(buffer.data()), {6, 8}, {2, 0}, {4, 8}, 4}, 1024);
  REQUIRE(message.chunks.size() == 1);
  CHECK(message.chunks[0].in_place == reinterpret_cast<std::byte*>(buffer.data() + 16));
  CHECK(message.chunks[0].bytes == 4 * 8 * 4);

  HostMessage cut;
  append(cut, {reinterpret_cast<std::byte*>(buffer.data()), {6, 8}, {0, 0}, {6, 8}, 4}, 64);
  REQUIRE(cut.chunks.size() == 3);
  for (std::size_t c = 0; c < 3; ++c)
    CHECK(cut.chunks[c].in_place == reinterpret_cast<std::byte*>(buffer.data() + 16 * c));
}
