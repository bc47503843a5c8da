// SPDX-License-Identifier: BSD-3-Clause
// The peak that a plan declares, measured: what a rank's temporaries hold with the worst durations
// of its steps, for the planners' plans and for random ones.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <memory>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/schedule/held_memory.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/drawn_plans.h"
#include "tests/support/part.h"
#include "tests/support/slow_readers.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// How many ranks have temporaries.
int check_peaks(const Plan& plan) {
  int out = 0;
  std::vector<std::int64_t> held = held_temporaries(plan);
  for (std::size_t slot = 0; slot < held.size(); ++slot) {
    CHECK(held_by_slow_readers(plan, static_cast<Slot>(slot)) == held[slot]);
    out += held[slot] > 0;
  }
  return out;
}

// Temporaries of one rank, each filled by one step and read by a later one, which wait for few
// others.
struct Fills {
  Plan plan{[] {
              auto mesh = std::make_shared<const Mesh>(parse_mesh("1"));
              Layout layout = parse_layout("16", "u8", mesh, "R");
              return Request(layout, layout);
            }(),
            "drawn"};
  std::vector<std::int64_t> bytes;
  std::vector<std::size_t> filled_in, read_in;
};

Fills draw_fills(Prng& prng) {
  Fills out;
  std::vector<std::size_t> turns;
  for (std::int64_t count = prng.between(3, 11); count > 0; --count) {
    turns.insert(turns.end(), 2, out.bytes.size());
    out.bytes.push_back(prng.between(1, 9));
    out.plan.buffer(out.plan.add_temporary()).set_shape(0, {out.bytes.back()});
  }
  prng.shuffle(turns);
  out.filled_in.assign(out.bytes.size(), turns.size());
  out.read_in = out.filled_in;
  std::int64_t waits = prng.between(2, 8);
  for (std::size_t s = 0; s < turns.size(); ++s) {
    std::size_t at = turns[s];
    bool reads = out.filled_in[at] < s;
    std::vector<StepId> after;
    for (std::size_t before = 0; before < s; ++before)
      if (prng.one_in(waits) || (reads && before == out.filled_in[at]))
        after.push_back(id_of<StepId>(before));
    (reads ? out.read_in : out.filled_in)[at] = s;
    auto buffer = id_of<BufferId>(at + 2);
    if (!reads) {
      out.plan.add_step(FillStep{{{0, buffer, Box{{0}, {out.bytes[at]}}}}}, after);
      continue;
    }
    CopyStep copy{{{0, {0, 1}}}, MoveList(1)};
    copy.moves.push_back({buffer, kDestinationBuffer, {0}, {static_cast<std::int64_t>(at)}, {1}});
    out.plan.add_step(copy, after);
  }
  return out;
}

// Of all sets of temporaries that may be held together, of which none is read before another is
// filled, the greatest.
std::int64_t most_held_together(const Fills& fills) {
  std::size_t steps = fills.plan.steps.size(), count = fills.bytes.size();
  std::vector<std::vector<bool>> before(steps, std::vector<bool>(steps, false));
  for (std::size_t s = 0; s < steps; ++s)
    for (StepId id : fills.plan.steps[id_of<StepId>(s)].after)
      for (std::size_t earlier = 0; earlier < s; ++earlier)
        if (earlier == to_index(id) || before[to_index(id)][earlier]) before[s][earlier] = true;
  std::int64_t most = 0;
  for (std::size_t set = 0; set < std::size_t{1} << count; ++set) {
    std::int64_t bytes = 0;
    bool together = true;
    for (std::size_t a = 0; a < count; ++a) {
      if ((set >> a & 1) == 0) continue;
      bytes += fills.bytes[a];
      for (std::size_t b = 0; b < count; ++b)
        together &= (set >> b & 1) == 0 || !before[fills.filled_in[b]][fills.read_in[a]];
    }
    if (together) most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

TEST_CASE("peaks: what planners declare of drawn requests is held at worst") {
  Topology topology = star(kDrawnRanks);
  std::map<std::string_view, int> ranks;
  for (std::uint64_t seed = 0; seed < 2'000 / kOneOf; ++seed) {
    Prng prng(seed);
    std::optional<Request> request = draw_request(prng);
    if (!request) continue;
    PlannerInput input;
    input.topology = &topology;
    input.steps_in_turn = prng.one_in(3);
    for (const PlannerRow* planner : own_planners()) {
      INFO("seed " << seed << ": " << planner->name << ": " << request->text());
      if (std::optional<Plan> plan = plan_by(*planner, *request, input))
        ranks[planner->name] += check_peaks(*plan);
    }
  }
  CHECK(ranks.size() == own_planners().size());
  for (const auto& [name, count] : ranks) {
    INFO(name);
    CHECK(count > 400 / kOneOf);
  }
}

TEST_CASE("peaks: plans that no planner would make") {
  int ranks = 0;
  for (std::uint64_t seed = 0; ranks < 1'500 / kOneOf; ++seed) {
    Prng prng(seed);
    std::optional<Request> request = draw_request(prng);
    if (!request || request->shape().size() < 2 || request->shape().size() > 3) continue;
    if (element_count(request->shape()) > 60 || request->ranks().size() > 8) continue;
    std::optional<Plan> plan = wander(prng, *request, SlowMeaning(*request));
    if (!plan) continue;
    INFO("seed " << seed << ": " << request->text());
    ranks += check_peaks(*plan);
  }
}

TEST_CASE("peaks: of all temporaries that may be held together the greatest set counts") {
  for (std::uint64_t seed = 0; seed < 2'000 / kOneOf; ++seed) {
    CAPTURE(seed);
    Prng prng(seed);
    Fills fills = draw_fills(prng);
    CHECK(held_temporaries(fills.plan).front() == most_held_together(fills));
  }
}
