// SPDX-License-Identifier: BSD-3-Clause
// The GPU's kernels, compiled for the host, against core/bytes: every dtype and operator, any
// number of lanes, bit for bit.
#include <catch2/catch.hpp>

#include <sys/mman.h>

#include <cstring>

#include <fmt/format.h>

#include "backends/device/kernels/host_kernels.h"
#include "backends/device/tables.h"
#include "core/bytes/box_fold.h"
#include "tests/support/oracle.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;
using namespace reshard::backends;

namespace {

constexpr int kLanes[] = {1, 2, 32, 256, 1024};

std::vector<std::byte> random_bytes(Prng& prng, std::int64_t count) {
  std::vector<std::byte> out(static_cast<std::size_t>(count));
  for (std::byte& byte : out) byte = static_cast<std::byte>(prng.next());
  return out;
}

void run(const CopyTiles& tiles, int lanes) {
  for (std::size_t g = 0; g < CopyTiles::kUnits; ++g)
    host_kernels::copy(
        {tiles.group(g).data(), static_cast<std::int64_t>(tiles.group(g).size()), 1 << g, lanes});
}

void run(const FoldTiles& tiles, ReduceOp op, DType dtype, std::int64_t divisor, int lanes) {
  for (auto [group, unit] : {std::pair(&tiles.wide(), 16),
                             std::pair(&tiles.narrow(), static_cast<int>(size_bytes(dtype)))}) {
    std::vector<FoldTile> table;
    for (const FoldTiles::Tile& tile : *group) {
      table.push_back(tile.tile);
      table.back().operands = tiles.operands().data() + tile.first_operand;
    }
    host_kernels::fold(
        {table.data(), static_cast<std::int64_t>(table.size()), unit, lanes, op, dtype, divisor});
  }
}

// Bits in which every pattern of the dtype can occur; zeros, infinities and NaNs often.
std::vector<std::byte> draw_values(Prng& prng, DType dtype, std::int64_t count) {
  std::vector<std::byte> out = random_bytes(prng, count * size_bytes(dtype));
  if (dtype == DType::Bool)
    for (std::byte& byte : out) byte &= std::byte{1};
  if (!is_floating(dtype)) return out;
  auto width = static_cast<std::size_t>(size_bytes(dtype));
  for (std::size_t i = 0; i < out.size(); i += width) {
    if (!prng.one_in(4)) continue;
    std::byte sign = static_cast<std::byte>(prng.next() & 0x80);
    std::memset(out.data() + i, prng.one_in(2) ? 0 : 0xff, width);
    if (out[i] != std::byte{0} && prng.one_in(2)) {
      // Infinity: only the exponent's bits.
      std::memset(out.data() + i, 0, width);
      out[i + width - 1] = std::byte{0x7f};
      if (dtype == DType::F16) out[i + 1] = std::byte{0x7c};
      if (dtype == DType::F64) out[i + 6] = std::byte{0xf0};
      if (dtype == DType::F32 || dtype == DType::BF16) out[i + width - 2] = std::byte{0x80};
    }
    out[i + width - 1] = (out[i + width - 1] & std::byte{0x7f}) | sign;
  }
  return out;
}

bool is_nan_at(DType dtype, const std::byte* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(size_bytes(dtype)));
  return is_nan(dtype, bits);
}

// Equal bits, or two NaNs: which payload survives is the compiler's choice of operand order.
bool agree(DType dtype, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  DType part = dtype == DType::C64 ? DType::F32 : dtype;
  auto width = static_cast<std::size_t>(size_bytes(part));
  for (std::size_t i = 0; i < a.size(); i += width)
    if (std::memcmp(a.data() + i, b.data() + i, width) != 0 &&
        !(is_nan_at(part, a.data() + i) && is_nan_at(part, b.data() + i)))
      return false;
  return a.size() == b.size();
}

// Rows of `count` elements, `pitch` apart in operands, dense in the destination, by kernel and by
// core/bytes.
void compare_folds(Prng& prng, ReduceOp op, DType dtype, std::int64_t divisor,
                   std::size_t operand_count, std::int64_t rows, std::int64_t count,
                   std::int64_t pitch) {
  std::int64_t width = size_bytes(dtype);
  Shape dense{rows, count}, sparse{rows, pitch};
  DimVector zero{0, 0};
  std::vector<std::vector<std::byte>> data;
  std::vector<const std::byte*> operands;
  std::vector<BoxPlace> places(operand_count, BoxPlace{sparse, zero});
  for (std::size_t k = 0; k < operand_count; ++k)
    data.push_back(draw_values(prng, dtype, rows * pitch));
  for (const std::vector<std::byte>& operand : data) operands.push_back(operand.data());
  auto size = static_cast<std::size_t>(rows * count * width);
  std::vector<std::byte> expected(size), found(size);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<const std::byte*> at;
    for (const std::byte* operand : operands) at.push_back(operand + row * pitch * width);
    fold_row(op, dtype, divisor, at, expected.data() + row * count * width, count);
  }
  FoldTiles tiles(0, width);
  tiles.fold(found.data(), {dense, zero}, operands, places, dense);
  for (int lanes : kLanes) {
    std::fill(found.begin(), found.end(), std::byte{0x5a});
    run(tiles, op, dtype, divisor, lanes);
    if (!agree(dtype, expected, found))
      FAIL(fmt::format("{} of {} {}, divided by {}, {} x {} elements, {} lanes", text(op),
                       operand_count, text(dtype), divisor, rows, count, lanes));
  }
}

}  // namespace

