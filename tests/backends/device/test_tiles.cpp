// SPDX-License-Identifier: BSD-3-Clause
// Boxes cut into tiles: every byte of a box exactly once, tiles of a useful size, the largest unit,
// and 64-bit distances. No memory is touched: addresses are just numbers.
#include <catch2/catch.hpp>

#include <map>

#include "backends/device/tables.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;
using namespace reshard::backends;

namespace {

std::byte* address(std::int64_t at) { return reinterpret_cast<std::byte*>(at); }
std::int64_t number(const std::byte* at) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at));
}

struct DrawnBox {
  Shape destination, source;
  DimVector destination_lo, source_lo, extents;
};

DrawnBox draw_box(Prng& prng) {
  DrawnBox box;
  std::int64_t dims = prng.between(1, 5), volume = 1;
  for (std::int64_t d = 0; d < dims; ++d) {
    std::int64_t extent = prng.one_in(4) ? 1 : prng.between(1, prng.one_in(4) ? 100 : 9);
    if (volume * extent > 20'000) extent = 1;
    volume *= extent;
    box.extents.push_back(extent);
    for (auto [shape, lo] : {std::pair(&box.destination, &box.destination_lo),
                             std::pair(&box.source, &box.source_lo)}) {
      lo->push_back(prng.one_in(2) ? 0 : prng.below(5));
      shape->push_back(lo->operator[](static_cast<int>(d)) + extent +
                       (prng.one_in(2) ? 0 : prng.below(5)));
    }
  }
  return box;
}

// Offset in bytes of the box's element with row-major number `index`.
std::int64_t offset_of(const Shape& shape, const DimVector& lo, const DimVector& extents,
                       std::int64_t index, std::int64_t width) {
  std::int64_t offset = 0, stride = width;
  for (int d = shape.size() - 1; d >= 0; --d) {
    offset += (lo[d] + index % extents[d]) * stride;
    index /= extents[d];
    stride *= shape[d];
  }
  return offset;
}

// Destination byte -> source byte (-1: cleared), of all tiles.
std::map<std::int64_t, std::int64_t> bytes_of(const CopyTiles& tiles) {
  std::map<std::int64_t, std::int64_t> out;
  for (std::size_t g = 0; g < CopyTiles::kUnits; ++g)
    for (const CopyTile& tile : tiles.group(g)) {
      std::int64_t unit = std::int64_t{1} << g;
      REQUIRE((tile.rows >= 1 && tile.units >= 1));
      REQUIRE(std::int64_t{tile.rows} * tile.units * unit <= tiles.tile_bytes());
      for (std::int64_t at :
           {number(tile.destination), number(tile.source),
            tile.rows > 1 ? tile.destination_pitch : 0, tile.rows > 1 ? tile.source_pitch : 0})
        REQUIRE(at % unit == 0);
      for (std::int64_t row = 0; row < tile.rows; ++row)
        for (std::int64_t byte = 0; byte < tile.units * unit; ++byte) {
          std::int64_t from =
              tile.source == nullptr ? -1 : number(tile.source) + row * tile.source_pitch + byte;
          REQUIRE(out.emplace(number(tile.destination) + row * tile.destination_pitch + byte, from)
                      .second);
        }
    }
  return out;
}

std::size_t tile_count(const CopyTiles& tiles) {
  std::size_t count = 0;
  for (std::size_t g = 0; g < CopyTiles::kUnits; ++g) count += tiles.group(g).size();
  return count;
}

constexpr std::int64_t kTo = 1 << 20, kFrom = 1 << 28;

}  // namespace

TEST_CASE("tiles of drawn boxes hold every byte once, of every width") {
  Prng prng(1);
  for (int draw = 0; draw < 400; ++draw) {
    DrawnBox box = draw_box(prng);
    std::int64_t width = std::int64_t{1} << prng.below(4);
    std::int64_t to = kTo + (prng.one_in(3) ? width * prng.below(9) : 0),
                 from = kFrom + (prng.one_in(3) ? width * prng.below(9) : 0);
    CopyTiles copies(0), clears(0);
    copies.copy(address(to), {box.destination, box.destination_lo}, address(from),
                {box.source, box.source_lo}, box.extents, width);
    clears.clear(address(to), {box.destination, box.destination_lo}, box.extents, width);
    std::map<std::int64_t, std::int64_t> copied, cleared;
    for (std::int64_t i = 0; i < element_count(box.extents); ++i)
      for (std::int64_t byte = 0; byte < width; ++byte) {
        std::int64_t at =
            to + offset_of(box.destination, box.destination_lo, box.extents, i, width) + byte;
        copied[at] = from + offset_of(box.source, box.source_lo, box.extents, i, width) + byte;
        cleared[at] = -1;
      }
    INFO("draw " << draw);
    REQUIRE(bytes_of(copies) == copied);
    REQUIRE(bytes_of(clears) == cleared);
  }
}

