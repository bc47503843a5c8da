// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/plan/series.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// `box` with a first dim from 0 to `count`.
Box with_first(const Box& box, std::int64_t count) {
  Box out{DimVector(1, 0), DimVector(1, count)};
  for (int d = 0; d < box.dims(); ++d) {
    out.lo.push_back(box.lo[d]);
    out.hi.push_back(box.hi[d]);
  }
  return out;
}

void check_stacked(const Layout& one, std::int64_t count) {
  Layout all = one.stacked(count);
  REQUIRE(all.dims() == one.dims() + 1);
  CHECK(all.bytes() == count * one.bytes());
  for (std::int32_t position = 0; position < one.mesh().size(); ++position) {
    std::vector<Box> boxes = one.boxes(position);
    for (Box& box : boxes) box = with_first(box, count);
    CHECK(all.boxes(position) == boxes);
    CHECK(element_count(all.local_shape(position)) ==
          count * element_count(one.local_shape(position)));
  }
}

}  // namespace

TEST_CASE("a series has the tensors' elements, once for each") {
  int boxes = 0, products = 0;
  for (std::uint64_t seed = 1; seed <= 400 / kOneOf; ++seed) {
    Prng prng(seed);
    std::optional<Request> one =
        prng.one_in(2) ? draw_request(prng) : draw_request_with_boxes(prng, 8);
    if (!one || in_series(std::vector{*one, *one}).requests.size() != 1) continue;
    CAPTURE(seed, one->text());
    std::int64_t count = prng.between(2, 5);
    Request series = one->as_series(count);
    CHECK(series.tensors() == count);
    CHECK(series.fingerprint() != Request(series.source(), series.destination()).fingerprint());
    CHECK(series.fingerprint() != one->as_series(count + 1).fingerprint());
    check_stacked(one->source(), count);
    check_stacked(one->destination(), count);
    ++(one->is_product() ? products : boxes);
  }
  CHECK(boxes > 40 / kOneOf);
  CHECK(products > 40 / kOneOf);
}

TEST_CASE("what is folded, divided or made Partial is in no series, nor what is in two stages") {
  auto request = [](const char* from, const char* to) {
    return parse_request({"4", "", "", "", "8,8", "", from, to});
  };
  std::vector<Request> job{request("S(0)", "R"),      request("P(sum)", "R"),
                           request("S(0)", "R"),      request("R", "P(sum)"),
                           request("S(0)", "P(sum)"), request("P(sum)", "R"),
                           request("R", "P(sum)"),    request("S(0)", "P(sum)"),
                           request("S(0)", "S(1)"),   request("S(0)", "R")};
  SeriesJob all = in_series(job);
  CHECK(all.requests.size() == 8);
  CHECK(all.tensors[0] == std::vector{TensorId{0}, TensorId{2}, TensorId{9}});
  CHECK(all.requests[0].text() == "f32[3,8,8] S(1) on 4 -> R");
  CHECK(tensor_count(all.requests) == 10);
  CHECK(all.tensor_count() == 10);
  TensorOrder order(job.size());
  order[TensorId{9}] = {TensorId{8}};
  SeriesJob staged = in_series(job, stages_of(order));
  CHECK(staged.requests.size() == 9);
  CHECK(staged.tensors[0] == std::vector{TensorId{0}, TensorId{2}});
  REQUIRE(staged.stages.size() == stages_of(order).size());
  std::set<TensorId> seen;
  for (const Stage& stage : staged.stages) seen.insert(stage.tensors.begin(), stage.tensors.end());
  CHECK(seen.size() == 9);
  // A dim more than tensors can have.
  Request most = parse_request({"2", "", "", "", "1,1,1,1,1,1,1,2", "", "R", "S(7)"});
  CHECK(in_series(std::vector{most, most}).requests.size() == 2);
  CHECK_THROWS_AS(most.as_series(2), InputError);
}

TEST_CASE("shares of strings are whole tensors and parts of one") {
  for (std::int64_t tensors = 1; tensors <= 4; ++tensors)
    for (std::int64_t each = 1; each <= 3; ++each)
      for (std::int64_t lo = 0; lo <= tensors * each; ++lo)
        for (std::int64_t hi = lo; hi <= tensors * each; ++hi) {
          CAPTURE(tensors, each, lo, hi);
          std::int64_t at = lo;
          for_each_share(
              tensors, lo, hi, tensors * each,
              [&](std::int64_t first, std::int64_t end, Int128 from, Int128 to, Int128 of) {
                CHECK(of == each);
                CHECK(first * each + static_cast<std::int64_t>(from) == at);
                if (end - first > 1) CHECK((from == 0 && to == of));
                CHECK(from < to);
                at = (end - 1) * each + static_cast<std::int64_t>(to);
              });
          CHECK(at == hi);
        }
}
