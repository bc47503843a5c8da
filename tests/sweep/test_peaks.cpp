// SPDX-License-Identifier: BSD-3-Clause
// The peak that a plan declares is measured: what a rank's temporaries hold where its steps last as
// is worst, of the planners' plans and of drawn ones.
#include <catch2/catch.hpp>

#include <map>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/schedule/held_temporaries.h"
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
    for (const char* name : {"packed", "rule", "graph", "hybrid", "p2p"}) {
      INFO("seed " << seed << ": " << name << ": " << request->text());
      try {
        ranks[name] += check_peaks(find_planner(name).make(*request, input));
      } catch (const InputError&) {
        // Not for this planner.
      }
    }
  }
  CHECK(ranks.size() == 5);
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
