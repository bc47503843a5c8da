// SPDX-License-Identifier: BSD-3-Clause
// Steps carried by NCCL, run by the engine: an operation alone takes the time of its formula, to
// the picosecond; two on one link slow each other down.
#include "sim/transport/nccl/nccl_carrier.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "core/layout/request.h"
#include "core/planners/planner.h"
#include "core/topology/topology_text.h"
#include "sim/network/engine.h"
#include "sim/study/studies.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard::sim::nccl::carrier_tests {
namespace {

std::shared_ptr<const Topology> machine(const std::string& nvlink, std::int64_t nodes = 1,
                                        const std::string& more = "") {
  std::string text = "reshard-topology 1\nname m\ndevices 8\ncount nodes\ngpu sm90\n" + more +
                     "port nvlink " + nvlink +
                     "\nport nic 50GB/s\n"
                     "route within via nvlink.out nvlink.in latency 1us transport nvlink\n"
                     "route between via nic.out nic.in latency 5us transport network\n";
  return std::make_shared<const Topology>(build_topology(parse_topology(text, "m.topo"), nodes));
}

std::vector<Rank> ranks(int count) {
  std::vector<Rank> out;
  for (int r = 0; r < count; ++r) out.push_back(Rank{r});
  return out;
}

Operation collective(CollectiveKind kind, std::vector<Rank> of, std::int64_t bytes,
                     std::int32_t stream = 0) {
  return {BareCollective{kind, reshard::Algorithm::Ring, std::move(of), bytes}, stream, {}};
}

std::int64_t time_of(const Topology& topology, std::vector<Operation> operations) {
  NcclCarrier carrier(topology, constants_of(""));
  return run({std::move(operations)}, topology, {.carriers = {&carrier}}).end_ps;
}

// By the form.
std::int64_t form_ps(const Topology& topology, Function function, int count, std::int64_t bytes) {
  Costs costs(constants_of(""), parameters_of(topology), communicator_of(topology, ranks(count)));
  return std::llround(costs.time_us(function, costs.choose(function, bytes), bytes) * 1e6);
}

}  // namespace

