// SPDX-License-Identifier: BSD-3-Clause
// What follows from random plans stays the same: what each rank does and waits for, the layout of
// its temporaries, and what the check says about schedules with one fault. Other tests check that
// it is right; this one that nothing has changed. To accept an intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_sweep "drawn schedules*"
//
// rewrites tests/sweep/data/schedules*.txt.
#include <catch2/catch.hpp>

#include <cctype>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/schedule/forwarding.h"
#include "core/schedule/held_memory.h"
#include "core/schedule/step_streams.h"
#include "tests/support/pinned.h"
#include "tests/support/plan_words.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

namespace {

using reshard::test::words;

std::string words(const Before& before) {
  std::string out;
  for (const std::vector<std::int32_t>& list : before) out += words(list);
  return out;
}

std::string words(const Messages& messages) {
  std::string out;
  for (const auto* list : {&messages.sends, &messages.receives}) {
    out += "messages ";
    for (const Messages::PeerMessage& message : *list) {
      out += word(message.peer);
      for (const PlacedMove& move : message.moves)
        out += words(move.from) + words(move.to) + words(move.extents);
    }
  }
  return out;
}
std::string words(const NativeCollective& whole, std::int32_t group_size) {
  return word(text(whole.kind)) + word(text(whole.op)) + word(whole.divisor) + word(whole.member) +
         words(whole.input.at) + words(whole.input.extents) + words(whole.output.at) +
         words(whole.output.extents) + word(whole.input_dim) + word(whole.output_dim) +
         word(count_of(whole, group_size));
}

std::string words(const TemporaryLayout& layout) {
  std::string out = words(layout.offset) + word(layout.total_bytes);
  for (const TemporaryLayout::Reuse& reuse : layout.reuses)
    out += fmt::format("{}<{} ", to_index(reuse.taken), to_index(reuse.taker));
  return out;
}
std::string words(const std::vector<BufferLife>& lives) {
  std::string out;
  for (const BufferLife& life : lives) out += word(life.bytes) + word(life.begin) + word(life.end);
  return out;
}

std::string words(const RankSchedule& schedule) {
  std::string out = word(schedule.slot);
  for (const Launch& launch : schedule.launches) {
    out += word(static_cast<std::int64_t>(to_index(launch.step))) + words(launch.after) +
           words(launch.group);
    if (const auto* local = std::get_if<LocalWork>(&launch.work)) {
      Words operations;
      local->run(operations);
      out += operations.out;
    } else if (const auto* messages = std::get_if<Messages>(&launch.work)) {
      out += words(*messages);
    } else {
      out += words(std::get<NativeCollective>(launch.work),
                   static_cast<std::int32_t>(launch.group.size()));
    }
  }
  for (const LocalBuffer& buffer : schedule.buffers)
    out += words(buffer.shape) + word(buffer.bytes()) + (buffer.temporary ? "t " : "");
  std::vector<BufferLife> lives = temporary_lives(schedule);
  TemporaryLayout layout = lay_out_temporaries(lives, 8);
  return out + words(lives) + words(layout) + words(launches_before(schedule, layout));
}

std::vector<SchedulePolicy> policies() {
  return {SchedulePolicy(), SchedulePolicy{{}, false},
          SchedulePolicy{[](const CollectiveFacts& facts) {
            return facts.contiguous && facts.operand_bytes > 40;
          }},
          no_native_collectives()};
}

std::vector<Slot> all_slots(const Plan& plan) {
  std::vector<Slot> slots(plan.slot_count());
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

std::string of_memory(const Plan& plan) {
  Lives lives = lives_of(plan);
  std::string out = words(lives.begin) + words(lives.end);
  std::vector<TemporaryLayout> layouts;
  for (Slot slot : all_slots(plan)) {
    std::vector<BufferLife> held = temporary_lives(plan, lives, slot);
    layouts.push_back(lay_out_temporaries(held, 16));
    out += words(held) + words(layouts.back());
  }
  Before before = steps_before(plan, layouts);
  out += words(before);
  for (int streams : {1, 2, 3, 5})
    for (const StreamedStep& step : assign_streams(before, streams))
      out += word(step.stream) + words(step.waits);
  for (bool forwards : {false, true}) {
    Forwarding forwarding(plan, forwards);
    Words operations;
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      forwarding.run(StepId{static_cast<std::int32_t>(s)}, operations);
    out += operations.out + words(forwarding.lives().begin) + words(forwarding.lives().end);
  }
  return out + words(held_temporaries(plan));
}

// One field of one rank's schedule changed, or one of its launches, messages, operations left out.
void break_schedule(Prng& prng, std::vector<RankSchedule>& all) {
  auto any = [&](auto& from) -> auto& {
    return from[to_index(prng.below(static_cast<std::int64_t>(from.size())))];
  };
  RankSchedule& schedule = any(all);
  if (schedule.launches.empty()) return;
  if (prng.one_in(8)) {
    schedule.launches.erase(schedule.launches.begin() +
                            prng.below(static_cast<std::int64_t>(schedule.launches.size())));
    return;
  }
  Launch& launch = any(schedule.launches);
  auto nudge = [&](DimVector& values) {
    std::int64_t by = prng.one_in(2) ? 1 : -1;
    values[static_cast<int>(prng.below(values.size()))] += by;
  };
  if (auto* local = std::get_if<LocalWork>(&launch.work)) {
    if (!local->folds.empty() && prng.one_in(2)) {
      LocalWork::Fold& fold = any(local->folds);
      if (prng.one_in(2) && fold.operands.size() > 1) return fold.operands.pop_back();
      if (prng.one_in(3)) local->divisor = 2;
      return nudge(prng.one_in(2) ? fold.to.lo : any(fold.operands).lo);
    }
    if (local->copies.empty()) return local->fills.clear();
    if (prng.one_in(3)) return local->copies.pop_back();
    PlacedMove& move = any(local->copies);
    return nudge(prng.one_in(2) ? move.from.lo : move.to.lo);
  }
  if (auto* messages = std::get_if<Messages>(&launch.work)) {
    auto& list = prng.one_in(2) ? messages->sends : messages->receives;
    if (list.empty()) return;
    if (prng.one_in(4)) {
      list.erase(list.begin() + prng.below(static_cast<std::int64_t>(list.size())));
      return;
    }
    Messages::PeerMessage& message = any(list);
    if (prng.one_in(4)) {
      Messages::PeerMessage again = message;
      return list.push_back(again);
    }
    if (prng.one_in(3)) {
      message.peer = prng.pick(all).slot;
      return;
    }
    PlacedMove& move = any(message.moves);
    return nudge(prng.one_in(2) ? move.from.lo : move.to.lo);
  }
  auto& whole = std::get<NativeCollective>(launch.work);
  if (prng.one_in(3)) {
    whole.member =
        static_cast<std::int32_t>(prng.below(static_cast<std::int64_t>(launch.group.size())));
    return;
  }
  if (prng.one_in(3)) return std::swap(any(launch.group), any(launch.group));
  whole.divisor *= prng.between(1, 2);
}

}  // namespace

TEST_CASE("drawn schedules and memory are what they were") {
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  Pinned pinned("tests/sweep/data/schedules.txt", 5);
  for (std::uint64_t seed = 0; seed < 1'500 / kOneOf; ++seed) {
    CAPTURE(seed);
    Prng prng(seed + 1'700'000);
    Plan plan = drawn_plan(prng, input);
    for (const SchedulePolicy& policy : policies()) {
      std::string out;
      for (const RankSchedule& schedule : rank_schedules(plan, all_slots(plan), policy))
        out += words(schedule);
      pinned.add(out);
    }
    pinned.add(of_memory(plan));
  }
  pinned.finish();
}

TEST_CASE("drawn schedules with one fault are refuted as they were, or mean their plan") {
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  Pinned pinned("tests/sweep/data/schedules-broken.txt", 40);
  std::set<std::string> forms;
  for (std::uint64_t seed = 0; seed < 2'000 / kOneOf; ++seed) {
    CAPTURE(seed);
    Prng prng(seed + 1'800'000);
    Plan plan = drawn_plan(prng, input);
    std::vector<SchedulePolicy> all = policies();
    std::vector<RankSchedule> right = rank_schedules(plan, all_slots(plan), prng.pick(all));
    for (int i = 0; i < 10; ++i) {
      std::vector<RankSchedule> broken = right;
      break_schedule(prng, broken);
      std::optional<Refutation> refutation;
      try {
        refutation = check_schedules(plan, broken);
      } catch (const CheckFailure&) {
        pinned.add("a check fails");
        continue;
      }
      if (!refutation) {
        pinned.add("right");
        continue;
      }
      std::string said = fmt::format(
          "{} {} {}", refutation->step ? fmt::format("{}", to_index(*refutation->step)) : "-",
          refutation->part ? fmt::format("{}", *refutation->part) : "-", refutation->what);
      std::string form;
      for (char c : refutation->what)
        if (std::isalpha(static_cast<unsigned char>(c)) != 0) form += c;
      if (forms.insert(form).second) pinned.add_line(fmt::format("{}: {}", seed, said));
      pinned.add(said);
    }
  }
  pinned.finish();
}
