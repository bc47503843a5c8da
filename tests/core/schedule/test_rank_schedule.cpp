// SPDX-License-Identifier: BSD-3-Clause
// Schedules of ranks: what each rank does, that all of them together mean the plan whichever
// collectives stay native, and that launches may start as soon as the launches that they wait for
// are done.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/schedule/collective_messages.h"
#include "tests/core/schedule/adversary.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

namespace {

std::string refuted(const Plan& plan, const SchedulePolicy& policy) {
  std::optional<Refutation> wrong =
      check_schedules(plan, rank_schedules(plan, all_slots(plan), policy));
  return wrong ? wrong->what : "";
}

SchedulePolicy divided_apart() { return {{}, false}; }

SchedulePolicy gathers_native() {
  return {[](const CollectiveFacts& facts) { return !facts.folds(); }};
}

Plan planned(const char* mesh, const char* shape, const char* from, const char* to,
             const char* planner, const char* dtype = "f32") {
  auto held = std::make_shared<const Mesh>(parse_mesh(mesh));
  Topology topology = star(held->size());
  PlannerInput input;
  input.topology = &topology;
  return find_planner(planner).make(
      Request(parse_layout(shape, dtype, held, from), parse_layout(shape, dtype, held, to)), input);
}

}  // namespace

TEST_CASE("rank schedule: two ranks swap, two copy") {
  Plan plan = planned("2x2", "4,4", "S(0)S(1)", "S(1)S(0)", "p2p");
  std::vector<RankSchedule> all = rank_schedules(plan, all_slots(plan), {});
  REQUIRE(all.size() == 4);
  for (Slot slot : {0, 3}) {
    REQUIRE(all[static_cast<std::size_t>(slot)].launches.size() == 1);
    const Launch& copy = all[static_cast<std::size_t>(slot)].launches[0];
    CHECK(copy.step == StepId{0});
    CHECK(std::get<LocalWork>(copy.work).copies.size() == 1);
  }
  REQUIRE(all[1].launches.size() == 1);
  CHECK(all[1].launches[0].step == StepId{1});
  const auto& swap = std::get<Messages>(all[1].launches[0].work);
  REQUIRE((swap.sends.size() == 1 && swap.receives.size() == 1));
  CHECK((swap.sends[0].peer == 2 && swap.receives[0].peer == 2));
  CHECK(swap.sends[0].moves == std::get<Messages>(all[2].launches[0].work).receives[0].moves);
  CHECK(swap.sends[0].moves[0].extents == DimVector{2, 2});
}

TEST_CASE("rank schedule: launches wait for the rank's own earlier steps, others are skipped") {
  Plan plan = planned("2", "4", "R", "R", "p2p");
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
  std::vector<RankSchedule> all = rank_schedules(plan, all_slots(plan), {});
  CHECK(all[0].launches[0].after.empty());
  CHECK(all[0].launches[1].after == std::vector<std::int32_t>{0});
  CHECK(all[1].launches[1].after == std::vector<std::int32_t>{0});
}

TEST_CASE("rank schedule: an all_reduce by messages shares, folds in order and hands on") {
  Plan plan = planned("3", "8", "P(sum)", "R", "rule");
  std::vector<RankSchedule> all = rank_schedules(plan, all_slots(plan), no_native_collectives());
  for (Slot slot : {0, 1, 2}) {
    const std::vector<Launch>& launches = all[static_cast<std::size_t>(slot)].launches;
    REQUIRE(launches.size() == 3);
    CHECK(launches[0].after.empty());
    CHECK(launches[1].after == std::vector<std::int32_t>{0});
    CHECK(launches[2].after == std::vector<std::int32_t>{1});
    CHECK(launches[0].group == std::vector<Slot>{0, 1, 2});
    // Shares of 3, 3 and 2.
    std::int64_t mine = slot == 2 ? 2 : 3;
    const auto& fold = std::get<LocalWork>(launches[1].work).folds.at(0);
    CHECK(fold.extents == DimVector{mine});
    REQUIRE(fold.operands.size() == 3);
    for (Slot m : {0, 1, 2})
      CHECK(fold.operands[static_cast<std::size_t>(m)] ==
            (m == slot ? Place{slot, kSourceBuffer, DimVector{3 * slot}}
                       : Place{slot, BufferId{2}, DimVector{m * mine}}));
    CHECK(std::get<Messages>(launches[2].work).sends.size() == 2);
  }
}

