// SPDX-License-Identifier: BSD-3-Clause
// The store's arithmetic against the oracle's, on random bits and on values where arithmetic goes
// wrong.
#include <catch2/catch.hpp>

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/bytes/box_fold.h"
#include "tests/support/oracle.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

std::uint64_t bits_at(const std::vector<std::byte>& row, std::size_t i, std::int64_t width) {
  std::uint64_t out = 0;
  std::memcpy(&out, row.data() + i * static_cast<std::size_t>(width),
              static_cast<std::size_t>(width));
  return out;
}

// Equal bits, or two NaNs: hardware chooses which payload survives.
bool agree(DType dtype, std::uint64_t a, std::uint64_t b) {
  if (dtype == DType::C64)
    return agree(DType::F32, a & 0xffffffff, b & 0xffffffff) && agree(DType::F32, a >> 32, b >> 32);
  return a == b || (is_nan(dtype, a) && is_nan(dtype, b));
}

// A mix of plain bits and of zeros, ones, infinities, NaNs, the largest, the smallest and subnormal
// values.
std::uint64_t draw_bits(Prng& prng, DType dtype) {
  std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * size_bytes(dtype));
  if (dtype == DType::Bool) return prng.next() & 1;
  if (dtype == DType::C64) return draw_bits(prng, DType::F32) << 32 | draw_bits(prng, DType::F32);
  if (!is_floating(dtype) || !prng.one_in(3)) return prng.next() & mask;
  std::uint64_t infinity = dtype == DType::F64   ? 0x7ff0000000000000
                           : dtype == DType::F32 ? 0x7f800000
                           : dtype == DType::F16 ? 0x7c00
                                                 : 0x7f80;
  std::uint64_t sign = prng.next() & (mask ^ mask >> 1);
  const std::vector<std::uint64_t> odd{
      0, 1, infinity, infinity - 1, infinity | infinity >> 1 | infinity >> 2, prng.next() & 0x7f};
  return prng.pick(odd) | sign;
}

std::vector<std::byte> row_of(const std::vector<std::uint64_t>& values, std::int64_t width) {
  std::vector<std::byte> out(values.size() * static_cast<std::size_t>(width));
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(out.data() + i * static_cast<std::size_t>(width), &values[i],
                static_cast<std::size_t>(width));
  return out;
}

const std::vector<DType> kAll{DType::F64,    DType::F32,  DType::F16, DType::BF16, DType::F8E4M3,
                              DType::F8E5M2, DType::I64,  DType::I32, DType::I16,  DType::I8,
                              DType::U8,     DType::Bool, DType::C64};

void compare(Prng& prng, ReduceOp op, DType dtype, std::int64_t divisor, std::size_t operands,
             std::size_t count) {
  std::vector<std::vector<std::uint64_t>> values(operands);
  std::vector<std::vector<std::byte>> rows;
  std::vector<const std::byte*> pointers;
  for (std::vector<std::uint64_t>& row : values) {
    for (std::size_t i = 0; i < count; ++i) row.push_back(draw_bits(prng, dtype));
    rows.push_back(row_of(row, size_bytes(dtype)));
  }
  for (const std::vector<std::byte>& row : rows) pointers.push_back(row.data());
  std::vector<std::byte> out(count * static_cast<std::size_t>(size_bytes(dtype)));
  fold_row(op, dtype, divisor, pointers, out.data(), static_cast<std::int64_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::uint64_t> column;
    for (const std::vector<std::uint64_t>& row : values) column.push_back(row[i]);
    std::uint64_t expected = folded(op, dtype, divisor, column),
                  found = bits_at(out, i, size_bytes(dtype));
    if (agree(dtype, expected, found)) continue;
    FAIL(fmt::format("{} {} / {} of {} operands, element {}: expected {:#x}, found {:#x}", text(op),
                     text(dtype), divisor, operands, i, expected, found));
  }
}

}  // namespace

