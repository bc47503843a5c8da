// SPDX-License-Identifier: BSD-3-Clause
// Streams and waits: every dependency is kept, none is waited for twice, and independent work has
// its own stream.
#include <catch2/catch.hpp>

#include "core/proof/proof.h"
#include "core/schedule/step_streams.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

using Before = std::vector<std::vector<std::int32_t>>;

// Which steps are complete when a step starts, from stream order and a choice of the waits alone.
std::vector<std::vector<bool>> complete_before(const std::vector<StreamedStep>& steps,
                                               std::size_t without_step = SIZE_MAX,
                                               std::size_t without_wait = 0) {
  std::vector<std::vector<bool>> out(steps.size(), std::vector<bool>(steps.size()));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto take = [&](std::size_t step) {
      out[i][step] = true;
      for (std::size_t k = 0; k < step; ++k) out[i][k] = out[i][k] || out[step][k];
    };
    for (std::size_t k = 0; k < i; ++k)
      if (steps[k].stream == steps[i].stream) take(k);
    for (std::size_t w = 0; w < steps[i].waits.size(); ++w)
      if (i != without_step || w != without_wait) take(static_cast<std::size_t>(steps[i].waits[w]));
  }
  return out;
}

bool keeps(const Before& before, const std::vector<std::vector<bool>>& complete) {
  for (std::size_t i = 0; i < before.size(); ++i)
    for (std::int32_t step : before[i])
      if (!complete[i][static_cast<std::size_t>(step)]) return false;
  return true;
}

}  // namespace

TEST_CASE("drawn graphs: all dependencies are kept, and no wait can be left out") {
  std::int64_t waits = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng prng(seed);
    Before before(static_cast<std::size_t>(prng.between(1, 24)));
    for (std::size_t i = 0; i < before.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (prng.one_in(5)) before[i].push_back(static_cast<std::int32_t>(k));
    int streams = static_cast<int>(prng.between(1, 5));
    std::vector<StreamedStep> steps = assign_streams(before, streams);
    INFO("seed " << seed);
    REQUIRE(steps.size() == before.size());
    REQUIRE(keeps(before, complete_before(steps)));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      REQUIRE((steps[i].stream >= 0 && steps[i].stream < streams));
      for (std::size_t w = 0; w < steps[i].waits.size(); ++w) {
        REQUIRE_FALSE(keeps(before, complete_before(steps, i, w)));
        ++waits;
      }
    }
  }
  CHECK(waits > 500);
}

TEST_CASE(
    "a chain stays on one stream, independent steps spread, more of them than streams share") {
  auto streams_of = [](const Before& before, int streams) {
    std::vector<int> out;
    for (const StreamedStep& step : assign_streams(before, streams)) {
      CHECK(step.waits.empty());
      out.push_back(step.stream);
    }
    return out;
  };
  CHECK(streams_of({{}, {0}, {1}, {2}}, 4) == std::vector<int>{0, 0, 0, 0});
  CHECK(streams_of({{}, {}, {}, {1}, {0}, {2}}, 4) == std::vector<int>{0, 1, 2, 1, 0, 2});
  CHECK(streams_of({{}, {}, {}, {}, {}}, 2) == std::vector<int>{0, 1, 0, 1, 0});
}

TEST_CASE("a temporary that takes over memory waits for all who use what lay there") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("1"));
  Plan plan(Request(parse_layout("64", "f32", mesh, "R"), parse_layout("64", "f32", mesh, "R")),
            "by hand");
  BufferId first = plan.add_temporary(), second = plan.add_temporary();
  for (BufferId id : {first, second}) plan.buffer(id).set_shape(0, Shape{32});
  auto copy = [&](BufferId from, std::int64_t from_lo, BufferId to, std::int64_t to_lo,
                  std::int64_t extent, std::vector<StepId> after) {
    CopyStep step{{{0, {0, 1}}}, MoveList(1)};
    step.moves.push_back({from, to, DimVector{from_lo}, DimVector{to_lo}, DimVector{extent}});
    return plan.add_step(step, std::move(after));
  };
  StepId in = copy(kSourceBuffer, 0, first, 0, 32, {});
  copy(first, 0, kDestinationBuffer, 0, 16, {in});
  copy(first, 16, kDestinationBuffer, 16, 16, {in});
  StepId other = copy(kSourceBuffer, 32, second, 0, 32, {});
  copy(second, 0, kDestinationBuffer, 32, 32, {other});
  prove(plan);
  std::vector<TemporaryLayout> layouts{
      lay_out_temporaries(temporary_lives(plan, lives_of(plan), 0), 256)};
  REQUIRE(layouts[0].total_bytes == 128);  // one after the other in the same place
  CHECK(steps_before(plan, layouts) == Before{{}, {0}, {0}, {0, 1, 2}, {3}});
}