TEST_CASE("folds of drawn boxes hold every element once, each operand at its own place") {
  Prng prng(2);
  std::size_t wide = 0, narrow = 0;
  for (int draw = 0; draw < 200; ++draw) {
    DrawnBox box = draw_box(prng);
    std::int64_t width = std::int64_t{1} << prng.below(4);
    // A second operand that lies as the destination does.
    FoldTiles tiles(0, width);
    const std::byte* operands[] = {address(kFrom), address(2 * kFrom)};
    BoxPlace places[] = {{box.source, box.source_lo}, {box.destination, box.destination_lo}};
    tiles.fold(address(kTo), {box.destination, box.destination_lo}, operands, places, box.extents);
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> found, expected;
    for (auto [group, unit_bytes] :
         {std::pair(&tiles.wide(), std::int64_t{16}), std::pair(&tiles.narrow(), width)})
      for (const FoldTiles::Tile& placed : *group) {
        const FoldTile& tile = placed.tile;
        std::int64_t unit = unit_bytes;  // clang 14 captures no bindings
        REQUIRE(tile.operand_count == 2);
        REQUIRE(std::int64_t{tile.rows} * tile.count * width <= tiles.tile_bytes());
        REQUIRE(tile.count * width % unit == 0);
        auto at = [&](std::size_t k, std::int64_t row) {
          const FoldOperand& operand = tiles.operands()[placed.first_operand + k];
          REQUIRE((number(operand.data) + (tile.first_row + row) * operand.pitch + tile.offset) %
                      unit ==
                  0);
          return number(operand.data) + (tile.first_row + row) * operand.pitch + tile.offset;
        };
        for (std::int64_t row = 0; row < tile.rows; ++row)
          for (std::int64_t i = 0; i < tile.count; ++i)
            REQUIRE(
                found
                    .emplace(number(tile.destination) + row * tile.destination_pitch + i * width,
                             std::pair(at(0, row) + i * width, at(1, row) + i * width))
                    .second);
      }
    for (std::int64_t i = 0; i < element_count(box.extents); ++i) {
      std::int64_t offset = offset_of(box.destination, box.destination_lo, box.extents, i, width);
      expected[kTo + offset] = {kFrom + offset_of(box.source, box.source_lo, box.extents, i, width),
                                2 * kFrom + offset};
    }
    INFO("draw " << draw);
    REQUIRE(found == expected);
    wide += tiles.wide().size();
    narrow += tiles.narrow().size();
  }
  CHECK(wide > 10);
  CHECK(narrow > 50);
}

TEST_CASE(
    "a box is moved in the largest unit to which all of it is aligned, whatever the others are") {
  CopyTiles tiles(0);
  Shape whole{64, 64}, odd{64, 65};
  DimVector zero{0, 0}, one{0, 1}, all{64, 64}, part{64, 63};
  tiles.copy(address(kTo), {whole, zero}, address(kFrom), {whole, zero}, all, 1);
  tiles.copy(address(2 * kTo), {whole, zero}, address(kFrom), {odd, one}, part, 2);
  tiles.copy(address(3 * kTo), {whole, zero}, address(kFrom), {whole, zero}, DimVector{64, 2}, 4);
  CHECK(tiles.group(4).size() == 1);
  CHECK(tiles.group(1).size() == 1);
  CHECK(tiles.group(3).size() == 1);
  CHECK(tile_count(tiles) == 3);
  CHECK(tiles.group(4)[0].units == 64 * 64 / 16);  // joined into one row
}

TEST_CASE("tiles are worth their descriptor") {
  DimVector zero{0, 0, 0};
  // Two short rows here, thousands of times: gathered along the longest dim.
  CopyTiles gathered(0);
  gathered.copy(address(kTo), {Shape{5000, 2, 4}, zero}, address(kFrom), {Shape{5000, 3, 9}, zero},
                DimVector{5000, 2, 4}, 4);
  CHECK(tile_count(gathered) == 2 * 5);
  // Rows longer than a tile: segments of about equal size on line borders.
  CopyTiles cut(std::int64_t{1} << 30);
  CHECK(cut.tile_bytes() == 64 << 10);
  cut.copy(address(kTo), {Shape{2, 50'000}, DimVector{0, 0}}, address(kFrom),
           {Shape{2, 60'000}, DimVector{0, 0}}, DimVector{2, 50'000}, 2);
  REQUIRE(cut.group(4).size() == 4);
  CHECK(cut.group(4)[0].units * 16 % 128 == 0);
  CHECK(cut.group(4)[1].units > 3'000);
  CHECK(CopyTiles(1 << 20).tile_bytes() == 16 << 10);
}

TEST_CASE(
    "lanes: sixteen units each in a large launch, four in a small one, no tile left to a few") {
  CHECK(lanes_for(4096, 4096, 64 << 10) == 256);
  CHECK(lanes_for(1024, 1024, 16 << 10) == 256);
  CHECK(lanes_for(1, 1, 16 << 10) == 1);
  CHECK(lanes_for(3, 5, 16 << 10) == 1);
  CHECK(lanes_for(5, 5, 16 << 10) == 2);
  CHECK(lanes_for(2, 4096, 64 << 10) == 64);
  CHECK(lanes_for(65536, 65536, 64 << 10) == 4096);  // of one byte
}

TEST_CASE("distances beyond 2^32 bytes and elements") {
  // Rows 6 TiB apart, and a start beyond the first 2^40 elements.
  CopyTiles tiles(0);
  Shape wide{4, std::int64_t{3} << 40}, narrow{4, 8};
  DimVector far{1, std::int64_t{1} << 41}, zero{0, 0}, extents{3, 8};
  tiles.copy(address(kTo), {narrow, zero}, address(0x1000), {wide, far}, extents, 2);
  REQUIRE(tiles.group(4).size() == 1);
  const CopyTile& tile = tiles.group(4)[0];
  CHECK(tile.source_pitch == std::int64_t{6} << 40);
  CHECK(number(tile.source) == 0x1000 + (std::int64_t{6} << 40) + (std::int64_t{1} << 42));
  CHECK(tile.rows == 3);
  CHECK(tile.units == 1);
}