TEST_CASE("A collective alone takes its form's time to the picosecond") {
  for (std::int64_t nodes : {1, 2, 4})
    for (const std::string more : {"", "reduces nvlink\n"}) {
      auto topology = machine("450GB/s", nodes, more);
      int n = 8 * static_cast<int>(nodes);
      for (std::int64_t bytes : {1, 1024, 40'000, 1 << 20, 100'000'007, 1 << 30}) {
        CAPTURE(nodes, more, bytes);
        CHECK(time_of(*topology, {collective(CollectiveKind::AllReduce, ranks(n), bytes)}) ==
              form_ps(*topology, Function::AllReduce, n, bytes));
        CHECK(time_of(*topology, {collective(CollectiveKind::AllGather, ranks(n), bytes)}) ==
              form_ps(*topology, Function::AllGather, n, n * bytes));
        CHECK(time_of(*topology, {collective(CollectiveKind::ReduceScatter, ranks(n), bytes)}) ==
              form_ps(*topology, Function::ReduceScatter, n, n * bytes));
      }
    }
}

TEST_CASE("An all-to-all alone takes its form's time") {
  auto topology = machine("450GB/s");
  Costs costs(constants_of(""), parameters_of(*topology), communicator_of(*topology, ranks(8)));
  for (std::int64_t bytes : {1, 5000, 100'000, 1 << 24}) {
    std::int64_t expected = std::llround(costs.all_to_all_us(bytes) * 1e6);
    std::int64_t found =
        time_of(*topology, {collective(CollectiveKind::AllToAll, ranks(8), bytes)});
    CHECK(std::abs(found - expected) <= 1);
  }
}

TEST_CASE("Two collectives on one link slow each other") {
  auto wide = machine("4500GB/s", 1, "figure nccl.ring 360GB/s\n"), narrow = machine("450GB/s");
  Operation first = collective(CollectiveKind::AllGather, ranks(8), 1 << 27),
            second = collective(CollectiveKind::AllGather, ranks(8), 1 << 27, 1);
  std::int64_t alone = time_of(*narrow, {first}), both = time_of(*narrow, {first, second});
  CHECK(time_of(*wide, {first}) == time_of(*wide, {first, second}));
  // 2 x 7 x 128 MiB over 450 GB/s.
  CHECK(both > 14 * (std::int64_t{1} << 27) * 1000 / 450);
  CHECK(both > alone * 14 / 10);
  CHECK(both < alone * 2);
}

TEST_CASE("Rings between nodes use every NIC, and groups that share none do not meet") {
  auto topology = machine("450GB/s", 2);
  NcclCarrier carrier(*topology, constants_of(""));
  Timeline timeline = run({{collective(CollectiveKind::AllReduce, ranks(16), 1 << 28)}}, *topology,
                          {.record_flows = true, .carriers = {&carrier}});
  std::vector<std::int64_t> sent(16, 0), received(16, 0);
  for (const FlowSpan& flow : timeline.flows)
    if (topology->node_of(flow.source) != topology->node_of(flow.destination)) {
      sent[to_index(flow.source)] += flow.bytes;
      received[to_index(flow.destination)] += flow.bytes;
    }
  // 2 x 15/16 of the bytes along each ring, an eighth of them on each.
  std::int64_t share = (std::int64_t{1} << 28) * 2 * 15 / 16 / 8;
  for (int r = 0; r < 16; ++r)
    CHECK((sent[to_index(r)] == share && received[to_index(r)] == share));

  auto pair = [](int r, std::int32_t stream) {
    return collective(CollectiveKind::AllReduce, {Rank{r}, Rank{r + 8}}, 1 << 26, stream);
  };
  CHECK(time_of(*topology, {pair(0, 0), pair(1, 0)}) == time_of(*topology, {pair(0, 0)}));
  CHECK(time_of(*topology, {pair(0, 0), pair(0, 1)}) > time_of(*topology, {pair(0, 0)}));
}

TEST_CASE("A group on part of the nodes, and nodes with unequal parts of it") {
  auto topology = machine("450GB/s", 3);
  std::vector<Rank> uneven{Rank{0}, Rank{1}, Rank{2}, Rank{9}, Rank{17}, Rank{18}};
  NcclCarrier carrier(*topology, constants_of(""));
  std::int64_t bytes = 6 << 20;
  Timeline timeline = run({{collective(CollectiveKind::AllGather, uneven, bytes)}}, *topology,
                          {.record_flows = true, .carriers = {&carrier}});
  std::vector<std::int64_t> in(24, 0);
  for (const FlowSpan& flow : timeline.flows) in[to_index(flow.destination)] += flow.bytes;
  for (Rank rank : uneven) CHECK(in[to_index(rank)] == 5 * bytes);
}

TEST_CASE("Where each pair has a link the rings of a collective use all of them") {
  std::string text = "reshard-topology 1\nname m\ndevices 4\ngpu sm80\n";
  for (int a = 0; a < 4; ++a) text += fmt::format("group g{0} {0}\n", a);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b)
      if (a != b)
        text += fmt::format(
            "shared l{0}{1} 100GB/s\nroute g{0} to g{1} via l{0}{1} latency 0.7us transport "
            "nvlink\n",
            a, b);
  Topology pairs = build_topology(parse_topology(text, "m.topo"), std::nullopt);
  std::int64_t bytes = 1 << 28;
  CHECK(time_of(pairs, {collective(CollectiveKind::AllReduce, ranks(4), bytes)}) ==
        form_ps(pairs, Function::AllReduce, 4, bytes));
  NcclCarrier carrier(pairs, constants_of(""));
  Timeline timeline = run({{collective(CollectiveKind::AllReduce, ranks(4), bytes + 1)}}, pairs,
                          {.record_flows = true, .carriers = {&carrier}});
  CHECK(timeline.flows.size() == 12);
  std::int64_t sent = 0;
  for (const FlowSpan& flow : timeline.flows)
    if (flow.source == Rank{1}) sent += flow.bytes;
  CHECK(sent == (bytes + 1) * 3 / 4 * 2);
}

TEST_CASE("Messages wait for their launch and move as fast as their thread blocks") {
  auto topology = machine("450GB/s");
  Costs two(constants_of(""), parameters_of(*topology), communicator_of(*topology, ranks(2)));
  for (std::int64_t bytes : {1, 10'000, 1 << 20, 1 << 28}) {
    Operation send{PointToPoint{Rank{0}, Rank{1}, bytes}, 0, {}};
    // Never sooner than the route's own microsecond.
    Costs::MessageTime alone = two.lone_message(bytes, false);
    CHECK(std::abs(time_of(*topology, {send}) -
                   std::llround(std::max(alone.time_us, alone.moving_us + 1) * 1e6)) <= 1);
    // Where each of two ranks sends and receives, thread blocks share their work.
    std::int64_t both =
        std::llround(two.message_latency_us(bytes, false) * 1e6) +
        std::llround(two.transfer_us(bytes, two.channels_per_message(bytes, false)) * 1e6);
    CHECK(std::abs(time_of(*topology, {collective(CollectiveKind::AllToAll, ranks(2), bytes)}) -
                   both) <= 1);
    CHECK(both > time_of(*topology, {send}));
  }
}

TEST_CASE("No transport beats the latency of a route") {
  auto far = std::make_shared<const Topology>(build_topology(
      parse_topology("reshard-topology 1\nname m\ndevices 2\nport nvlink 450GB/s\n"
                     "route within via nvlink.out nvlink.in latency 1ms transport nvlink\n",
                     "m.topo"),
      std::nullopt));
  CHECK(time_of(*far, {collective(CollectiveKind::AllReduce, ranks(2), 8)}) >= 1'000'000'000);
}

TEST_CASE("A study's time is its transport's, ideal stands beside it") {
  auto topology = machine("450GB/s", 2);
  Request request = request_on("16", "1024,1024", "S(0)", "R");
  auto studied = [&](TransportKind kind, const char* planner) {
    StudyOptions options;
    options.transport.kind = kind;
    Studies studies(topology, find_planner(planner), options);
    return studies.of(request);
  };
  auto ideal = studied(TransportKind::Ideal, "rule"), nccl = studied(TransportKind::Nccl, "rule");
  CHECK(nccl->time_ps() == form_ps(*topology, Function::AllGather, 16, 4 << 20));
  CHECK(nccl->ideal_time_ps() == ideal->time_ps());
  CHECK(ideal->ideal_time_ps() == ideal->time_ps());
  CHECK(text(nccl->transport()) == "nccl");
  // What auto takes is what the transport makes fastest.
  CHECK(studied(TransportKind::Nccl, "auto")->time_ps() <=
        std::min(nccl->time_ps(), studied(TransportKind::Nccl, "p2p")->time_ps()));
}

}  // namespace reshard::sim::nccl::carrier_tests