TEST_CASE("rank schedule: slots are asked for ascending, each once") {
  Plan plan = planned("3", "6", "S(0)", "R", "p2p");
  for (const std::vector<Slot>& slots : {std::vector<Slot>{1, 1}, {2, 1}, {-1}, {3}})
    CHECK_THROWS_AS(rank_schedules(plan, slots, {}), CheckFailure);
}

TEST_CASE("rank schedule: a division apart follows its collective, on what that left") {
  Plan plan = planned("2", "4", "P(avg)", "R", "rule");
  for (const RankSchedule& schedule : rank_schedules(plan, all_slots(plan), divided_apart())) {
    REQUIRE(schedule.launches.size() == 2);
    const auto& collective = std::get<NativeCollective>(schedule.launches[0].work);
    const auto& division = std::get<LocalWork>(schedule.launches[1].work);
    Place scratch{schedule.slot, BufferId{2}, DimVector{0}};
    CHECK(collective.divisor == 1);
    CHECK(collective.output.at == scratch);
    CHECK(schedule.launches[1].after == std::vector<std::int32_t>{0});
    CHECK(division.divisor == 2);
    CHECK(division.folds.at(0).operands == std::vector<Place>{scratch});
    CHECK(division.folds[0].to == Place{schedule.slot, kDestinationBuffer, DimVector{0}});
  }
  // What comes after the step waits for the division alone: that waits for the collective.
  plan = planned("2x2", "4", "S(0)P(avg)", "RR", "rule");
  for (const RankSchedule& schedule : rank_schedules(plan, all_slots(plan), divided_apart()))
    CHECK(schedule.launches.at(2).after == std::vector<std::int32_t>{1});
}

TEST_CASE("rank schedule: a policy sees the largest operand of a member, in bytes") {
  for (auto [from, to] : {std::pair{"S(0)", "R"}, std::pair{"P(sum)", "S(0)"}}) {
    Plan plan = planned("4", "8", from, to, "rule");
    int collectives = 0;
    for_each_collective(plan, [&](StepId, const CollectiveFacts& facts) {
      CHECK(facts.operand_bytes == 8 * 4);
      ++collectives;
    });
    CHECK(collectives == 1);
  }
}

TEST_CASE("rank schedule: a rank out of its place in its group is refuted") {
  Plan plan = planned("4", "8", "S(0)", "R", "rule");
  std::vector<RankSchedule> schedules = rank_schedules(plan, all_slots(plan), {});
  REQUIRE(!check_schedules(plan, schedules));
  std::get<NativeCollective>(schedules[2].launches.at(0).work).member = 1;
  CHECK(check_schedules(plan, schedules).has_value());
}

TEST_CASE("rank schedule: a launch that reads what it writes is refuted") {
  Plan plan = planned("2", "4", "R", "R", "p2p");
  plan.steps.clear();
  BufferId temporary = plan.add_temporary();
  CopyStep in{{}, MoveList(1)}, out = in;
  for (Slot slot : {0, 1}) {
    plan.buffer(temporary).set_shape(slot, Shape{4});
    auto at = static_cast<std::uint32_t>(slot);
    in.parts.push_back({slot, {at, 1}});
    out.parts.push_back({slot, {at, 1}});
    in.moves.push_back({kSourceBuffer, temporary, DimVector{0}, DimVector{0}, DimVector{4}});
    out.moves.push_back({temporary, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{4}});
  }
  plan.add_step(out, {plan.add_step(in, {})});
  std::vector<RankSchedule> schedules = rank_schedules(plan, all_slots(plan), {});
  REQUIRE(!check_schedules(plan, schedules));
  std::vector<Launch>& launches = schedules[1].launches;
  auto& first = std::get<LocalWork>(launches.at(0).work);
  const auto& second = std::get<LocalWork>(launches.at(1).work);
  first.copies.push_back(second.copies.at(0));
  launches.pop_back();
  CHECK(check_schedules(plan, schedules).has_value());
}

