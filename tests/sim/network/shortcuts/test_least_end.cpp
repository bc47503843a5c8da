// SPDX-License-Identifier: BSD-3-Clause
// Runs with a limit: they stop as soon as they are certain to exceed it, and say nothing wrong.
#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/network/engine.h"
#include "tests/sim/network/networks.h"
#include "tests/support/part.h"
#include "tests/support/plan_words.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

namespace {

constexpr std::int64_t kRate = 1'000'000'000;  // a byte takes 1000 ps

class Counter : public FlowObserver {
 public:
  void begun(std::int32_t) override { ++flows; }
  int flows = 0;
};

std::int64_t end_of(const Plan& plan, const Topology& topology, std::int64_t limit_ps,
                    FlowObserver* observer = nullptr) {
  return run(workload_of(std::make_shared<const Plan>(plan)), topology,
             {.limit_ps = limit_ps, .observer = observer})
      .end_ps;
}

// 1 -> 2 100 bytes, after which 2 -> 3 has `count` times 10.
Plan late_chain(int count) {
  Plan plan = empty_plan(4);
  StepId last = plan.add_step(exchange({{1, 2, 100}}), {});
  for (int i = 0; i < count; ++i) last = plan.add_step(exchange({{2, 3, 10}}), {last});
  return plan;
}

}  // namespace

TEST_CASE("a run stops when a link has more to carry than the limit leaves time for") {
  // The link into 3 idles for 100,000 ps and needs 200,000 ps.
  const Plan plan = late_chain(20);
  const Topology topology = switched(4, kRate);
  CHECK(time_of(plan, topology) == 300'000);
  for (auto [limit_ps, flows] :
       {std::pair{300'000, 21}, {299'999, 1}, {250'000, 1}, {150'000, 1}}) {
    INFO(limit_ps);
    Counter counter;
    CHECK(end_of(plan, topology, limit_ps, &counter) == 300'000);
    CHECK(counter.flows == flows);
    CHECK(end_of(plan, topology, limit_ps) == 300'000);
  }
}

TEST_CASE("what flows in progress have still to carry counts") {
  // 0 -> 1 1000 bytes; 2 -> 3 has one byte at a time, so that there are instants to look at. At
  // most the first 64th passes before 1000 bytes are known to need 1000 ns.
  Plan plan = empty_plan(4);
  plan.add_step(exchange({{0, 1, 1000}}), {});
  StepId last = plan.add_step(exchange({{2, 3, 1}}), {});
  for (int i = 1; i < 500; ++i) last = plan.add_step(exchange({{2, 3, 1}}), {last});
  const Topology topology = switched(4, kRate);
  CHECK(time_of(plan, topology) == 1'000'000);
  Counter counter;
  CHECK(end_of(plan, topology, 900'000, &counter) == 1'000'000);
  CHECK(counter.flows <= 1 + 900 / 64 + 2);
}

TEST_CASE(
    "limits of drawn plans: an end within the limit is the end, a later one is not overstated") {
  int within = 0, stopped_early = 0;
  const Topology planned_for = switched(64, kRate);
  PlannerInput input;
  input.topology = &planned_for;
  for (std::uint64_t seed = 0; seed < 600 / kOneOf; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    const Plan plan = drawn_plan(prng, input);
    const Topology topology =
        prng.one_in(2) ? switched(64, prng.between(1, 1000) * 1000, prng.between(0, 1) * 5000)
                       : shared_medium(64, prng.between(100, 1000) * 1000);
    const std::int64_t end_ps = time_of(plan, topology);
    if (end_ps == 0) continue;
    for (std::int64_t limit_ps :
         {end_ps, end_ps - 1, end_ps * 9 / 10, end_ps / 2, std::int64_t{1}, 2 * end_ps}) {
      INFO("limit " << limit_ps << " of " << end_ps);
      if (limit_ps < 1) continue;
      const std::int64_t found_ps = end_of(plan, topology, limit_ps);
      if (end_ps <= limit_ps) {
        REQUIRE(found_ps == end_ps);
        ++within;
      } else {
        REQUIRE(found_ps > limit_ps);
        REQUIRE(found_ps <= end_ps);
        if (found_ps == end_ps && limit_ps < end_ps / 2) ++stopped_early;
      }
    }
  }
  CHECK(within > 500 / kOneOf);
  CHECK(stopped_early > 50 / kOneOf);
}
