// SPDX-License-Identifier: BSD-3-Clause
// Which lanes a timeline has, and what happens to slices that are too short.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/page/panels/timeline_lanes.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

constexpr LaneLimits kAll = {.ranks_apart = 100, .lanes = 100, .slices = 100'000};

std::string_view kind_of(const Span& span) { return span.step % 2 == 0 ? "even" : "odd"; }

Timeline timeline_of(std::vector<Span> spans) {
  Timeline out;
  for (const Span& span : spans) out.end_ps = std::max(out.end_ps, span.end_ps);
  out.spans = std::move(spans);
  return out;
}

// `ranks` ranks that each do step 0 and, those that are multiples of three, step 1 behind it.
Timeline two_sorts(std::int32_t ranks) {
  std::vector<Span> spans;
  for (std::int32_t r = 0; r < ranks; ++r) spans.push_back({OpId{0}, 0, Rank{r}, 0, 4000});
  for (std::int32_t r = 0; r < ranks; r += 3) spans.push_back({OpId{0}, 1, Rank{r}, 4000, 9000});
  return timeline_of(spans);
}

}  // namespace

TEST_CASE("few ranks have a lane each, many share one with those that do the same") {
  Lanes apart = lanes_of(two_sorts(9), kAll, kind_of);
  CHECK(apart.lanes.size() == 9);
  CHECK(apart.ranks == 9);
  Lanes shared = lanes_of(two_sorts(9), {.ranks_apart = 8, .lanes = 9, .slices = 100}, kind_of);
  REQUIRE(shared.lanes.size() == 2);
  CHECK(shared.all_lanes == 2);
  CHECK(shared.lanes[0].ranks == std::vector{Rank{0}, Rank{3}, Rank{6}});
  CHECK(shared.lanes[1].ranks.size() == 6);
  REQUIRE(shared.lanes[0].rows.size() == 1);
  REQUIRE(shared.lanes[0].rows[0].size() == 2);
  const LaneSlice& second = shared.lanes[0].rows[0][1];
  CHECK(second.start_ps == 4000);
  CHECK(second.end_ps == 9000);
  CHECK(second.kind == "odd");
  CHECK(second.step == 1);
  CHECK(second.parts == 1);
  CHECK(shared.together_ps == 0);
}

TEST_CASE("a picosecond of difference is a lane of its own") {
  const Span first{OpId{0}, 0, Rank{0}, 10, 50}, second{OpId{0}, 1, Rank{0}, 60, 90};
  auto changed = [&](auto change) {
    std::vector<Span> spans{first, second};
    for (std::int32_t rank : {1, 2})
      for (Span span : {first, second}) {
        span.rank = Rank{rank};
        if (rank == 1 && span.step == 0) change(span);
        spans.push_back(span);
      }
    return lanes_of(timeline_of(spans), {.ranks_apart = 1, .lanes = 9, .slices = 9}, kind_of);
  };
  CHECK(changed([](Span&) {}).lanes.size() == 1);
  for (const Lanes& lanes :
       {changed([](Span& span) { ++span.start_ps; }), changed([](Span& span) { ++span.end_ps; }),
        changed([](Span& span) { span.step = 7; }),
        changed([](Span& span) { span.op = OpId{1}; })}) {
    REQUIRE(lanes.lanes.size() == 2);
    CHECK(lanes.lanes[0].ranks == std::vector{Rank{0}, Rank{2}});
  }
}

TEST_CASE("of too many lanes some are kept, among them the one that ends last") {
  for (std::int32_t last : {0, 7, 40, 98, 99}) {
    std::vector<Span> spans;
    for (std::int32_t r = 0; r < 100; ++r)
      spans.push_back({OpId{0}, 0, Rank{r}, r, r == last ? 10'000 : 1000});
    Lanes lanes =
        lanes_of(timeline_of(spans), {.ranks_apart = 8, .lanes = 8, .slices = 99}, kind_of);
    CHECK(lanes.all_lanes == 100);
    REQUIRE(lanes.lanes.size() == 8);
    auto rank_of = [](const Lane& lane) { return lane.ranks.front(); };
    CHECK(std::count_if(lanes.lanes.begin(), lanes.lanes.end(),
                        [&](const Lane& lane) { return rank_of(lane) == Rank{last}; }) == 1);
    for (std::size_t i = 1; i < 8; ++i)
      CHECK(rank_of(lanes.lanes[i - 1]) < rank_of(lanes.lanes[i]));
  }
}

TEST_CASE("what overlaps on a rank lies in rows, what takes no time nowhere") {
  Timeline timeline = timeline_of({{OpId{0}, 0, Rank{0}, 0, 50},
                                   {OpId{1}, 0, Rank{0}, 10, 60},
                                   {OpId{2}, 0, Rank{0}, 20, 20},
                                   {OpId{3}, 0, Rank{0}, 50, 70}});
  Lanes lanes = lanes_of(timeline, kAll, kind_of);
  REQUIRE(lanes.lanes.size() == 1);
  REQUIRE(lanes.lanes[0].rows.size() == 2);
  CHECK(lanes.lanes[0].rows[0].size() == 2);
  CHECK(lanes.lanes[0].rows[1].size() == 1);
}

TEST_CASE("what a rank does beyond six things at a time shares the last row") {
  for (std::size_t at_a_time : {6u, 8u}) {
    std::vector<Span> spans;
    for (std::size_t i = 0; i < at_a_time; ++i)
      spans.push_back({id_of<OpId>(i), 0, Rank{0}, static_cast<std::int64_t>(i), 50});
    Lanes lanes = lanes_of(timeline_of(spans), kAll, kind_of);
    CHECK(lanes.crowded == (at_a_time > 6));
    REQUIRE(lanes.lanes.at(0).rows.size() == 6);
    CHECK(lanes.lanes[0].rows[5].size() == at_a_time - 5);
  }
}

TEST_CASE("slices too many to draw are put together, and none is lost") {
  std::vector<Span> spans;
  for (std::int32_t step = 0; step < 4000; ++step)
    spans.push_back({OpId{0}, step, Rank{0}, 10 * step, 10 * step + 10});
  spans.push_back({OpId{0}, 4000, Rank{0}, 40'000, 80'000});
  Lanes lanes = lanes_of(timeline_of(spans), {.ranks_apart = 1, .lanes = 1, .slices = 50}, kind_of);
  const std::vector<LaneSlice>& row = lanes.lanes.at(0).rows.at(0);
  CHECK(row.size() <= 50);
  CHECK(row.size() > 20);  // no further than need be
  std::int64_t parts = 0, at_ps = 0;
  for (const LaneSlice& slice : row) {
    CHECK(slice.start_ps == at_ps);
    at_ps = slice.end_ps;
    parts += slice.parts;
    bool is_long = slice.end_ps - slice.start_ps >= lanes.together_ps;
    CHECK(is_long == (slice.start_ps == 40'000));
    CHECK(slice.kind == (is_long ? "even" : kSeveralKinds));
  }
  CHECK(at_ps == 80'000);
  CHECK(parts == 4001);
}