TEST_CASE("rank schedule: local work is its copies, then its fills, then its folds") {
  struct Seen : Operations {
    std::string out;
    void copy(const Place& from, const Place& to, const DimVector&) override {
      out += text(from.lo) + ">" + text(to.lo) + " ";
    }
    void fill(const Place& to, const DimVector&) override { out += "0>" + text(to.lo) + " "; }
    void fold(ReduceOp, std::int64_t divisor, std::span<const Place> operands, const Place& to,
              const DimVector&) override {
      for (const Place& operand : operands) out += text(operand.lo) + "+";
      out += "/" + std::to_string(divisor) + ">" + text(to.lo) + " ";
    }
  };
  auto place = [](std::int64_t lo) { return Place{0, kSourceBuffer, {lo}}; };
  LocalWork work;
  work.divisor = 2;
  work.copies = {{place(1), place(2), {1}}};
  work.fills = {{place(3), {1}}, {place(4), {1}}};
  work.folds = {{{place(5), place(6)}, place(7), {1}}, {{place(8)}, place(9), {1}}};
  REQUIRE(work.size() == 5);
  Seen all, one_by_one;
  work.run(all);
  CHECK(all.out == "1>2 0>3 0>4 5+6+/2>7 8+/2>9 ");
  for (std::size_t i = 0; i < work.size(); ++i) work.run_one(i, one_by_one);
  CHECK(one_by_one.out == all.out);
}

TEST_CASE("rank schedule: messages ascend by peer whatever the order of the group") {
  Plan plan = planned("[2,1,0]", "3", "S(0)", "R", "rule");
  std::vector<RankSchedule> all = rank_schedules(plan, all_slots(plan), no_native_collectives());
  CHECK(all[1].launches.at(0).group == std::vector<Slot>{2, 1, 0});
  for (Slot slot : {0, 1, 2}) {
    const auto& messages =
        std::get<Messages>(all[static_cast<std::size_t>(slot)].launches.at(0).work);
    REQUIRE((messages.sends.size() == 2 && messages.receives.size() == 2));
    CHECK(messages.sends[0].peer < messages.sends[1].peer);
    CHECK(messages.receives[0].peer < messages.receives[1].peer);
  }
}

TEST_CASE("shares of a box are even along its outermost dim that allows it") {
  Box box{{2, 0, 5}, {3, 16, 25}};
  CHECK(share_of(box, 1, 4) == Box{{2, 4, 5}, {3, 8, 25}});
  // 16 over 5 is uneven by a quarter, 20 over 5 is even.
  CHECK(share_of(box, 4, 5) == Box{{2, 0, 21}, {3, 16, 25}});
  // 17 over 4 is uneven by less than an eighth ... of 17 * 20 / 4 = 85, 5 * 20 = 100 is not.
  CHECK(share_of({{0, 0}, {17, 3}}, 0, 4) == Box{{0, 0}, {5, 3}});
  CHECK(share_of({{0, 0}, {35, 3}}, 3, 4) == Box{{27, 0}, {35, 3}});
  // Fewer elements than shares.
  CHECK(share_of({{0}, {2}}, 1, 4) == Box{{1}, {2}});
  CHECK(share_of({{0}, {2}}, 3, 4).empty());
}

