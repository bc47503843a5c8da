// SPDX-License-Identifier: BSD-3-Clause
// Streams of a plan: steps share one where nothing is lost by that, and only there.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "core/base/errors.h"
#include "core/plan/join.h"
#include "core/plan/streams.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/text/plan_text.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// Steps of an empty job of one element on each of four ranks; what they move does not matter here.
class Steps {
 public:
  Steps() : plan(request(), "by hand") {}

  // Ranks that exchange something.
  Steps& exchange(std::vector<std::pair<Slot, Slot>> pairs, std::vector<int> after = {}) {
    ExchangeStep step{{}, MoveList(1)};
    for (auto [source, destination] : pairs) {
      step.messages.push_back(
          {source, destination, {static_cast<std::uint32_t>(step.moves.size()), 1}});
      step.moves.push_back(
          {kSourceBuffer, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{1}});
    }
    return add(step, after);
  }
  Steps& copy(std::vector<Slot> slots, std::vector<int> after = {}) {
    CopyStep step{{}, MoveList(1)};
    for (Slot slot : slots) {
      step.parts.push_back({slot, {static_cast<std::uint32_t>(step.moves.size()), 1}});
      step.moves.push_back(
          {kSourceBuffer, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{1}});
    }
    return add(step, after);
  }

  std::vector<std::int32_t> streams() {
    assign_streams(plan);
    std::vector<std::int32_t> out;
    for (const Step& step : plan.steps) out.push_back(step.stream);
    return out;
  }

  Plan plan;

 private:
  static Request request() {
    auto mesh = std::make_shared<const Mesh>(parse_mesh("4"));
    return {parse_layout("4", "f32", mesh, "S(0)"), parse_layout("4", "f32", mesh, "S(0)")};
  }
  Steps& add(StepBody body, const std::vector<int>& after) {
    std::vector<StepId> ids;
    for (int step : after) ids.push_back(StepId{step});
    plan.add_step(std::move(body), std::move(ids));
    return *this;
  }
};

using List = std::vector<std::int32_t>;
using Pairs = std::vector<std::pair<Slot, Slot>>;

const Pairs kLow{{0, 1}}, kHigh{{2, 3}}, kAll{{0, 1}, {1, 2}, {2, 3}};

}  // namespace

TEST_CASE("streams: steps in turn share one, and so do steps of other ranks") {
  CHECK(Steps().exchange(kAll).exchange(kAll, {0}).exchange(kAll, {1}).streams() == List{0, 0, 0});
  CHECK(Steps().exchange(kLow).exchange(kHigh).streams() == List{0, 0});
}

TEST_CASE("streams: steps that may overlap on one rank have different ones") {
  Steps steps;
  CHECK(steps.exchange(kAll).exchange(kAll).exchange(kAll, {0}).exchange(kAll, {1}).streams() ==
        List{0, 1, 0, 1});
  CHECK(stream_count(steps.plan) == 2);
  // Ranks 1 and 2 take part in both; that the others do not is no help.
  CHECK(Steps().exchange({{0, 1}}).exchange({{1, 2}}).streams() == List{0, 1});
}

TEST_CASE("streams: with as many as there may be, a step comes after those of the idlest") {
  Steps steps;
  for (int i = 0; i < kMaxStreams; ++i) steps.exchange(kAll);
  steps.exchange(kAll, {1}).exchange(kAll).exchange(kAll);
  CHECK(steps.streams() == List{0, 1, 2, 3, 1, 0, 2});
  CHECK(!assign_streams(steps.plan));  // nothing changes
}

TEST_CASE("streams: copies hold up a stream only by what they wait for") {
  // One that waits for nothing.
  CHECK(Steps().copy({0, 1}).exchange(kLow).streams() == List{0, 0});
  // One that waits for what the next exchange waits for, too.
  CHECK(Steps().exchange(kLow).copy({1}, {0}).exchange(kLow, {0}).streams() == List{0, 0, 0});
  // The copy waits for both exchanges, the third exchange for the first only.
  Steps steps;
  steps.exchange(kLow).exchange(kLow).copy({0, 1}, {0, 1}).exchange(kLow, {0});
  CHECK(steps.streams() == List{0, 1, 1, 0});
}