TEST_CASE("folds of random bits agree with the oracle, whatever the rounding") {
  Prng prng(3);
  int folds = 0;
  for (DType dtype : kAll)
    for (int o = 0; o < kReduceOpCount; ++o) {
      auto op = static_cast<ReduceOp>(o);
      if (op == ReduceOp::Avg || !can_reduce(op, dtype)) continue;
      // One more than a stretch of 8 KiB, so that the seam is crossed.
      for (std::size_t count : {std::size_t{1}, std::size_t{37},
                                static_cast<std::size_t>(8192 / size_bytes(dtype) + 1)})
        for (std::size_t operands : {1u, 2u, 3u, 8u})
          for (std::int64_t divisor : {1, 3, 8, 1000}) {
            if (divisor != 1 && !can_divide(dtype)) continue;
            compare(prng, op, dtype, divisor, operands, count);
            ++folds;
          }
    }
  // Floating: sum, product, min, max of 4 types and sum, product of c64 with 4 divisors; 5 integer
  // types with 7 operators; bool with 5.
  CHECK(folds == 12 * (4 * (4 * 4 + 2) + 5 * 7 + 5));
}

TEST_CASE("16-bit floats round after every operation") {
  auto fold_bf16 = [](std::vector<std::uint16_t> operands) {
    std::vector<std::vector<std::byte>> rows;
    std::vector<const std::byte*> pointers;
    for (std::uint16_t bits : operands) rows.push_back(row_of({bits}, 2));
    for (const std::vector<std::byte>& row : rows) pointers.push_back(row.data());
    std::vector<std::byte> out(2);
    fold_row(ReduceOp::Sum, DType::BF16, 1, pointers, out.data(), 1);
    return bits_at(out, 0, 2);
  };
  const std::uint16_t k256 = 0x4380, k1 = 0x3f80, k258 = 0x4381;
  // 256 + 1 = 257 rounds to even 256, twice; 1 + 1 + 256 = 258 is exact.
  CHECK(fold_bf16({k256, k1, k1}) == k256);
  CHECK(fold_bf16({k1, k1, k256}) == k258);
}

TEST_CASE("min and max propagate NaN from either side and keep the left of equals") {
  const std::uint32_t nan = 0x7fc00000, one = 0x3f800000, zero = 0, minus_zero = 0x80000000;
  auto fold2 = [](ReduceOp op, std::uint32_t a, std::uint32_t b) {
    std::vector<std::byte> x = row_of({a}, 4), y = row_of({b}, 4), out(4);
    const std::byte* operands[] = {x.data(), y.data()};
    fold_row(op, DType::F32, 1, operands, out.data(), 1);
    return bits_at(out, 0, 4);
  };
  for (ReduceOp op : {ReduceOp::Min, ReduceOp::Max}) {
    CHECK(fold2(op, nan, one) == nan);
    CHECK(fold2(op, one, nan) == nan);
    CHECK(fold2(op, zero, minus_zero) == zero);
    CHECK(fold2(op, minus_zero, zero) == minus_zero);
  }
  CHECK(fold2(ReduceOp::Min, one, zero) == zero);
  CHECK(fold2(ReduceOp::Max, zero, one) == one);
}

TEST_CASE("what a dtype does not have is refused") {
  std::vector<std::byte> row(8), out(8);
  const std::byte* operands[] = {row.data()};
  auto refuses = [&](ReduceOp op, DType dtype, std::int64_t divisor) {
    CHECK_FALSE(can_fold(op, dtype, divisor));
    CHECK_THROWS_AS(fold_row(op, dtype, divisor, operands, out.data(), 1), CheckFailure);
  };
  for (DType dtype : kAll) refuses(ReduceOp::Avg, dtype, 1);
  refuses(ReduceOp::Sum, DType::F8E4M3, 1);
  refuses(ReduceOp::Max, DType::F8E5M2, 1);
  refuses(ReduceOp::Sum, DType::Bool, 1);
  refuses(ReduceOp::Min, DType::C64, 1);
  refuses(ReduceOp::Band, DType::F32, 1);
  refuses(ReduceOp::Sum, DType::I32, 2);
  refuses(ReduceOp::Sum, DType::F32, 0);
  CHECK_THROWS_AS(fold_row(ReduceOp::Sum, DType::F32, 1, {}, out.data(), 1), CheckFailure);
}