TEST_CASE("rank schedules mean their plan whatever stays native, in any order of launches") {
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  int plans = 0, collectives = 0, folds = 0, joined = 0;
  for (std::uint64_t seed = 1; plans < 3'000 / kOneOf; ++seed) {
    Prng prng(seed);
    std::vector<Plan> parts;
    for (bool full = false; !full;) {
      std::optional<Request> request = draw_request(prng);
      if (!request) continue;
      parts.push_back(find_planner(request->same_mesh() && prng.below(4) > 0 ? "rule" : "p2p")
                          .make(*request, input));
      full = parts.size() > 1 || prng.below(4) > 0;
    }
    Plan plan = parts.size() > 1 ? join(parts) : std::move(parts.front());
    ++plans;
    joined += parts.size() > 1;
    for_each_collective(plan, [&](StepId, const CollectiveFacts& facts) {
      ++collectives;
      folds += facts.folds();
    });
    CAPTURE(seed);
    for (const SchedulePolicy& policy :
         {SchedulePolicy(), divided_apart(), gathers_native(), no_native_collectives()}) {
      REQUIRE(refuted(plan, policy) == "");
      Adversary all(plan, policy);
      REQUIRE(means_the_plan(plan, all));
    }
    // One schedule alone is the same as among all.
    auto last = static_cast<Slot>(plan.slot_count() - 1);
    RankSchedule alone = rank_schedules(plan, std::span(&last, 1), {}).front(),
                 among = rank_schedules(plan, all_slots(plan), {}).back();
    REQUIRE(alone.launches.size() == among.launches.size());
    for (std::size_t i = 0; i < alone.launches.size(); ++i) {
      CHECK(alone.launches[i].step == among.launches[i].step);
      CHECK(alone.launches[i].after == among.launches[i].after);
    }
  }
  CHECK(collectives > 1'000 / kOneOf);
  CHECK(folds > 400 / kOneOf);
  CHECK(joined > 500 / kOneOf);
}

TEST_CASE("rank schedules that were changed in one place are refuted") {
  int refutations = 0;
  for (auto [mesh, from, to] :
       {std::tuple{"4", "P(sum)", "R"}, std::tuple{"4", "P(sum)", "S(0)"},
        std::tuple{"2x2", "S(0)S(1)", "S(1)S(0)"}, std::tuple{"4", "S(0)", "R"}}) {
    Plan plan = planned(mesh, "8,8", from, to, "rule");
    std::vector<RankSchedule> good = rank_schedules(plan, all_slots(plan), no_native_collectives());
    auto expect_refuted = [&, from = from, to = to](auto&& change) {
      for (std::size_t i = 0; i < good[1].launches.size(); ++i) {
        std::vector<RankSchedule> bad = good;
        if (!change(bad[1].launches[i].work)) continue;
        CAPTURE(from, to, i);
        CHECK(check_schedules(plan, bad).has_value());
        ++refutations;
      }
    };
    expect_refuted([](auto& work) {
      auto* messages = std::get_if<Messages>(&work);
      if (messages == nullptr || messages->sends.empty()) return false;
      messages->sends.pop_back();
      return true;
    });
    expect_refuted([](auto& work) {
      auto* messages = std::get_if<Messages>(&work);
      if (messages == nullptr || messages->receives.empty()) return false;
      messages->receives.erase(messages->receives.begin());
      return true;
    });
    expect_refuted([](auto& work) {
      auto* messages = std::get_if<Messages>(&work);
      if (messages == nullptr || messages->sends.empty()) return false;
      messages->sends[0].moves[0].extents[1] -= 1;
      return true;
    });
    expect_refuted([](auto& work) {
      auto* local = std::get_if<LocalWork>(&work);
      if (local == nullptr || local->folds.empty()) return false;
      local->folds[0].operands.pop_back();
      return true;
    });
  }
  CHECK(refutations > 10);
}
