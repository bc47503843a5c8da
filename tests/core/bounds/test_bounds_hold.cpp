// SPDX-License-Identifier: BSD-3-Clause
// No plan beats its bounds: a simulated time below a bound is a bug in the engine or in the bound.
// Every planner, machines of every kind, ranks anywhere on partly used nodes; small tensors that
// latency limits and larger ones that bandwidth limits. And where a plan is known to be optimal,
// the bound equals its time to the picosecond.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "core/bounds/bounds.h"
#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "core/traffic/accounting.h"
#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "tests/support/any_planner.h"
#include "tests/support/bounds_cases.h"
#include "tests/support/least_volume.h"
#include "tests/support/part.h"
#include "tests/support/star.h"

namespace reshard::test {
namespace {

std::vector<Topology> all_machines() {
  std::vector<Topology> out = machines();
  for (const char* spec :
       {"dgx-h100:2", "dgx-a100:3", "pcie-8x3090", "nvswitch:8", "rtx-pro-6000-8:2", "dgx-v100:2",
        "dgx-h100:4,oversubscription=2", "dgx-a100:2,nics=1"})
    out.push_back(sim::find_topology(spec));
  return out;
}

PlannerInput on(const Topology& topology) {
  PlannerInput input;
  input.topology = &topology;
  return input;
}

// The bytes that the plan brings to each rank and in all are at least those of the demand.
void check_bytes(const Plan& plan, const Request& request, const CutSets& sets,
                 const RequestDemand& demand) {
  PlanBytes bytes = count_bytes(plan);
  REQUIRE(bytes.received_total >= test::least_volume_bytes(request));
  for (std::size_t slot = 0; slot < plan.ranks.size() && !sets.levels().empty(); ++slot) {
    auto at = std::lower_bound(sets.ranks().begin(), sets.ranks().end(), plan.ranks[slot]) -
              sets.ranks().begin();
    REQUIRE((bytes.received_per_slot[slot] >= demand.in_bytes[2 * static_cast<std::size_t>(at)]));
  }
}

TEST_CASE("no plan is faster than its bound or moves fewer bytes") {
  std::vector<Topology> topologies = all_machines();
  std::int64_t runs = 0;
  std::map<LimitedBy, std::int64_t> limited_by;
  for (std::uint64_t seed = 0; seed < 1500 / kOneOf; ++seed) {
    Prng prng(seed);
    const Topology& topology = prng.pick(topologies);
    Request request =
        random_request(prng, topology.devices(), prng.pick(std::vector<std::int64_t>{1, 17, 300}));
    CAPTURE(seed, topology.name(), request.text());
    CutSets sets(topology, request.ranks(), Switches::Forward);
    RequestDemand demand = demand_of(request, sets);
    Bound bound = bound_of(demand, sets);
    REQUIRE(bound_of(request, topology, Switches::Reduce).time_ps() <= bound.time_ps());
    for (const PlannerRow* planner : own_planners()) {
      CAPTURE(planner->name);
      std::optional<Plan> plan = plan_by(*planner, request, on(topology));
      if (!plan) continue;
      REQUIRE(sim::time_of(*plan, topology) >= bound.time_ps());
      check_bytes(*plan, request, sets, demand);
      ++runs;
    }
    ++limited_by[bound.limited_by()];
  }
  CHECK(runs > 2500 / kOneOf);
  CHECK(limited_by[LimitedBy::Cut] > 75 / kOneOf);
  CHECK(limited_by[LimitedBy::Volume] > 50 / kOneOf);
}

// Meshes that fill their nodes, as jobs have them: here the bounds by price and by holders are the
// greatest, and folds are spread over nodes.
TEST_CASE("no plan is faster than its bound on meshes that fill two nodes") {
  std::vector<Topology> topologies;
  for (const char* spec : {"dgx-a100:2", "dgx-h100:2", "rtx-pro-6000-8:2", "dgx-v100:2",
                           "dgx-h100:2,oversubscription=2", "dgx-a100:2,nics=1"})
    topologies.push_back(sim::find_topology(spec));
  const std::vector<std::string> meshes{"2x8", "4x4", "8x2", "2x2x4", "16"},
      placements{"R", "S(0)", "S(1)", "P(sum)"};
  std::map<LimitedBy, std::int64_t> limited_by;
  std::int64_t across = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    Prng prng(seed);
    const Topology& topology = prng.pick(topologies);
    bool halves = prng.one_in(3);
    auto side = [&](const char* first_half, bool source) {
      std::string mesh =
          halves ? prng.pick(std::vector<std::string>{"8", "2x4"}) : prng.pick(meshes);
      MeshRef ranks =
          std::make_shared<const Mesh>(halves ? parse_mesh(mesh, first_half) : parse_mesh(mesh));
      std::vector<std::string> words(placements.begin(), placements.end() - (source ? 0 : 1));
      std::string text;
      for (int axis = 0; axis < ranks->axes(); ++axis) text += prng.pick(words);
      return parse_layout(prng.pick(std::vector<std::string>{"64,64", "512,512"}), "f32", ranks,
                          text);
    };
    Layout source = side(prng.one_in(2) ? "0-7" : "4-11", true);
    Layout other = side(prng.one_in(2) ? "8-15" : "6-13", false);
    Layout destination(source.shape(), DType::F32, other.mesh_ref(), other.placements());
    Request request(source, destination);
    CAPTURE(seed, topology.name(), request.text());
    Bound bound = bound_of(request, topology, Switches::Forward);
    REQUIRE(bound_of(request, topology, Switches::Reduce).time_ps() <= bound.time_ps());
    for (const PlannerRow* planner : own_planners()) {
      // It takes most of the time.
      if (planner->name == "packed" && seed % (8 * test::kOneOf) != 0) continue;
      CAPTURE(planner->name);
      if (std::optional<Plan> plan = plan_by(*planner, request, on(topology)))
        REQUIRE(sim::time_of(*plan, topology) >= bound.time_ps());
    }
    ++limited_by[bound.limited_by()];
    across += !request.same_mesh();
  }
  CHECK(across > 500);
  CHECK(limited_by[LimitedBy::Price] > 50);
  CHECK(limited_by[LimitedBy::Holder] > 20);
}

// Of levels and sets one by one.
void check_is_sum(const Bound& bound, const std::vector<RequestDemand>& demands,
                  const CutSets& sets) {
  RequestDemand sum = demands[0];
  for (const RequestDemand& demand : demands) {
    sum.holder_ps = std::max(sum.holder_ps, demand.holder_ps);
    sum.entry_ps = std::max(sum.entry_ps, demand.entry_ps);
    sum.owner_latency_ps = std::max(sum.owner_latency_ps, demand.owner_latency_ps);
    if (&demand == &demands[0]) continue;
    for (std::size_t set = 0; set < sum.in_bytes.size(); ++set)
      sum.in_bytes[set] += demand.in_bytes[set];
    for (std::size_t level = 0; level < sum.prices.size(); ++level) {
      sum.receipts_bytes[level] += demand.receipts_bytes[level];
      add(sum.prices[level], demand.prices[level]);
    }
  }
  Bound expected = bound_of(sum, sets);
  // What several requests have in one place, or send into one, counts together.
  REQUIRE(bound.cut_ps >= expected.cut_ps);
  REQUIRE(bound.volume_ps == expected.volume_ps);
  REQUIRE(bound.holder_ps >= expected.holder_ps);
  REQUIRE(bound.latency_ps == expected.latency_ps);
}

// Joined plans share links, and each may go by ranks that only another names.
TEST_CASE("no joined plans are faster than the bound of their requests together") {
  std::vector<Topology> topologies = all_machines();
  std::int64_t sharper = 0;
  for (std::uint64_t seed = 0; seed < 600 / kOneOf; ++seed) {
    Prng prng(seed);
    const Topology& topology = prng.pick(topologies);
    std::vector<Request> requests;
    std::vector<Plan> plans;
    while (requests.size() < 2 + seed % 3) {
      requests.push_back(random_request(prng, topology.devices(), prng.one_in(2) ? 17 : 300));
      plans.push_back(any_plan(prng, requests.back(), on(topology)));
    }
    Plan joined = join(plans);
    CAPTURE(seed, topology.name(), requests_text(joined));
    Bound bound = bound_of(requests, topology, Switches::Forward);
    REQUIRE(sim::time_of(joined, topology) >= bound.time_ps());
    REQUIRE(bound_of(requests, topology, Switches::Reduce).time_ps() <= bound.time_ps());
    CutSets sets(topology, {joined.ranks.begin(), joined.ranks.end()}, Switches::Forward);
    std::int64_t greatest = 0;
    std::vector<RequestDemand> demands;
    for (const Request& request : requests) {
      demands.push_back(demand_of(request, sets));
      Bound alone = bound_of(demands.back(), sets);
      greatest = std::max(greatest, alone.time_ps());
      REQUIRE(bound.cut_ps >= alone.cut_ps);
      REQUIRE(bound.volume_ps >= alone.volume_ps);
      REQUIRE(bound.price_ps >= alone.price_ps);
      REQUIRE(bound.holder_ps >= alone.holder_ps);
      REQUIRE(bound.latency_ps >= alone.latency_ps);
    }
    check_is_sum(bound, demands, sets);
    sharper += bound.time_ps() > greatest;
    REQUIRE(bound_of(std::vector{requests[0]}, topology, Switches::Forward).time_ps() ==
            bound_of(requests[0], topology, Switches::Forward).time_ps());
  }
  CHECK(sharper > 50 / kOneOf);
}

TEST_CASE("prices of several requests add up where they are for the same beta") {
  PriceDemand three{{0, 10}, 5, 3, 40}, none{{0, 0, 4}, 1, 0, 0}, seven{{}, 6, 7, 50};
  auto sum = [](PriceDemand a, const PriceDemand& b) {
    add(a, b);
    return std::tuple(std::vector<std::int64_t>(a.alone_bytes.begin(), a.alone_bytes.end()),
                      static_cast<std::int64_t>(a.other_receipts_bytes), a.fold_price,
                      static_cast<std::int64_t>(a.fold_cost_bytes));
  };
  using List = std::vector<std::int64_t>;
  CHECK(sum(three, three) == std::tuple(List{0, 20}, 10, 3, 80));
  CHECK(sum(three, none) == std::tuple(List{0, 10, 4}, 6, 3, 40 + 2 * 4 + 1));
  CHECK(sum(none, three) == sum(three, none));
  CHECK(sum(three, seven) == std::tuple(List{0, 10}, 11, 7, 50 + 10 + 5));
  CHECK(sum(seven, three) == sum(three, seven));
}

// 5 ranks on a star of 100e9 bytes/s and 1 us, 1000 x 1000 f32: every rank sends 200 * 200 * 4 B to
// each of the 4 others, and all ports are busy from the first byte to the last:
//   latency + 4 * 160,000 B / 100e9 B/s = 1 us + 6.4 us
TEST_CASE("an even all-to-all on a star takes its bound") {
  Topology topology = star(5);
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("5"));
  Request request(parse_layout("1000,1000", "f32", mesh, "S0"),
                  parse_layout("1000,1000", "f32", mesh, "S1"));
  Bound bound = bound_of(request, topology);
  CHECK(bound.cut_ps == 7'400'000);
  CHECK(bound.volume_ps == 7'400'000);
  CHECK(bound.latency_ps == 1'000'000);
  Plan plan = plan_p2p(request, on(topology));
  CHECK(sim::time_of(plan, topology) == 7'400'000);
  // Two of them take twice the bytes' time.
  CHECK(bound_of(std::vector{request, request}, topology).time_ps() == 13'800'000);
  CHECK(sim::time_of(join({plan, plan}), topology) == 13'800'000);
}

