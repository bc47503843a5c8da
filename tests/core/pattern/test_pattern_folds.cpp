// SPDX-License-Identifier: BSD-3-Clause
// Addends must fold to the same bits in any order and any nesting of folds and divisions, for every
// dtype, operator and mesh.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/pattern/pattern.h"
#include "tests/support/oracle.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

const std::vector<DType> kReduced{DType::F64, DType::F32,  DType::F16, DType::BF16,
                                  DType::I64, DType::I32,  DType::I16, DType::I8,
                                  DType::U8,  DType::Bool, DType::C64};

Request fold_request(const std::vector<std::int32_t>& axes, DType dtype,
                     const std::vector<ReduceOp>& from, const std::vector<Placement>& to) {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major(axes));
  std::vector<Placement> source;
  for (ReduceOp op : from) source.push_back(Placement::partial(op));
  return Request(Layout(Shape{64}, dtype, mesh, source), Layout(Shape{64}, dtype, mesh, to));
}

// Folds axis by axis in a drawn order, members of a group in a drawn order, dividing after each avg
// axis or at a drawn later time, and R->P(sum) divisions anywhere in between.
std::uint64_t nested(Prng& prng, const Request& request, ReduceOp op,
                     const std::vector<std::uint64_t>& addends,
                     std::vector<std::int64_t> divisors) {
  std::vector<std::uint64_t> values = addends;
  std::vector<std::int64_t> sizes;
  for (const FoldMeaning::Axis& axis : request.fold().axes) sizes.push_back(axis.size);
  prng.shuffle(divisors);
  while (sizes.size() > 0) {
    // Fold one axis of the row-major array `values`.
    auto axis = static_cast<std::size_t>(prng.below(static_cast<std::int64_t>(sizes.size())));
    std::int64_t inner = 1;
    for (std::size_t k = axis + 1; k < sizes.size(); ++k) inner *= sizes[k];
    std::int64_t divisor = 1;
    if (!divisors.empty() && prng.one_in(2)) {
      divisor = divisors.back();
      divisors.pop_back();
    }
    std::vector<std::uint64_t> next;
    std::int64_t outer = static_cast<std::int64_t>(values.size()) / inner / sizes[axis];
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i) {
        std::vector<std::uint64_t> group;
        for (std::int64_t k = 0; k < sizes[axis]; ++k)
          group.push_back(values[static_cast<std::size_t>((o * sizes[axis] + k) * inner + i)]);
        prng.shuffle(group);
        next.push_back(folded(op, request.dtype(), divisor, group));
      }
    values = std::move(next);
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  for (std::int64_t divisor : divisors)
    values[0] = folded(op, request.dtype(), divisor, {values[0]});
  return values[0];
}

std::vector<std::uint64_t> addends_of(const Pattern& pattern, std::int64_t index,
                                      std::int64_t count) {
  std::vector<std::uint64_t> out;
  for (std::int64_t addend = 0; addend < count; ++addend)
    out.push_back(pattern.source_bits(index, addend));
  return out;
}

}  // namespace

TEST_CASE("folds are exact in any order and nesting") {
  Prng prng(11);
  std::int64_t folds = 0;
  for (const std::vector<std::int32_t>& axes : std::vector<std::vector<std::int32_t>>{
           {1}, {2}, {3}, {8}, {2, 2}, {3, 2}, {4, 3, 2}, {5, 7}, {64}, {16, 16}, {3, 3, 3, 3}})
    for (DType dtype : kReduced)
      for (int o = 0; o < kReduceOpCount; ++o) {
        auto op = static_cast<ReduceOp>(o);
        if (!can_reduce(op, dtype)) continue;
        Request request = fold_request(axes, dtype, std::vector<ReduceOp>(axes.size(), op),
                                       std::vector<Placement>(axes.size()));
        Pattern pattern(request);
        std::vector<std::int64_t> divisors;
        for (std::int32_t size : axes)
          if (op == ReduceOp::Avg) divisors.push_back(size);
        ReduceOp fold_op = op == ReduceOp::Avg ? ReduceOp::Sum : op;
        std::vector<std::int64_t> wanted = request.addends_wanted(0);
        for (std::int64_t index = 0; index < 12; ++index) {
          std::vector<std::uint64_t> addends =
              addends_of(pattern, index, request.fold().addend_count);
          std::uint64_t expected = pattern.expected_bits(index, wanted);
          INFO(fmt::format("{} index {}", request.text(), index));
          REQUIRE(folded(fold_op, dtype, request.fold().divisor, addends) == expected);
          for (int round = 0; round < 3; ++round)
            REQUIRE(nested(prng, request, fold_op, addends, divisors) == expected);
          folds += 4;
        }
      }
  // 11 meshes; f64 f32 f16 bf16 have sum avg min max product, five integer types all seven but avg,
  // bool five, c64 sum avg product: 63 pairs.
  CHECK(folds == 11 * 63 * 12 * 4);
}

