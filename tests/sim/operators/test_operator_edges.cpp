// SPDX-License-Identifier: BSD-3-Clause
// Arguments at the edge of their range, and missing arguments; the numbers are PyTorch 2.15's.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "core/base/errors.h"
#include "sim/operators/operators.h"
#include "sim/operators/random_stream.h"
#include "tests/support/attribute_list.h"

namespace reshard::sim {
namespace {

using test::with;

Array computed(std::string_view name, const std::vector<Array>& inputs,
               const OpAttributes& attributes = {}) {
  std::vector<ArrayArgument> arguments;
  for (const Array& input : inputs) arguments.push_back({false, {&input}});
  return compute(name, arguments, attributes, {}).at(0).value();
}

void check_near(const Array& found, const std::vector<double>& expected) {
  std::vector<double> all = values<double>(found);
  REQUIRE(all.size() == expected.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK(all[i] == Approx(expected[i]).margin(2e-5));
  }
}

OpValue list(const std::vector<std::int64_t>& of) { return OpValue(of); }
OpValue whole(std::int64_t of) { return OpValue(of); }

TEST_CASE("Fourier transforms along dims, halves of them, forward and back, in every norm") {
  const Array x = Array::of(DType::F32, Shape{3, 4},
                            std::vector<double>{1, -2, 3, .5, 0, 4, -1, 2, 2, 2, -3, 1});
  const Array z =
      computed("view_as_complex",
               {Array::of(DType::F32, Shape{3, 4, 2},
                          std::vector<double>{1,  1,   -2, 1, 3, -1.5, .5, .5, 0,  0,   4, 2,
                                              -1, -.5, 2,  1, 2, .5,   2,  -1, -3, 1.5, 1, .25})});
  auto transformed = [](const char* name, const Array& in, const OpAttributes& attributes) {
    Array out = computed(name, {in}, attributes);
    return out.dtype == DType::C64 ? computed("view_as_real", {out}) : out;
  };
  auto norm = [](std::int64_t of) { return std::pair("normalization", whole(of)); };
  check_near(transformed("_fft_r2c", x,
                         with({{"dim", list({0, 1})}, norm(1), {"onesided", OpValue(true)}})),
             {2.74241, 0.0, 1.1547, -0.14434, -1.58771, 0.0, -0.28868, -0.75, -1.69338, 2.1547,
              3.17543, 0.75, -0.28868, 0.75, -1.19338, 0.1547, 3.17543, -0.75});
  check_near(
      transformed("_fft_r2c", x,
                  with({{"dim", list({-2})}, norm(0), {"onesided", OpValue(false)}})),
      {3.0, 0.0,      4.0,  0.0,      -1.0, 0.0,      3.5,  0.0,     0.0, 1.73205, -5.0, -1.73205,
       5.0, -1.73205, -1.0, -0.86603, 0.0,  -1.73205, -5.0, 1.73205, 5.0, 1.73205, -1.0, 0.86603});
  check_near(
      transformed("_fft_c2c", z, with({{"dim", list({1})}, norm(0), {"forward", OpValue(true)}})),
      {2.5,  1.0,  -1.5, 5.0, 5.5, -2.0, -2.5, 0.0,  5.0,  2.5,  2.0,  -1.5,
       -7.0, -3.5, 0.0,  2.5, 2.0, 1.25, 3.75, -2.0, -4.0, 2.75, 6.25, 0.0});
  check_near(transformed("_fft_c2c", z,
                         with({{"dim", list({0, 1})}, norm(2), {"forward", OpValue(false)}})),
             {0.79167,  0.39583,  0.3125,   0.20833,  -0.45833, -0.22917, 0.35417,  0.125,
              -0.17354, 0.14359,  -0.64917, -0.55522, 1.36772,  -0.35192, -0.40067, 0.4362,
              0.00688,  -0.28942, -0.28833, 0.34689,  0.46561,  0.08109,  -0.3285,  0.6888});
  check_near(transformed("_fft_c2r", z,
                         with({{"dim", list({0, 1})}, norm(1), {"last_dim_size", whole(7)}})),
             {3.49149,  -0.33711, 1.26327,  -2.82417, -0.23628, 1.96033,  1.26505,
              -1.00338, -2.76615, -3.01122, 4.24485,  5.90364,  -1.516,   -1.19029,
              0.13051,  1.26838,  -1.76224, 1.1548,   2.39174,  -0.72097, -3.12367});
}

TEST_CASE("ranges that end where the dim does") {
  const Array numbers =
      Array::of(DType::I64, Shape{6}, std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  auto cut = [&](std::int64_t start, std::int64_t length) {
    return computed("narrow", {numbers},
                    with({{"dim", whole(0)}, {"start", whole(start)}, {"length", whole(length)}}));
  };
  CHECK(values<std::int64_t>(cut(-4, 4)) == std::vector<std::int64_t>{2, 3, 4, 5});
  CHECK(values<std::int64_t>(cut(0, 6)).size() == 6);
  CHECK(values<std::int64_t>(cut(6, 0)).empty());
  CHECK_THROWS_AS(cut(3, 4), InputError);
  CHECK_THROWS_AS(cut(7, 0), InputError);
}

TEST_CASE("windows of uneven sizes, each the mean of its own elements") {
  std::vector<double> twenty(20);
  for (std::size_t i = 0; i < twenty.size(); ++i) twenty[i] = static_cast<double>(i);
  check_near(computed("_adaptive_avg_pool2d", {Array::of(DType::F32, Shape{1, 1, 4, 5}, twenty)},
                      with({{"output_size", list({3, 2})}})),
             {3.5, 5.5, 8.5, 10.5, 13.5, 15.5});
}

TEST_CASE("the value that comes most often, of the last dim where none is said") {
  const Array of = Array::of(DType::I64, Shape{2, 3}, std::vector<std::int64_t>{1, 2, 2, 3, 3, 1});
  ArrayResults found = compute("mode", {{false, {&of}}}, {}, {});
  CHECK(values<std::int64_t>(*found[0]) == std::vector<std::int64_t>{2, 3});
  CHECK(values<std::int64_t>(*found[1]) == std::vector<std::int64_t>{2, 1});
}

TEST_CASE("special functions away from the middle") {
  auto of = [](const char* name, const std::vector<double>& at) {
    return computed(name, {Array::of(DType::F64, Shape{std::ssize(at)}, at)});
  };
  check_near(of("digamma", {-.5, -1.5, -2.25, .3}),
             {0.03648997397857639, 0.7031566406452433, 4.158583564657972, -3.502524222200133});
  check_near(of("special_ndtri", {1e-300, 1e-10, .02425, .02, .5, .9999999}),
             {-37.0470962993612, -6.361340902404056, -1.972961051311885, -2.053748910631823, 0.0,
              5.199337582290661});
}

TEST_CASE("padding may cut a dim to nothing, but no further") {
  const Array x = Array::of(DType::F32, Shape{2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6});
  auto padded = [&](const std::vector<std::int64_t>& by) {
    return computed("constant_pad_nd", {x}, with({{"pad", list(by)}, {"value", OpValue(9.0)}}));
  };
  CHECK(padded({-1, -2}).shape == Shape{2, 0});
  check_near(padded({-1, -2, 0, -1}), {});
  check_near(padded({-2, 1}), {3, 9, 6, 9});
  CHECK_THROWS_WITH(padded({-2, -2}), Catch::Contains("no more is cut than there is"));
}

TEST_CASE("an equation has a part for every tensor") {
  const Array a = Array::zeros(DType::F32, Shape{2, 2});
  for (const char* equation : {"ab,bc->ac", "ab,bc,cd,de->ae", "ab", "->"})
    CHECK_THROWS_WITH(
        compute("einsum", {{true, {&a, &a, &a}}}, with({{"equation", OpValue(equation)}}), {}),
        Catch::Contains("einsum"));
  CHECK(compute("einsum", {{true, {&a, &a, &a}}}, with({{"equation", OpValue("ab,bc,cd->ad")}}), {})
            .at(0)
            ->shape == Shape{2, 2});
}

// Two independent numbers of the four words: the radius of the first two, the angle of the others.
TEST_CASE("a normal number by Box and Muller") {
  const double quarter = RandomNumber{{0x80000000u, 0, 0x40000000u, 0}}.normal(),
               half = RandomNumber{{0x80000000u, 0, 0x80000000u, 0}}.normal(),
               low = RandomNumber{{0x80000000u, 0, 0, 0xffffffffu}}.normal();
  CHECK(quarter == Approx(0).margin(1e-12));
  CHECK(half == Approx(-std::sqrt(2 * std::log(2.0))));
  CHECK(low == Approx(std::sqrt(2 * std::log(2.0))));
  CHECK(RandomNumber{{0x40000000u, 0, 0, 0}}.unit() == 0.25);
  CHECK(RandomNumber{{0x40000000u, 0, 0, 0}}.above_zero() == 0.75);
}

}  // namespace
}  // namespace reshard::sim