// Both directions share the staging: 0 and 2 exchange 64 MiB through 8.604e9 bytes/s. Into either
// rank its half could take all of it, so the cut is half of the time; the volume bound counts the
// staging once.
TEST_CASE("a resource that both directions share counts once in the volume bound") {
  Topology topology = sim::find_topology("pcie-8x3090");
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("2", "0,2"));
  Request request(parse_layout("8192,4096", "f32", mesh, "S0"),
                  parse_layout("8192,4096", "f32", mesh, "S1"));
  CutSets sets(topology, request.ranks());
  for (std::size_t set = 0; set < sets.size(); ++set)
    CHECK((sets.capacity_in(set) == 8'604'000'000));
  CHECK((sets.levels()[0].capacity == 8'604'000'000));
  Bound bound = bound_of(request, topology);
  CHECK(bound.cut_ps == 2'600'000 + transfer_ps(32 << 20, 8'604'000'000));
  CHECK(bound.volume_ps == 2'600'000 + transfer_ps(64 << 20, 8'604'000'000));
  CHECK(bound.limited_by() == LimitedBy::Volume);
  // Each flow gets half of the staging, 4.302e9 bytes/s, below its own cap: the plan is at the
  // bound.
  CHECK(sim::time_of(plan_p2p(request, on(topology)), topology) == bound.volume_ps);
}

// Staging in the middle of a route: 4 devices with ports of 100e9 into a memory of 10e9 bytes/s,
// all-to-all of 4 x 4 blocks of 1 MB. All 12 MB cross the memory.
TEST_CASE("the narrowest hop of a route may be in its middle") {
  Topology topology = build_topology(
      parse_topology(
          "reshard-topology 1\nname staged\ndevices 4\nport pcie 100GB/s\nshared memory 10GB/s\n"
          "route within via pcie.out memory pcie.in latency 0 transport host\n",
          "staged.topo"),
      std::nullopt);
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("4"));
  Request request(parse_layout("4000,1000", "f32", mesh, "S0"),
                  parse_layout("4000,1000", "f32", mesh, "S1"));
  Bound bound = bound_of(request, topology);
  CHECK(bound.cut_ps == transfer_ps(3'000'000, 10'000'000'000));
  CHECK(bound.volume_ps == transfer_ps(12'000'000, 10'000'000'000));
  CHECK(sim::time_of(plan_p2p(request, on(topology)), topology) >= bound.volume_ps);
}

}  // namespace
}  // namespace reshard::test
