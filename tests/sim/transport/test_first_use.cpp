// SPDX-License-Identifier: BSD-3-Clause
// What the first use of a plan creates and connects, by the topology's figures.
#include <catch2/catch.hpp>

#include "core/planners/planner.h"
#include "sim/machines/presets.h"
#include "sim/study/studies.h"
#include "sim/transport/communicators.h"
#include "tests/sim/network/networks.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::kMs;

namespace {

// Ten of making, one a rank, 3 of a split, 7 of a peer; 1,000 bytes, 10 a peer.
constexpr SetupCosts kCosts{10 * kMs, kMs, 3 * kMs, 7 * kMs, 1'000, 10};

CommunicatorUse first_use(const char* planner, const char* mesh_text, const char* from,
                          const char* to, CommunicatorPolicy policy) {
  auto mesh = std::make_shared<const Mesh>(parse_mesh(mesh_text, {}, "mesh"));
  Request request(parse_layout("64,64", "f32", mesh, from), parse_layout("64,64", "f32", mesh, to));
  Topology topology = default_topology(static_cast<std::int64_t>(request.ranks().size()));
  PlannerInput input;
  input.topology = &topology;
  return first_use_of(make_plan(find_planner(planner), request, input), policy, kCosts);
}

}  // namespace

TEST_CASE("a collective of all ranks needs the parent alone") {
  for (CommunicatorPolicy policy : kCommunicatorPolicies) {
    CommunicatorUse use = first_use("rule", "8", "S(0)", "R", policy);
    CHECK(use.created == 1);
    CHECK(use.making_ps == 18 * kMs);
    CHECK(use.connected == 0);
    CHECK(use.bytes == 1'000);
  }
}

TEST_CASE("groups of an axis are split off at once where the parent is there, else made each") {
  // Axis 1 of 4x2: four groups of two.
  CommunicatorUse eager = first_use("rule", "4x2", "RS(0)", "RR", CommunicatorPolicy::Eager);
  CHECK(eager.created == 5);
  CHECK(eager.making_ps == (18 + 3) * kMs);
  CHECK(eager.bytes == 2'000);
  CommunicatorUse lazy = first_use("rule", "4x2", "RS(0)", "RR", CommunicatorPolicy::Cached);
  CHECK(lazy.created == 4);
  CHECK(lazy.making_ps == 12 * kMs);
  CHECK(lazy.bytes == 1'000);
  // Both axes, one after the other: two calls; nothing is made twice.
  CommunicatorUse both = first_use("rule", "4x2", "S(0)S(0)", "RR", CommunicatorPolicy::Eager);
  CHECK(both.created == 1 + 4 + 2);
  CHECK(both.making_ps == (18 + 2 * 3) * kMs);
}

TEST_CASE("messages are one batch of the parent, and meet each peer once") {
  // All to all of four: six pairs, three peers of each.
  CommunicatorUse use = first_use("p2p", "4", "S(0)", "S(1)", CommunicatorPolicy::Pairwise);
  CHECK(use.created == 1);
  CHECK(use.making_ps == 14 * kMs);
  CHECK(use.connected == 6);
  CHECK(use.connecting_ps == 3 * 7 * kMs);
  CHECK(use.bytes == 1'000 + 3 * 10);
  CHECK(use.first_use_ps() == (14 + 21) * kMs);
  CommunicatorUse nothing = first_use("p2p", "4", "R", "S(0)", CommunicatorPolicy::Pairwise);
  CHECK(nothing.created == 0);
  CHECK(nothing.first_use_ps() == 0);
}

TEST_CASE("auto counts first use where it is asked to") {
  // A gather along one axis, then the other: rule and graph need splits, p2p connections.
  auto chosen = [](bool cold) {
    auto mesh = std::make_shared<const Mesh>(parse_mesh("4x2", {}, "mesh"));
    Request request(parse_layout("32,8192,4096", "f32", mesh, "S(0)S(1)"),
                    parse_layout("32,8192,4096", "f32", mesh, "S(1)S(0)"));
    NodeTemplate node = default_topology(8).node();
    node.machine.set(Figure::CommConnect, 1'000 * kMs);
    auto topology =
        std::make_shared<const Topology>("slow", node, std::vector<SharedResource>{}, 1);
    Studies studies(topology, find_planner("auto"), {.cold = cold});
    return studies.of(request)->plan().planner;
  };
  CHECK(chosen(false) == "p2p");
  CHECK(chosen(true) == "graph");
}

TEST_CASE("the rank that meets most peers says how long it takes, wherever it stands") {
  // Rank 0 sends to 1 and to 2.
  Plan plan = test::empty_plan(3);
  plan.add_step(test::exchange({{0, 1, 8}, {0, 2, 8}}), {});
  CommunicatorUse use = first_use_of(plan, CommunicatorPolicy::Pairwise, kCosts);
  CHECK(use.connected == 2);
  CHECK(use.connecting_ps == 2 * 7 * kMs);
  CHECK(use.bytes == 1'000 + 2 * 10);
}
