// SPDX-License-Identifier: BSD-3-Clause
// Steps as copy engines carry them: exact picoseconds of launches, staging, engines and relays.
#include "sim/transport/copy_carrier.h"

#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

#include "core/base/units.h"
#include "core/planners/planner.h"
#include "core/topology/topology_text.h"
#include "sim/network/engine.h"
#include "sim/transport/nccl/nccl_constants.h"
#include "tests/core/planners/planner_cases.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::kGB;
using reshard::test::kUs;

namespace {

// 100 GB/s of NVLink of which copies take 80 GB/s; launches of 2 us, two engines.
Topology machine(std::int64_t nodes, const std::string& within = "transport nvlink") {
  std::string text =
      "reshard-topology 1\nname m\ndevices 4\ncount nodes\ngpu sm90\nfigure copy.launch 2us\n"
      "figure copy.staging 7us\nfigure copy.efficiency 0.8\nfigure copy.engines 2\n"
      "port nvlink 100GB/s\nport nic 10GB/s\n"
      "route within via nvlink.out nvlink.in latency 1us " +
      within + "\nroute between via nic.out nic.in latency 5us transport network\n";
  return build_topology(parse_topology(text, "m.topo"), nodes);
}

Timeline timed(const Topology& topology, Operation operation) {
  CopyCarrier carrier(topology, nccl::constants_of(""));
  return run({{std::move(operation)}}, topology, {.record_flows = true, .carriers = {&carrier}});
}

std::int64_t message_ps(const Topology& topology, std::int32_t to, std::int64_t bytes,
                        std::optional<std::int64_t> cap = {}) {
  return timed(topology, {PointToPoint{Rank{0}, Rank{to}, bytes, cap}, 0, {}}).end_ps;
}

Operation collective(CollectiveKind kind, std::int32_t ranks, std::int64_t bytes) {
  BareCollective out{kind, default_algorithm(kind), {}, bytes};
  for (std::int32_t r = 0; r < ranks; ++r) out.ranks.push_back(Rank{r});
  return {std::move(out), 0, {}};
}

}  // namespace

TEST_CASE("A copy takes its launch, its route's latency and its bytes at what copies reach") {
  Topology nvlink = machine(1);
  CHECK(message_ps(nvlink, 1, 0) == 3 * kUs);
  CHECK(message_ps(nvlink, 1, 8'000'000) == 3 * kUs + transfer_ps(8'000'000, 80 * kGB));
  // PCIe is stated as what is reached.
  CHECK(message_ps(machine(1, "transport pcie"), 1, 8'000'000) ==
        3 * kUs + transfer_ps(8'000'000, 100 * kGB));
  // Who calls may be slower, never faster.
  CHECK(message_ps(nvlink, 1, 8'000'000, kGB) == 3 * kUs + transfer_ps(8'000'000, kGB));
  CHECK(message_ps(nvlink, 1, 8'000'000, 90 * kGB) == message_ps(nvlink, 1, 8'000'000));
}

TEST_CASE("A copy through host memory waits for its staging and its first chunk, then is capped") {
  Topology staged = machine(1, "cap 4GB/s transport host");
  CHECK(message_ps(staged, 1, 1000) == 10 * kUs + 2 * transfer_ps(1000, 4 * kGB));
  CHECK(message_ps(staged, 1, 8'000'000) ==
        10 * kUs + transfer_ps(32 * 1024, 4 * kGB) + transfer_ps(8'000'000, 4 * kGB));
}

