// SPDX-License-Identifier: BSD-3-Clause
// Steps of a plan under NCCL: in turn on one stream, and on several where they use the same links;
// side by side where one stays within nodes and the other goes between them.
#include <catch2/catch.hpp>

#include <algorithm>

#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "sim/machines/presets.h"
#include "sim/study/studies.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

// On two nodes of eight GPUs, as one exchange.
Plan exchanged(const char* from, const char* to) {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2x8"));
  Topology topology = find_topology("dgx-h100:2");
  PlannerInput input;
  input.topology = &topology;
  return make_plan(find_planner("p2p"),
                   Request(parse_layout("2048,2048", "f32", mesh, from),
                           parse_layout("2048,2048", "f32", mesh, to)),
                   input);
}

std::int64_t time_ps(const Plan& plan, TransportKind kind) {
  StudyOptions options;
  options.transport.kind = kind;
  auto topology = std::make_shared<const Topology>(find_topology("dgx-h100:2"));
  return Studies(topology, find_planner("p2p"), options)
      .of(std::make_shared<const Plan>(plan))
      ->time_ps();
}
std::int64_t nccl_ps(const Plan& plan) { return time_ps(plan, TransportKind::Nccl); }

Plan on_one_stream(Plan plan) {
  for (Step& step : plan.steps) step.stream = 0;
  return plan;
}

}  // namespace

TEST_CASE("what stays within nodes overlaps what goes between them, on streams of their own") {
  Plan within = exchanged("RS(0)", "RS(1)"), between = exchanged("S(0)R", "S(1)R");
  std::int64_t within_ps = nccl_ps(within), between_ps = nccl_ps(between);
  Plan both = join({within, between});
  REQUIRE(stream_count(both) == 2);
  CHECK(nccl_ps(both) == std::max(within_ps, between_ps));
  CHECK(nccl_ps(on_one_stream(both)) == within_ps + between_ps);
}

TEST_CASE("on the same links steps follow each other, whatever their streams") {
  Plan within = exchanged("RS(0)", "RS(1)"), between = exchanged("S(0)R", "S(1)R"),
       // A rank sends to all others, wherever they are.
      everywhere = exchanged("S(0)S(0)", "S(1)S(1)");
  for (const auto& [a, b] : {std::pair(&within, &within), std::pair(&between, &between),
                             std::pair(&within, &everywhere), std::pair(&between, &everywhere)}) {
    Plan both = join({*a, *b});
    REQUIRE(stream_count(both) == 2);
    CHECK(nccl_ps(both) == nccl_ps(*a) + nccl_ps(*b));
    CHECK(nccl_ps(on_one_stream(both)) == nccl_ps(both));
  }
}

TEST_CASE("with links alone streams do not matter") {
  Plan both = join({exchanged("RS(0)", "RS(1)"), exchanged("RS(0)", "RS(1)")});
  REQUIRE(stream_count(both) == 2);
  CHECK(time_ps(on_one_stream(both), TransportKind::Ideal) == time_ps(both, TransportKind::Ideal));
}