TEST_CASE("sums that are divided again on another axis stay exact") {
  Prng prng(12);
  for (DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::C64})
    for (std::int32_t size : {2, 3, 6, 12})
      for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg}) {
        auto mesh = std::make_shared<const Mesh>(Mesh::row_major({size, 3}));
        Request request(
            Layout(Shape{8}, dtype, mesh, {Placement::partial(op), Placement::replicate()}),
            Layout(Shape{8}, dtype, mesh, {Placement::replicate(), Placement::partial()}));
        Pattern pattern(request);
        std::vector<std::int64_t> divisors{3};
        if (op == ReduceOp::Avg) divisors.push_back(size);
        for (std::int64_t index = 0; index < 8; ++index) {
          std::uint64_t expected = pattern.expected_bits(index, request.addends_wanted(1));
          for (int round = 0; round < 3; ++round)
            REQUIRE(nested(prng, request, ReduceOp::Sum, addends_of(pattern, index, size),
                           divisors) == expected);
        }
      }
}

TEST_CASE("a fold tells elements apart, and a missing addend shows") {
  for (DType dtype : kReduced)
    for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Min, ReduceOp::Max,
                        ReduceOp::Product, ReduceOp::Band, ReduceOp::Bor, ReduceOp::Bxor}) {
      if (!can_reduce(op, dtype)) continue;
      Request request = fold_request({4}, dtype, {op}, {Placement::replicate()});
      Pattern pattern(request);
      std::set<std::uint64_t> different;
      std::int64_t shown = 0;
      for (std::int64_t index = 0; index < 64; ++index) {
        std::uint64_t whole = pattern.expected_bits(index, std::vector<std::int64_t>{0, 1, 2, 3});
        different.insert(whole);
        bool shows = false;
        for (std::int64_t missing = 0; missing < 4; ++missing) {
          std::vector<std::int64_t> others;
          for (std::int64_t addend = 0; addend < 4; ++addend)
            if (addend != missing) others.push_back(addend);
          shows = shows || pattern.expected_bits(index, others) != whole;
        }
        shown += shows;
      }
      INFO(fmt::format("{} {}", text(op), text(dtype)));
      CHECK(different.size() >= (dtype == DType::Bool ? 2u : 25u));
      // Of a bit that only one addend sets, or clears, 8-bit values have few.
      CHECK(shown >= (dtype == DType::Bool ? 3 : size_bytes(dtype) == 1 ? 30 : 40));
    }
}

TEST_CASE("a divisor whose odd part a dtype cannot hold leaves only zeros") {
  // 729 = 3^6 has 10 bits, bf16 holds 8: no multiple of it that is small enough exists but 0.
  Request request = fold_request({27, 27}, DType::BF16, {ReduceOp::Avg, ReduceOp::Avg},
                                 {Placement::replicate(), Placement::replicate()});
  Pattern pattern(request);
  for (std::int64_t addend = 0; addend < 729; ++addend) CHECK(pattern.source_bits(5, addend) == 0);
  CHECK(pattern.expected_bits(5, request.addends_wanted(0)) == 0);
}

TEST_CASE("where not all addends can be non-zero some are, and the fold tells elements apart") {
  // bf16 is exact up to 256: of 300 as of 512 addends every second may be -1, 0 or 1.
  for (std::int32_t n : {300, 512}) {
    Request request = fold_request({n}, DType::BF16, {ReduceOp::Sum}, {Placement::replicate()});
    Pattern pattern(request);
    std::set<std::uint64_t> different;
    for (std::int64_t index = 0; index < 64; ++index) {
      std::vector<std::uint64_t> addends = addends_of(pattern, index, n);
      std::int64_t zeros = std::count(addends.begin(), addends.end(), 0);
      CHECK((zeros >= n / 2 && zeros < n * 7 / 8));
      different.insert(pattern.expected_bits(index, request.addends_wanted(0)));
    }
    CHECK(different.size() >= 10);
  }
}

TEST_CASE("as many factors are powers of two as a dtype has exponents, of more, every second") {
  struct Exponents {
    DType dtype;
    std::int32_t count;
    std::uint64_t one;
  };
  for (const Exponents& of : {Exponents{DType::F16, 14, 0x3c00},
                              {DType::BF16, 120, 0x3f80},
                              {DType::F32, 120, 0x3f800000},
                              {DType::F64, 1020, 0x3ff0000000000000}}) {
    std::uint64_t sign = std::uint64_t{1} << (8 * size_bytes(of.dtype) - 1);
    for (std::int32_t n : {of.count, of.count + 1}) {
      CAPTURE(text(of.dtype), n);
      Pattern pattern(fold_request({n}, of.dtype, {ReduceOp::Product}, {Placement::replicate()}));
      std::int64_t most = 0;
      for (std::int64_t index = 0; index < 64; ++index) {
        std::vector<std::uint64_t> factors = addends_of(pattern, index, n);
        most = std::max<std::int64_t>(
            most, std::count_if(factors.begin(), factors.end(),
                                [&](std::uint64_t bits) { return (bits & ~sign) != of.one; }));
      }
      if (n == of.count)
        CHECK(most > n / 2 + 1);
      else
        CHECK((most > 0 && most <= n / 2 + 1));
    }
  }
}
