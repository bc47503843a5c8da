// SPDX-License-Identifier: BSD-3-Clause
// Where the time of random requests goes, with either transport: the critical path covers each
// picosecond once, what it names did happen, links carried what their flows moved, and observing a
// run does not change it.
#include <algorithm>
#include <array>
#include <map>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/traffic/workload.h"
#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "sim/study/critical_path.h"
#include "sim/study/link_rates.h"
#include "sim/study/recorded_run.h"
#include "sim/study/studies.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/star.h"

namespace reshard::sim {
namespace {

using test::Prng;

// One run with all that can be asked of it.
struct Observed {
  Timeline timeline;
  LinkRates rates;
  std::vector<PathPart> path;
};

Observed observed(const Plan& plan, const Topology& topology, Carrier* carrier) {
  Workload workload = workload_of(std::make_shared<const Plan>(plan));
  Observed out{{}, LinkRates(topology.resource_count()), {}};
  WaitLog waits;
  out.timeline =
      run(workload, topology,
          {.record_flows = true, .carriers = {carrier}, .waits = &waits, .observer = &out.rates});
  out.path = record(workload, topology, {.path = true}, {.carriers = {carrier}}).path.value();
  Timeline alone = run(workload, topology, {.record_flows = true, .carriers = {carrier}});
  CHECK(alone.end_ps == out.timeline.end_ps);
  CHECK(alone.spans == out.timeline.spans);
  CHECK(alone.flows == out.timeline.flows);
  CHECK(alone.resources == out.timeline.resources);
  return out;
}

void check_cover(const std::vector<PathPart>& path, std::int64_t end_ps) {
  std::int64_t at_ps = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    CHECK(path[i].start_ps == at_ps);
    CHECK(path[i].end_ps > path[i].start_ps);
    CHECK_FALSE((i > 0 && path[i].differs_in_time_only(path[i - 1])));
    at_ps = path[i].end_ps;
  }
  CHECK(at_ps == end_ps);
}

bool crosses(const FlowSpan& flow, ResourceId link, const Topology& topology) {
  std::vector<ResourceId> path = topology.route(flow.source, flow.destination).resources;
  return std::find(path.begin(), path.end(), link) != path.end();
}

// A link that is named is one of the step's flows', and its flows left less than a byte/s each.
void check_saturated(const PathPart& part, const Observed& run, const Topology& topology) {
  std::int64_t flows = 0;
  bool of_step = false;
  for (const FlowSpan& flow : run.timeline.flows) {
    if (!crosses(flow, part.resource, topology)) continue;
    ++flows;
    of_step = of_step || (flow.step == part.step && flow.start_ps <= part.start_ps &&
                          flow.end_ps >= part.start_ps);
  }
  CHECK(of_step);
  std::int64_t capacity = topology.resource_bytes_per_s(part.resource);
  const std::vector<WorkDone>& knots = run.rates.knots(part.resource);
  for (std::size_t i = 1; i < knots.size(); ++i) {
    if (knots[i].time_ps <= part.start_ps || knots[i - 1].time_ps >= part.end_ps) continue;
    std::int64_t for_ps = knots[i].time_ps - knots[i - 1].time_ps;
    // What flows lack of their last picosecond may be missing, too.
    CHECK(knots[i].work - knots[i - 1].work >= Int128{capacity - flows} * for_ps - capacity);
  }
}

// How often each cause was named.
using Named = std::map<WaitedFor, std::int64_t>;

void check(const Plan& plan, const Topology& topology, Carrier* carrier, Named& named) {
  Observed run = observed(plan, topology, carrier);
  check_cover(run.path, run.timeline.end_ps);
  for (const PathPart& part : run.path) {
    ++named[part.cause];
    REQUIRE((part.op == OpId{0} && part.step >= 0 && to_index(part.step) < plan.steps.size()));
    CHECK(std::any_of(run.timeline.spans.begin(), run.timeline.spans.end(), [&](const Span& span) {
      return span.step == part.step && span.start_ps <= part.start_ps && span.end_ps >= part.end_ps;
    }));
    if (part.cause == WaitedFor::Resource) check_saturated(part, run, topology);
  }
  for (std::size_t id = 0; id < run.timeline.resources.size(); ++id) {
    auto link = id_of<ResourceId>(id);
    Int128 bytes = 0;
    for (const FlowSpan& flow : run.timeline.flows)
      bytes += crosses(flow, link, topology) ? flow.bytes : 0;
    CHECK(run.timeline.resources[id].bytes == bytes);
    CHECK(run.timeline.resources[id].busy_ps <= run.timeline.end_ps);
    const std::vector<WorkDone>& knots = run.rates.knots(link);
    CHECK((knots.empty() ? Int128{0} : knots.back().work) == bytes * 1'000'000'000'000);
  }
}

// Plans of drawn requests, on ranks that all have a device.
void for_each_plan(std::uint64_t seeds, const Topology& topology,
                   const std::function<void(const Plan&)>& visit) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Prng prng(seed);
    std::optional<Request> request = test::draw_request(prng);
    if (!request) continue;
    for (const PlannerRow* planner : test::own_planners()) {
      PlannerInput input;
      input.topology = &topology;
      INFO("seed " << seed << ", " << planner->name);
      if (std::optional<Plan> plan = test::plan_by(*planner, *request, input)) visit(*plan);
    }
  }
}

}  // namespace

