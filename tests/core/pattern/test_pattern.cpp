// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "core/base/errors.h"
#include "core/pattern/pattern.h"
#include "tests/support/oracle.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

const std::vector<DType> kAllDTypes{
    DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2, DType::I64,
    DType::I32, DType::I16, DType::I8,  DType::U8,   DType::Bool,   DType::C64};

Request request_of(const char* mesh, const char* shape, std::string_view dtype, const char* from,
                   const char* to) {
  auto ref = std::make_shared<const Mesh>(parse_mesh(mesh));
  return Request(parse_layout(shape, dtype, ref, from), parse_layout(shape, dtype, ref, to));
}

// Whether the exponent field of a float is all ones (of e4m3, which has no infinity: the one NaN
// pattern).
bool is_special(DType dtype, std::uint64_t bits) {
  auto all = [&](std::uint64_t mask) { return (bits & mask) == mask; };
  switch (dtype) {
    case DType::F64:
      return all(0x7ff0000000000000);
    case DType::F32:
      return all(0x7f800000);
    case DType::F16:
      return all(0x7c00);
    case DType::BF16:
      return all(0x7f80);
    case DType::F8E4M3:
      return all(0x7f);
    case DType::F8E5M2:
      return all(0x7c);
    case DType::C64:
      return all(0x7f800000) || all(0x7f80000000000000);
    default:
      return false;
  }
}

}  // namespace

TEST_CASE("the mix is splitmix64") {
  // The first outputs of splitmix64 from seed 0, whose state after n steps is n times the golden
  // gamma.
  CHECK(mix(0) == 0xe220a8397b1dcdafu);
  CHECK(mix(0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4u);
}

TEST_CASE("moved values are the mix cut to the dtype, finite, and of every kind") {
  for (DType dtype : kAllDTypes) {
    Pattern pattern(request_of("4", "4096", text(dtype), "S(0)", "R"));
    std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * size_bytes(dtype));
    std::set<std::uint64_t> different;
    std::int64_t as_mixed = 0;
    for (std::int64_t i = 0; i < 4096; ++i) {
      std::uint64_t bits = pattern.source_bits(i, 0);
      CHECK((bits & ~mask) == 0);
      CHECK(!is_special(dtype, bits));
      as_mixed += bits == (mix(static_cast<std::uint64_t>(i)) & (dtype == DType::Bool ? 1 : mask));
      different.insert(bits);
    }
    INFO(text(dtype));
    // Only what was infinite or NaN differs from the mix: at most one exponent of four (e5m2: 8 of
    // 256 bit patterns).
    CHECK(as_mixed >= (is_floating(dtype) || dtype == DType::C64 ? 3900 : 4096));
    std::size_t most = size_bytes(dtype) >= 8   ? 4096
                       : size_bytes(dtype) >= 4 ? 4090
                       : size_bytes(dtype) == 2 ? 3900
                       : dtype == DType::Bool   ? 2
                                                : 247;
    CHECK(different.size() >= most);
  }
}

TEST_CASE("addends that are only kept differ between ranks") {
  Request request = request_of("4", "64", "i8", "P(sum)", "P(sum)");
  Pattern pattern(request);
  std::int64_t equal = 0;
  for (std::int64_t i = 0; i < 64; ++i)
    equal += pattern.source_bits(i, 0) == pattern.source_bits(i, 1);
  CHECK(equal < 8);
}

TEST_CASE("fill is source_bits of the elements that the rank holds, for every kind of layout") {
  Prng prng(7);
  for (const char* placements :
       {"S(0)S(1)", "_S(0,3)S(0)", "S(1)_S(1,2)", "RS(2)", "S(2)S(2)", "RR", "_S(2,2)S(1)"})
    for (const char* shape : {"5,4,7", "1,6,1", "3,0,2", "8,8,8", "2,3,1", "3,4,2"})
      for (DType dtype : kAllDTypes) {
        auto mesh = std::make_shared<const Mesh>(parse_mesh("2x3"));
        Layout layout = parse_layout(shape, text(dtype), mesh, placements);
        Pattern pattern(Request(layout, layout));
        auto width = static_cast<std::size_t>(size_bytes(dtype));
        for (std::int32_t p = 0; p < 6; ++p) {
          std::vector<std::int64_t> elements = held_elements(layout, p);
          std::vector<std::byte> bytes(elements.size() * width), expected(bytes.size());
          pattern.fill(layout, p, 0, bytes);
          for (std::size_t i = 0; i < elements.size(); ++i) {
            std::uint64_t bits = pattern.source_bits(elements[i], 0);
            std::memcpy(expected.data() + i * width, &bits, width);
          }
          REQUIRE(bytes == expected);
          REQUIRE(!pattern.check(layout, p, std::vector<std::int64_t>{0}, bytes));
        }
      }
}