TEST_CASE(
    "copies by kernel equal copies by core/bytes, in every unit and with any number of lanes") {
  Prng prng(1);
  for (std::int64_t width : {1, 2, 4, 8})
    for (std::int64_t columns : {1, 3, 8, 31, 64, 5'000, 40'000})
      for (std::int64_t rows : {1, 7, 300}) {
        if (rows * columns * width > 2'000'000) continue;
        Shape from{rows + 1, columns + 5}, to{rows + 2, columns + 8};
        DimVector from_lo{1, 5}, to_lo{2, prng.below(9)}, extents{rows, columns};
        std::vector<std::byte> source = random_bytes(prng, element_count(from) * width),
                               blank = random_bytes(prng, element_count(to) * width);
        std::vector<std::byte> expected = blank, cleared = blank, found;
        copy_box(expected.data(), {to, to_lo}, source.data(), {from, from_lo}, extents, width);
        clear_box(cleared.data(), {to, to_lo}, extents, width);
        for (int lanes : kLanes) {
          found = blank;
          CopyTiles copies(0), clears(0);
          copies.copy(found.data(), {to, to_lo}, source.data(), {from, from_lo}, extents, width);
          run(copies, lanes);
          INFO(rows << " x " << columns << " of " << width << " bytes, " << lanes << " lanes");
          REQUIRE(found == expected);
          clears.clear(found.data(), {to, to_lo}, extents, width);
          run(clears, lanes);
          REQUIRE(found == cleared);
        }
      }
}

TEST_CASE("a copy of no tiles does nothing") {
  host_kernels::copy({nullptr, 0, 16, 256});
  host_kernels::fold({nullptr, 0, 16, 256, ReduceOp::Sum, DType::F32, 1});
}

TEST_CASE("folds by kernel equal folds by core/bytes, for every dtype and operator") {
  Prng prng(2);
  int pairs = 0;
  for (int d = 0; d < kDTypeCount; ++d)
    for (int o = 0; o < kReduceOpCount; ++o) {
      auto dtype = static_cast<DType>(d);
      auto op = static_cast<ReduceOp>(o);
      if (!can_fold(op, dtype, 1)) continue;
      ++pairs;
      // 1 to 11 operands: with and without the four that are loaded side by side. Wide where rows
      // and pitch are multiples of 16 elements.
      for (std::size_t operands : {1u, 2u, 4u, 5u, 6u, 11u})
        for (std::int64_t divisor : {1, 3, 8}) {
          if (!can_fold(op, dtype, divisor)) continue;
          compare_folds(prng, op, dtype, divisor, operands, 5, 48, 64);
          compare_folds(prng, op, dtype, divisor, operands, 5, 13, 17);
          compare_folds(prng, op, dtype, divisor, operands, 1, 1'000, 1'000);
        }
    }
  CHECK(pairs == 4 * 4 + 2 + 5 * 7 + 5);
}

TEST_CASE("16-bit floats round after every operation, in the kernel, too") {
  const std::uint16_t k256 = 0x4380, k1 = 0x3f80;
  std::uint16_t big[8], one[8], out[8];
  std::fill(std::begin(big), std::end(big), k256);
  std::fill(std::begin(one), std::end(one), k1);
  auto bytes = [](std::uint16_t* values) { return reinterpret_cast<std::byte*>(values); };
  auto folded = [&](std::vector<const std::byte*> operands) {
    FoldTiles tiles(0, 2);
    Shape shape{8};
    DimVector zero{0};
    std::vector<BoxPlace> places(operands.size(), {shape, zero});
    tiles.fold(bytes(out), {shape, zero}, operands, places, shape);
    run(tiles, ReduceOp::Sum, DType::BF16, 1, 4);
    return out[7];
  };
  CHECK(folded({bytes(big), bytes(one), bytes(one)}) == k256);
  CHECK(folded({bytes(one), bytes(one), bytes(big)}) == 0x4381);
}

TEST_CASE("rows that lie more than 2^32 bytes apart") {
  const std::int64_t apart = std::int64_t{5} << 30, bytes = 2 * apart + 4096;
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* source = static_cast<std::byte*>(memory);
  Shape far{3, apart}, near{3, 64};
  DimVector zero{0, 0};
  for (std::int64_t row = 0; row < 3; ++row)
    std::memset(source + row * apart, static_cast<int>(row + 1), 64);
  std::vector<std::byte> out(3 * 64), folded(3 * 64);
  CopyTiles copies(0);
  copies.copy(out.data(), {near, zero}, source, {far, zero}, near, 1);
  run(copies, 2);
  FoldTiles folds(0, 1);
  const std::byte* operands[] = {source, source};
  BoxPlace places[] = {{far, zero}, {far, zero}};
  folds.fold(folded.data(), {near, zero}, operands, places, near);
  run(folds, ReduceOp::Sum, DType::U8, 1, 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    CHECK(out[i] == static_cast<std::byte>(i / 64 + 1));
    CHECK(folded[i] == static_cast<std::byte>(2 * (i / 64 + 1)));
  }
  munmap(memory, static_cast<std::size_t>(bytes));
}