TEST_CASE("streams: every planner's plan is put on some") {
  Topology topology = star(8);
  PlannerInput input;
  input.topology = &topology;
  input.plan_time = [](const Plan& plan, const Topology&, std::int64_t) {
    return PlanTiming(static_cast<std::int64_t>(plan.steps.size()));
  };
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2x4"));
  std::vector<Request> requests;
  for (auto [from, to] : {std::pair("S(0)R", "RS(1)"),
                          {"P(sum)S(0)", "S(0)R"},
                          {"S(0)S(1)", "RR"},
                          {"RS(0)", "S(0)R"},
                          {"P(sum)P(sum)", "RS(0)"},
                          {"S(1)S(0)", "RR"}})
    requests.emplace_back(parse_layout("64,64", "f32", mesh, from),
                          parse_layout("64,64", "f32", mesh, to));
  for (const PlannerRow& row : planners()) {
    INFO(row.name);
    Plan plan = make_plan(row, Demand(requests), input);
    CHECK(stream_count(plan) <= kMaxStreams);
    if (row.each_tensor) CHECK(stream_count(plan) > 1);
  }
  // A job that is joined has no more than one that is planned at once.
  std::vector<Plan> plans;
  for (const Request& request : requests)
    plans.push_back(make_plan(find_planner("rule"), Demand(std::vector<Request>{request}), input));
  Plan joined = join(plans);
  CHECK(stream_count(joined) == kMaxStreams);
}

// What a step waits for on a rank if steps of one stream run in turn (nothing else orders them):
// all steps that communicate and must be done before it.
std::set<std::int32_t> waits_of(const Plan& plan, Slot slot, std::size_t step, bool in_turn) {
  std::set<std::int32_t> out;
  std::vector<std::size_t> left{step};
  auto has = [&](std::size_t s) {
    std::vector<Slot> slots = slots_of(plan.steps[s]);
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  };
  while (!left.empty()) {
    std::size_t at = left.back();
    left.pop_back();
    std::vector<std::size_t> before;
    for (StepId id : plan.steps[at].after) before.push_back(to_index(id));
    if (in_turn)
      for (std::size_t s = 0; s < at; ++s)
        if (plan.steps[s].stream == plan.steps[at].stream) before.push_back(s);
    for (std::size_t s : before) {
      if (!has(s)) continue;
      if (communicates(plan.steps[s])) out.insert(static_cast<std::int32_t>(s));
      left.push_back(s);
    }
  }
  return out;
}

TEST_CASE("streams: of drawn plans they are few, and cost overlap only where all are in use") {
  Prng prng(71);
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  int several = 0, checked = 0;
  for (int draw = 0; draw < 300 / kOneOf; ++draw) {
    std::vector<Request> requests;
    for (std::size_t count = to_index(prng.between(1, 3)); requests.size() < count;)
      if (std::optional<Request> request = draw_request(prng)) requests.push_back(*request);
    for (const PlannerRow* row : own_planners()) {
      std::optional<Plan> plan = plan_by(*row, Demand(requests), input);
      if (!plan) continue;
      CHECK(stream_count(*plan) <= kMaxStreams);
      several += stream_count(*plan) > 1;
      prove(*plan);
      std::string text = to_text(*plan);
      CHECK(to_text(parse_plan(text, "streams.plan")) == text);
      if (stream_count(*plan) == kMaxStreams || plan->steps.size() > 40) continue;
      ++checked;
      for (std::size_t s = 0; s < plan->steps.size(); ++s)
        for (Slot slot : slots_of(plan->steps[s]))
          CHECK(waits_of(*plan, slot, s, true) == waits_of(*plan, slot, s, false));
    }
  }
  CHECK(several > 50 / kOneOf);
  CHECK(checked > 400 / kOneOf);
}