TEST_CASE("Copies of one GPU are launched in turn and share its engines") {
  Topology topology = machine(1);
  Timeline timeline = timed(topology, collective(CollectiveKind::AllGather, 4, 1'000'000));
  REQUIRE(timeline.flows.size() == 12);
  // Three copies on two engines of 80 GB/s: 53.3 each, and the port gives 33.3.
  std::int64_t third = transfer_ps(1'000'000, 53'333'333'333);
  CHECK(timeline.end_ps > 5 * kUs + third);
  std::map<std::int32_t, int> sent;
  for (const FlowSpan& flow : timeline.flows) {
    ++sent[to_int(flow.source)];
    CHECK(flow.bytes == 1'000'000);
  }
  CHECK(sent == std::map<std::int32_t, int>{{0, 3}, {1, 3}, {2, 3}, {3, 3}});
  // Two launches, the later copy's latency; 3 MB through a port of 100 GB/s at the soonest.
  CHECK(timed(topology, collective(CollectiveKind::AllGather, 4, 0)).end_ps == 5 * kUs);
  CHECK(timeline.end_ps <= 5 * kUs + 3 * transfer_ps(1'000'000, 100 * kGB));
  // One peer has an engine for itself.
  CHECK(timed(topology, collective(CollectiveKind::AllToAll, 2, 1'000'000)).end_ps ==
        3 * kUs + transfer_ps(1'000'000, 80 * kGB));
}

TEST_CASE("A gather over nodes crosses the network once per node and place, and is handed on") {
  Topology topology = machine(3);
  Timeline timeline = timed(topology, collective(CollectiveKind::AllGather, 12, 1000));
  std::map<std::int32_t, std::int64_t> received;
  std::int64_t crossing = 0;
  for (const FlowSpan& flow : timeline.flows) {
    received[to_int(flow.destination)] += flow.bytes;
    if (topology.node_of(flow.source) == topology.node_of(flow.destination)) continue;
    crossing += flow.bytes;
    CHECK(topology.local_of(flow.source) == topology.local_of(flow.destination));
  }
  CHECK(crossing == 12 * 2 * 1000);
  for (std::int32_t r = 0; r < 12; ++r) CHECK(received[r] == 11 * 1000);
  // Relays come behind the first chunk from the other node.
  for (const FlowSpan& flow : timeline.flows)
    if (flow.bytes == 2000) CHECK(flow.end_ps >= 8 * kUs + transfer_ps(1000, 10 * kGB));
}

TEST_CASE("What reduces and what crosses the network is as NCCL has it") {
  Topology topology = machine(2);
  nccl::NcclCarrier nccl(topology, nccl::constants_of(""));
  auto by_nccl = [&](const Operation& operation) {
    return run({{operation}}, topology, {.carriers = {&nccl}}).end_ps;
  };
  for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter}) {
    Operation reduce = collective(kind, 8, 1 << 20);
    CHECK(timed(topology, reduce).end_ps == by_nccl(reduce));
  }
  Operation far{PointToPoint{Rank{1}, Rank{6}, 1 << 20}, 0, {}};
  CHECK(timed(topology, far).end_ps == by_nccl(far));
  CHECK(timed(topology, collective(CollectiveKind::AllToAll, 8, 1000)).flows.size() == 56);
}

TEST_CASE("Every range of a message is a copy, NCCL brings them together first") {
  Topology topology = machine(1);
  Plan plan = plan_p2p(request_on("2", "64", "_S(0,4)", "R"), {});
  auto exchange = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
    return step_traffic(plan, step).has_value();
  });
  REQUIRE(exchange != plan.steps.end());
  std::optional<StepTraffic> traffic = step_traffic(plan, *exchange);
  for (const Flow& flow : traffic->flows) CHECK(flow.ranges == 4);
  CopyCarrier carrier(topology, nccl::constants_of(""));
  std::vector<std::int64_t> latencies;
  carrier.step(plan, *exchange)
      .for_each_sent(0, 0, [&](std::int32_t, std::int32_t, std::int64_t, const Terms* terms) {
        latencies.push_back(terms->latency_ps);
      });
  // Four copies on two engines, and the route's microsecond.
  CHECK(latencies == std::vector<std::int64_t>{5 * kUs});

  nccl::NcclCarrier nccl(topology, nccl::constants_of(""));
  std::vector<Rank> ranks{Rank{0}, Rank{1}};
  std::vector<Flow> whole{{0, 1, 1000, {}}}, parts{{0, 1, 1000, {}, 1001}};
  nccl.price_messages(ranks, ranks, whole);
  nccl.price_messages(ranks, ranks, parts);
  CHECK(parts[0].terms.latency_ps - whole[0].terms.latency_ps ==
        1000 * nccl::default_figure(Figure::Range, 90));
}