TEST_CASE("drawn requests by links alone: all of their time is told, and rightly") {
  Named named;
  std::int64_t plans = 0;
  // Slow, so that links count.
  for (std::int64_t latency_ps : {0, 1'000'000'000}) {
    Topology topology = test::star(test::kDrawnRanks, 1'000'003, latency_ps);
    for_each_plan(1000, topology, [&](const Plan& plan) {
      ++plans;
      check(plan, topology, nullptr, named);
    });
  }
  CHECK(plans > 3000);
  CHECK((named[WaitedFor::Resource] > 2000 && named[WaitedFor::Latency] > 2000));
  CHECK((named[WaitedFor::Launch] == 0 && named[WaitedFor::Protocol] == 0));
}

TEST_CASE("drawn requests by the nccl transport: all of their time is told, and rightly") {
  Named named;
  auto topology = std::make_shared<const Topology>(default_topology(test::kDrawnRanks));
  Carriage carriage(topology, {TransportKind::Nccl, ""});
  for_each_plan(1000, *topology,
                [&](const Plan& plan) { check(plan, *topology, carriage.carrier(), named); });
  CHECK((named[WaitedFor::Launch] > 100 && named[WaitedFor::Latency] > 100 &&
         named[WaitedFor::Protocol] > 100));
}

TEST_CASE("a study's path is found once, sums to its time, and goes with its topology") {
  auto topology = std::make_shared<const Topology>(test::star(8, 1'000'000'000, 500));
  Prng prng(7);
  Studies studies(topology, find_planner("p2p"));
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({8}));
  auto study = studies.of(Request(parse_layout("64,8", "f32", mesh, "S(0)"),
                                  parse_layout("64,8", "f32", mesh, "S(1)")));
  const PathFacts& path = study->critical_path();
  CHECK(&path == &study->critical_path());
  CHECK(path.recorded);
  std::int64_t sum_ps = 0;
  for (const PathFacts::Cause& cause : path.causes) sum_ps += cause.time_ps;
  CHECK(sum_ps == study->time_ps());
  auto slower = std::make_shared<const Topology>(test::star(8, 1'000'000, 500));
  Study elsewhere = study->on(slower);
  CHECK(elsewhere.critical_path().parts.back().end_ps == elsewhere.time_ps());
  CHECK(elsewhere.time_ps() > study->time_ps());
}

TEST_CASE("of too many parts the longest stay, and the path still covers all") {
  Topology topology = test::star(2);
  auto part = [](int op, WaitedFor cause, std::int64_t start_ps, std::int64_t end_ps) {
    return PathPart{OpId{op}, -1, cause, ResourceId{-1}, start_ps, end_ps};
  };
  std::vector<PathPart> path{
      part(0, WaitedFor::Latency, 0, 1),   part(1, WaitedFor::Compute, 1, 10),
      part(2, WaitedFor::Cap, 10, 12),     part(1, WaitedFor::Compute, 12, 20),
      part(3, WaitedFor::Compute, 20, 27), part(4, WaitedFor::Cap, 27, 28)};
  auto lines = [&](std::size_t most) {
    std::vector<std::array<std::int64_t, 3>> out;
    for (const PathFacts::PathSpan& kept : path_facts(path, topology, most).parts)
      out.push_back({static_cast<std::int64_t>(to_index(kept.op)), kept.start_ps, kept.end_ps});
    return out;
  };
  using Lines = std::vector<std::array<std::int64_t, 3>>;
  CHECK(lines(6).size() == 6);
  // 0 and the cap of 4 are as short; 0 comes first and stays.
  CHECK(lines(5) == Lines{{0, 0, 1}, {1, 1, 10}, {2, 10, 12}, {1, 12, 20}, {3, 20, 28}});
  // What is alike and next to each other then is one.
  CHECK(lines(3) == Lines{{1, 0, 20}, {3, 20, 28}});
  // The sums are of all.
  PathFacts facts = path_facts(path, topology, 3);
  REQUIRE(facts.causes.size() == 3);
  CHECK((facts.causes[0].name == "compute" && facts.causes[0].time_ps == 24));
  CHECK((facts.causes[1].name == "cap" && facts.causes[1].time_ps == 3));
  CHECK((facts.causes[2].name == "latency" && facts.causes[2].time_ps == 1));
  CHECK_FALSE(path_facts(std::nullopt, topology).recorded);
}

}  // namespace reshard::sim
