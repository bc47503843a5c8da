// SPDX-License-Identifier: BSD-3-Clause
// Steps on different streams of a plan: each stream has communicators of its own, so that a step
// that is held up does not hold up those on others.
#include <catch2/catch.hpp>

#include <algorithm>

#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "tests/core/planners/planner_cases.h"
#include "tests/support/standins/nccl_ranks.h"
#include "tests/support/star.h"

namespace reshard::test {
namespace {

using namespace reshard::backends::nccl;

// Two tensors, independent of each other, by p2p: each takes a copy and an exchange.
Plan two_tensors(const char* planner = "p2p") {
  Topology topology = star(4);
  PlannerInput input;
  input.topology = &topology;
  Plan one =
      make_plan(find_planner(planner), request_on("4", "16,16", "S(0)", "S(1)", "f32"), input);
  return join({one, one});
}

std::vector<std::size_t> talking(const Plan& plan) {
  std::vector<std::size_t> out;
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    if (communicates(plan.steps[s])) out.push_back(s);
  return out;
}

struct Run {
  StandinOutcome outcome;
  Timeline timeline;
  std::int64_t end_ps(std::size_t step, Rank rank) const {
    auto at = std::find_if(timeline.spans.begin(), timeline.spans.end(), [&](const Span& span) {
      return span.step == static_cast<std::int32_t>(step) && span.rank == rank;
    });
    return at->end_ps;
  }
};

Run run_once(StandinJob job, const Plan& plan) {
  Run out;
  job.world = 4;
  job.drive = Drive::OneThread;
  job.standin.multiprocessors = stream_count(plan) * kBlocksOfKernel;
  out.outcome = run_on_standin(job, [&](NcclExecutor& executor, std::int32_t) {
    std::unique_ptr<PreparedPlan> prepared = executor.prepare(plan);
    for_each_tensor(plan.tensors, [&](TensorId tensor, const Request&) {
      prepared->fill(
          [](Rank, std::span<std::byte> bytes) {
            std::fill(bytes.begin(), bytes.end(), std::byte{0});
          },
          tensor);
    });
    out.timeline = prepared->run();
  });
  return out;
}

TEST_CASE("a step that is slow does not hold up what is on another stream") {
  Plan plan = two_tensors();
  std::vector<std::size_t> steps = talking(plan);
  REQUIRE(steps.size() == 2);
  REQUIRE(plan.steps[steps[0]].stream != plan.steps[steps[1]].stream);
  Plan in_turn = plan;
  for (Step& step : in_turn.steps) step.stream = 0;
  int overtaken = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    StandinJob job;
    job.standin.seed = seed;
    job.standin.faults = {{NcclFault::Kind::Slow, 0, 0}};  // the first exchange of rank 0
    Run free = run_once(job, plan), held = run_once(job, in_turn);
    INFO(free.outcome.text() << held.outcome.text());
    REQUIRE(free.outcome.clean());
    REQUIRE(held.outcome.clean());
    overtaken += free.end_ps(steps[1], Rank{0}) < free.end_ps(steps[0], Rank{0});
    CHECK(held.end_ps(steps[1], Rank{0}) > held.end_ps(steps[0], Rank{0}));
  }
  CHECK(overtaken > 3);
}

TEST_CASE("each stream has communicators of its own, whatever the policy") {
  struct Row {
    CommunicatorPolicy policy;
    const char* planner;
    std::int64_t communicators;
  };
  // With the parent, or with the six pairs of the first stream.
  for (Row row :
       {Row{CommunicatorPolicy::Eager, "p2p", 2}, Row{CommunicatorPolicy::Pairwise, "p2p", 7},
        Row{CommunicatorPolicy::Eager, "rule", 2}, Row{CommunicatorPolicy::Pairwise, "rule", 2}}) {
    CAPTURE(text(row.policy), row.planner);
    StandinJob job;
    job.policies = policies_of(row.policy);
    Run run = run_once(job, two_tensors(row.planner));
    INFO(run.outcome.text());
    CHECK(run.outcome.clean());
    CHECK(run.outcome.communicators == row.communicators);
  }
}

}  // namespace
}  // namespace reshard::test
