// SPDX-License-Identifier: BSD-3-Clause
// Right plans broken in one place at random: the proof refutes those, and only those, that the slow
// proof finds wrong.
#include <catch2/catch.hpp>

#include <array>
#include <map>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "tests/support/cases.h"
#include "tests/support/drawn_plans.h"
#include "tests/support/part.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

namespace {

constexpr int kBreaksPerPlan = 20;
constexpr std::int64_t kMostElements = 800;

struct Tally {
  std::int64_t plans = 0, broken = 0, refuted = 0;
  std::map<std::string, std::array<std::int64_t, 2>> by_break;  // right, wrong
  std::map<std::string, std::int64_t> kinds;                    // plans that have a step of a kind
};

std::int64_t elements(const Plan& plan) {
  std::int64_t out = 0;
  for (const Buffer& buffer : plan.buffers)
    for (std::size_t s = 0; s < plan.slot_count(); ++s)
      out += buffer.elements(static_cast<Slot>(s));
  return out;
}

// What the two say of one plan must agree; returns whether it is wrong.
bool refuted(const SlowMeaning& meaning, const Plan& plan, const std::string& what) {
  std::optional<Refutation> refutation = check_plan(plan).refutation;
  std::string fault = slow_fault(meaning, plan);
  if (refutation.has_value() != !fault.empty())
    FAIL(what << ": the proof says '" << (refutation ? refutation->what : "proved")
              << "', the execution '" << (fault.empty() ? "right" : fault) << "'");
  return refutation.has_value();
}

void break_often(Prng& prng, const SlowMeaning& meaning, const Plan& plan, const std::string& what,
                 Tally& tally) {
  if (refuted(meaning, plan, what)) FAIL(what << ": wrong before it is broken");
  ++tally.plans;
  std::map<std::string, bool> kinds;
  for (const Step& step : plan.steps) kinds[std::string(kind_text(step))] = true;
  for (const auto& [kind, there] : kinds) tally.kinds[kind] += there;
  for (int i = 0; i < kBreaksPerPlan; ++i) {
    Plan broken = plan;
    std::string field = break_plan(prng, broken);
    bool wrong = refuted(meaning, broken, what + " break " + std::to_string(i) + " of " + field);
    ++tally.broken;
    tally.refuted += wrong;
    ++tally.by_break[field][wrong];
  }
}

// Enough of each kind, each break and both verdicts.
void check_reach(const Tally& tally) {
  for (const char* kind : {"copy", "fill", "exchange", "reduce", "all_gather", "reduce_scatter",
                           "all_reduce", "all_to_all"}) {
    INFO(kind);
    CHECK(tally.kinds.count(kind) == 1);
    if (tally.kinds.count(kind) == 1) CHECK(tally.kinds.at(kind) >= 60 / kOneOf);
  }
  for (const auto& [field, verdicts] : tally.by_break) {
    INFO(field << ": " << verdicts[0] << " right, " << verdicts[1] << " wrong");
    CHECK(verdicts[1] >= 20 / kOneOf);
  }
  CHECK(tally.refuted * 10 > tally.broken * 5);
  CHECK(tally.refuted < tally.broken);
}

}  // namespace

TEST_CASE("broken plans: 120,000 of the planners' plans, each refuted if and only if it is wrong") {
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  Tally tally;
  for (std::uint64_t seed = 500'000; tally.broken < 120'000 / kOneOf; ++seed) {
    Prng prng(seed);
    std::optional<Request> request = draw_request(prng);
    if (!request) continue;
    std::vector<const char*> names{"p2p", "packed"};
    if (request->same_mesh()) names = {"rule", "rule", "p2p", "hybrid", "packed"};
    const char* name = prng.pick(names);
    Plan plan = find_planner(name).make(*request, input);
    if (elements(plan) > kMostElements) continue;
    break_often(prng, SlowMeaning(*request), plan,
                fmt::format("seed {}: {} by {}", seed, request->text(), name), tally);
  }
  check_reach(tally);
}

TEST_CASE("broken plans: 80,000 of drawn 2-d and 3-d plans, each refuted if and only if wrong") {
  Tally tally;
  for (std::uint64_t seed = 900'000; tally.broken < 80'000 / kOneOf; ++seed) {
    Prng prng(seed);
    std::optional<Request> request = draw_request(prng);
    if (!request || request->shape().size() < 2 || request->shape().size() > 3) continue;
    if (element_count(request->shape()) > 60 || request->ranks().size() > 8) continue;
    SlowMeaning meaning(*request);
    std::optional<Plan> plan = wander(prng, *request, meaning);
    if (!plan) continue;
    break_often(prng, meaning, *plan, fmt::format("seed {}: {}", seed, request->text()), tally);
  }
  check_reach(tally);
}
