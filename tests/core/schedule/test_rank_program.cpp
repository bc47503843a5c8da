// SPDX-License-Identifier: BSD-3-Clause
// Programs of ranks: what each does, and that all of them together do the plan, each part once.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/schedule/rank_program.h"
#include "core/schedule/transfers.h"
#include "tests/support/cases.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

namespace {

std::vector<Slot> all_slots(const Plan& plan) {
  std::vector<Slot> slots(plan.slot_count());
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

// How many entries of a step the programs claim, and how many there are.
struct Claims {
  std::size_t claimed = 0, there = 0;
};

Claims claims_of(const Step& step, const std::vector<const RankStep*>& parts,
                 const std::vector<Slot>& slots) {
  Claims out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const RankStep& part = *parts[i];
    Slot slot = slots[i];
    if (const auto* exchange = std::get_if<ExchangeStep>(&step.body)) {
      for (std::uint32_t m : part.sends) out.claimed += exchange->messages[m].source == slot;
      for (std::uint32_t m : part.receives)
        out.claimed += exchange->messages[m].destination == slot;
      CHECK(std::is_sorted(part.sends.begin(), part.sends.end()));
      for (std::size_t k = 1; k < part.receives.size(); ++k)
        CHECK(exchange->messages[part.receives[k - 1]].source <
              exchange->messages[part.receives[k]].source);
    } else if (const auto* collective = std::get_if<CollectiveStep>(&step.body)) {
      out.claimed += collective->group(static_cast<std::size_t>(
                         part.group))[static_cast<std::size_t>(part.member)] == slot;
    } else {
      auto count = [&](const auto& body) {
        for (std::uint32_t k = 0; k < part.part_count; ++k)
          out.claimed += body.parts[part.first_part + k].slot == slot;
      };
      if (const auto* copy = std::get_if<CopyStep>(&step.body)) count(*copy);
      if (const auto* fill = std::get_if<FillStep>(&step.body)) count(*fill);
      if (const auto* reduce = std::get_if<ReduceStep>(&step.body)) count(*reduce);
    }
  }
  for_each_slot(step, [&](Slot) { ++out.there; });
  return out;
}

}  // namespace

TEST_CASE("rank program: two ranks swap, two copy") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2x2"));
  Plan plan = plan_p2p(Request(parse_layout("4,4", "f32", mesh, "S(0)S(1)"),
                               parse_layout("4,4", "f32", mesh, "S(1)S(0)")),
                       {});
  std::vector<RankProgram> programs = rank_programs(plan, all_slots(plan));
  REQUIRE(programs.size() == 4);
  for (Slot slot : {0, 3}) {
    REQUIRE(programs[static_cast<std::size_t>(slot)].steps.size() == 1);
    CHECK(programs[static_cast<std::size_t>(slot)].steps[0].step == StepId{0});
    CHECK(programs[static_cast<std::size_t>(slot)].steps[0].part_count == 1);
  }
  REQUIRE(programs[1].steps.size() == 1);
  CHECK(programs[1].steps[0].step == StepId{1});
  CHECK(programs[1].steps[0].sends == std::vector<std::uint32_t>{0});
  CHECK(programs[1].steps[0].receives == std::vector<std::uint32_t>{1});
  const auto& exchange = std::get<ExchangeStep>(plan.steps[1].body);
  CHECK(message_bytes(plan, exchange, exchange.messages[0]) == 16);
}

TEST_CASE("rank program: dependencies name the rank's own earlier steps, others are passed over") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2"));
  Plan plan = plan_p2p(
      Request(parse_layout("4", "f32", mesh, "R"), parse_layout("4", "f32", mesh, "R")), {});
  plan.steps.clear();
  BufferId temporary = plan.add_temporary();
  for (Slot slot : {0, 1}) plan.buffer(temporary).set_shape(slot, Shape{4});
  auto copy = [&](std::vector<Slot> slots, BufferId from, BufferId to, std::vector<StepId> after) {
    CopyStep step{{}, MoveList(1)};
    for (Slot slot : slots) {
      step.parts.push_back({slot, {static_cast<std::uint32_t>(step.moves.size()), 1}});
      step.moves.push_back({from, to, DimVector{0}, DimVector{0}, DimVector{4}});
    }
    return plan.add_step(step, after);
  };
  StepId first = copy({1}, kSourceBuffer, temporary, {});
  StepId second = copy({0}, kSourceBuffer, temporary, {first});
  copy({0, 1}, temporary, kDestinationBuffer, {first, second});
  std::vector<RankProgram> programs = rank_programs(plan, all_slots(plan));
  CHECK(programs[0].steps[0].after.empty());
  CHECK(programs[0].steps[1].after == std::vector<std::int32_t>{0});
  CHECK(programs[1].steps[1].after == std::vector<std::int32_t>{0});
}

TEST_CASE("rank program: of 3,000 drawn plans every part belongs to one program") {
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  std::int64_t plans = 0;
  for (std::uint64_t seed = 1; plans < 3'000; ++seed) {
    Prng prng(seed);
    std::optional<Request> request = draw_request(prng);
    if (!request) continue;
    Plan plan =
        find_planner(request->same_mesh() && seed % 2 == 0 ? "rule" : "p2p").make(*request, input);
    ++plans;
    std::vector<RankProgram> programs = rank_programs(plan, all_slots(plan));
    std::vector<std::size_t> next(programs.size(), 0);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      std::vector<const RankStep*> parts;
      std::vector<Slot> slots;
      for (std::size_t p = 0; p < programs.size(); ++p)
        if (next[p] < programs[p].steps.size() &&
            programs[p].steps[next[p]].step == StepId{static_cast<std::int32_t>(s)}) {
          parts.push_back(&programs[p].steps[next[p]++]);
          slots.push_back(programs[p].slot);
        }
      Claims claims = claims_of(plan.steps[s], parts, slots);
      INFO("seed " << seed << ", step " << s);
      CHECK(claims.claimed == claims.there);
    }
    for (std::size_t p = 0; p < programs.size(); ++p) CHECK(next[p] == programs[p].steps.size());
    // One program alone is the same as among all.
    std::vector<RankProgram> alone =
        rank_programs(plan, std::vector<Slot>{static_cast<Slot>(plan.slot_count() - 1)});
    REQUIRE(alone.size() == 1);
    REQUIRE(alone[0].steps.size() == programs.back().steps.size());
    for (std::size_t i = 0; i < alone[0].steps.size(); ++i) {
      CHECK(alone[0].steps[i].sends == programs.back().steps[i].sends);
      CHECK(alone[0].steps[i].receives == programs.back().steps[i].receives);
      CHECK(alone[0].steps[i].after == programs.back().steps[i].after);
    }
  }
}