TEST_CASE("tensors of one plan differ, and each is checked against its own values") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2"));
  for (const char* placement : {"S(0)", "P(sum)", "P(product)", "P(max)", "P(avg)"})
    for (const char* dtype : {"f32", "i16", "c64"}) {
      if (dtype != std::string("f32") &&
          (placement == std::string("P(max)") || placement == std::string("P(avg)")))
        continue;
      Request request(parse_layout("64", dtype, mesh, placement),
                      parse_layout("64", dtype, mesh, "R"));
      Pattern first(request), second(request, TensorId{1});
      std::vector<std::int64_t> addends = request.addends_wanted(0);
      auto width = static_cast<std::size_t>(size_bytes(request.dtype()));
      std::vector<std::byte> bytes(64 * width), filled(bytes.size() / 2);
      int equal = 0;
      for (std::int64_t i = 0; i < 64; ++i) {
        equal += first.source_bits(i, 0) == second.source_bits(i, 0);
        std::uint64_t bits = second.expected_bits(i, addends);
        std::memcpy(bytes.data() + static_cast<std::size_t>(i) * width, &bits, width);
      }
      CAPTURE(placement, dtype);
      CHECK(equal < 32);
      CHECK_FALSE(second.check(request.destination(), 0, addends, bytes));
      CHECK(first.check(request.destination(), 0, addends, bytes));
      bytes[5 * width] ^= std::byte{1};
      CHECK(second.check(request.destination(), 0, addends, bytes)->index == 5);
      if (placement != std::string("S(0)")) continue;
      second.fill(request.source(), 1, 0, filled);
      CHECK(std::memcmp(filled.data(), bytes.data() + filled.size(), filled.size()) == 0);
    }
}

TEST_CASE("check demands zeros where S -> P(sum) leaves them") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2x2"));
  for (const char* from : {"S(0)S(1)", "S(0)P(sum)"}) {
    Request request(parse_layout("3,4", "f32", mesh, from),
                    parse_layout("3,4", "f32", mesh, "P(sum)R"));
    Pattern pattern(request);
    std::vector<std::int64_t> addends = request.addends_wanted(2);
    // Rank 2 owns row 2.
    std::vector<std::byte> bytes(12 * 4);
    for (std::size_t i = 8; i < 12; ++i) {
      std::uint64_t bits = pattern.expected_bits(static_cast<std::int64_t>(i), addends);
      std::memcpy(bytes.data() + i * 4, &bits, 4);
    }
    CHECK(!pattern.check(request.destination(), 2, addends, bytes));
    CHECK(pattern.check(request.destination(), 1, addends, bytes).value().count == 12);
    bytes[4 * 5] = std::byte{1};
    PatternMismatch wrong = pattern.check(request.destination(), 2, addends, bytes).value();
    CHECK(wrong.count == 1);
    CHECK(wrong.index == 5);
    CHECK(wrong.expected == 0);
    CHECK(wrong.found == 1);
  }
}

TEST_CASE("0-d tensors are one element") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2"));
  Layout layout = parse_layout("", "i32", mesh, "R");
  Pattern pattern(Request(layout, layout));
  std::vector<std::byte> bytes(4);
  pattern.fill(layout, 1, 0, bytes);
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data(), 4);
  CHECK(value == static_cast<std::uint32_t>(mix(0)));
}

TEST_CASE("a shard of another size is refused") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2"));
  Layout layout = parse_layout("4", "i32", mesh, "S(0)");
  Pattern pattern(Request(layout, layout));
  std::vector<std::byte> bytes(7);
  CHECK_THROWS_AS(pattern.fill(layout, 0, 0, bytes), CheckFailure);
  CHECK_THROWS_AS(pattern.check(layout, 0, std::vector<std::int64_t>{0}, bytes), CheckFailure);
}

TEST_CASE("check counts wrong elements and names the first") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("3"));
  for (const char* from : {"R", "P(sum)"}) {
    Request request(parse_layout("4,9", "f32", mesh, from),
                    parse_layout("4,9", "f32", mesh, "S(1)"));
    Pattern pattern(request);
    std::vector<std::int64_t> addends = request.addends_wanted(1);
    std::vector<std::byte> bytes(12 * 4);
    for (std::size_t i = 0; i < 12; ++i) {
      std::uint64_t bits =
          pattern.expected_bits(static_cast<std::int64_t>(i / 3 * 9 + 3 + i % 3), addends);
      std::memcpy(bytes.data() + i * 4, &bits, 4);
    }
    CHECK(!pattern.check(request.destination(), 1, addends, bytes));
    bytes[4 * 7 + 1] ^= std::byte{1};  // row 2, second column of the shard: global [2,4]
    bytes[4 * 11] ^= std::byte{0x80};
    std::optional<PatternMismatch> wrong = pattern.check(request.destination(), 1, addends, bytes);
    REQUIRE(wrong);
    CHECK(wrong->count == 2);
    CHECK(wrong->index == 2 * 9 + 4);
    CHECK(wrong->expected == pattern.expected_bits(22, addends));
    CHECK(wrong->found == (wrong->expected ^ 0x100));
  }
}
