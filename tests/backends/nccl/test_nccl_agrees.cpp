// SPDX-License-Identifier: BSD-3-Clause
// The backend and the simulation do the same: each rank of a plan issues to NCCL what it launches
// in the simulation, launch by launch: in the same order and groups, with the same peers and bytes;
// and in the simulation a launch begins when the one before it is over.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "core/planners/planner.h"
#include "core/traffic/workload.h"
#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "sim/transport/transport.h"
#include "tests/support/prng.h"
#include "tests/support/standins/nccl_ranks.h"

namespace reshard::test {
namespace {

using backends::nccl::NcclExecutor;
using Operation = LoggedLaunch::Operation;

// What one rank launches for one step: messages, or a collective of a group.
struct Expected {
  std::int32_t step, stream;
  std::int64_t start_ps, end_ps;
  std::optional<CollectiveKind> kind;
  std::vector<std::int32_t> group;    // of the collective, in its order
  std::vector<Operation> operations;  // messages, sorted
};

NcclCall call_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllGather:
      return NcclCall::AllGather;
    case CollectiveKind::ReduceScatter:
      return NcclCall::ReduceScatter;
    case CollectiveKind::AllReduce:
      return NcclCall::AllReduce;
    case CollectiveKind::AllToAll:
      return NcclCall::AllToAll;
  }
  return NcclCall::AllToAll;
}

// By rank, in listed order.
std::map<std::int32_t, std::vector<Expected>> simulated(const Plan& plan) {
  auto topology =
      std::make_shared<const Topology>(sim::default_topology(to_int(plan.ranks.back()) + 1));
  sim::Carriage carriage(topology, {TransportKind::Nccl, {}});
  std::shared_ptr<const Plan> shared(std::shared_ptr<const Plan>(), &plan);
  Timeline timeline = sim::run(workload_of(shared), *topology,
                               {.record_flows = true, .carriers = {carriage.carrier()}});
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Operation>> messages;
  for (const FlowSpan& flow : timeline.flows) {
    std::int32_t source = to_int(flow.source), destination = to_int(flow.destination);
    messages[{source, flow.step}].push_back({NcclCall::Send, destination, flow.bytes});
    messages[{destination, flow.step}].push_back({NcclCall::Receive, source, flow.bytes});
  }
  std::map<std::int32_t, std::vector<Expected>> out;
  for (const Span& span : timeline.spans) {
    StepId step{span.step};
    Expected expected{span.step, plan.steps[step].stream, span.start_ps, span.end_ps, {}, {}, {}};
    for (const std::vector<Rank>& group : groups_of(plan, step)) {
      if (std::find(group.begin(), group.end(), span.rank) == group.end()) continue;
      for (Rank rank : group) expected.group.push_back(to_int(rank));
    }
    std::optional<StepTraffic> sent = step_traffic(plan, plan.steps[step]);
    if (!sent) continue;
    expected.kind = sent->kind;
    if (!sent->kind) expected.operations = messages[{to_int(span.rank), span.step}];
    if (!sent->kind && expected.operations.empty()) continue;
    std::sort(expected.operations.begin(), expected.operations.end());
    out[to_int(span.rank)].push_back(std::move(expected));
  }
  for (auto& [rank, launches] : out)
    std::stable_sort(launches.begin(), launches.end(),
                     [](const Expected& a, const Expected& b) { return a.step < b.step; });
  return out;
}

// By rank, in the order in which they were given to NCCL.
std::map<std::int32_t, std::vector<LoggedLaunch>> given(const Plan& plan, std::int32_t world,
                                                        Drive drive, bool& clean) {
  StandinJob job;
  job.world = world;
  job.drive = drive;
  StandinOutcome outcome = run_on_standin(
      job, [&](NcclExecutor& executor, std::int32_t) { executor.prepare(plan)->run(); });
  clean = outcome.clean();
  std::map<std::int32_t, std::vector<LoggedLaunch>> out;
  for (LoggedLaunch& launch : outcome.log) out[launch.rank].push_back(std::move(launch));
  return out;
}

// A native call of the collective, or, where NCCL cannot, messages within its group.
bool agrees(const Expected& expected, const LoggedLaunch& launch) {
  std::vector<Operation> own = launch.operations;
  std::sort(own.begin(), own.end());
  if (!expected.kind) return own == expected.operations;
  auto in_group = [&](std::int32_t rank) {
    return std::find(expected.group.begin(), expected.group.end(), rank) != expected.group.end();
  };
  if (own.front().peer < 0)
    return own.size() == 1 && own.front().call == call_of(*expected.kind) &&
           launch.members == expected.group;
  return std::all_of(own.begin(), own.end(),
                     [&](const Operation& operation) { return in_group(operation.peer); });
}

Placement drawn_placement(Prng& prng) {
  static const char* const kChoices[] = {"R", "S(0)", "S(1)", "P(sum)"};
  return parse_placements(kChoices[prng.below(4)], 1, 2, "placement").placements.front();
}

}  // namespace

TEST_CASE("of drawn plans each rank launches in the backend what it launches in the simulation") {
  std::map<std::string, int> compared;
  std::int64_t launches = 0, followed = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Prng prng(seed);
    const char* mesh_text = prng.one_in(2) ? "4" : "2x2";
    auto mesh = std::make_shared<const Mesh>(parse_mesh(mesh_text, {}, "mesh"));
    std::vector<Placement> from, to;
    for (int axis = 0; axis < mesh->axes(); ++axis) {
      from.push_back(drawn_placement(prng));
      to.push_back(drawn_placement(prng));
    }
    std::optional<Plan> plan;
    try {
      Request request(Layout({8, 16}, DType::I32, mesh, from),
                      Layout({8, 16}, DType::I32, mesh, to));
      Topology topology = sim::default_topology(4);
      PlannerInput input;
      input.topology = &topology;
      const char* planner = prng.one_in(2) ? "rule" : "p2p";
      plan = make_plan(find_planner(planner), request, input);
    } catch (const InputError&) {
      continue;  // forbidden, or not this planner's
    }
    CAPTURE(seed, plan->request().text(), plan->planner);
    std::map<std::int32_t, std::vector<Expected>> expected = simulated(*plan);
    bool clean = false;
    std::map<std::int32_t, std::vector<LoggedLaunch>> found =
        given(*plan, 4, prng.one_in(2) ? Drive::OneThread : Drive::RankPerThread, clean);
    REQUIRE(clean);
    for (std::int32_t rank = 0; rank < 4; ++rank) {
      CAPTURE(rank);
      REQUIRE(found[rank].size() == expected[rank].size());
      for (std::size_t i = 0; i < found[rank].size(); ++i) {
        CAPTURE(i);
        CHECK(agrees(expected[rank][i], found[rank][i]));
        ++launches;
        // In the simulation, too, a stream's launches follow each other in that order.
        for (std::size_t before = 0; before < i; ++before) {
          if (expected[rank][before].stream != expected[rank][i].stream) continue;
          CHECK(expected[rank][i].start_ps >= expected[rank][before].end_ps);
          ++followed;
        }
      }
    }
    ++compared[plan->planner];
  }
  CHECK(compared["rule"] > 20);
  CHECK(compared["p2p"] > 20);
  CHECK(launches > 200);
  CHECK(followed > 20);
}

}  // namespace reshard::test
