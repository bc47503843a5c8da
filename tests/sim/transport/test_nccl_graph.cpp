// SPDX-License-Identifier: BSD-3-Clause
// The channels that NCCL's search finds on machines with a known result.
#include "sim/transport/nccl/nccl_graph.h"

#include <vector>

#include <catch2/catch.hpp>

#include "core/topology/topology_text.h"

namespace reshard::sim::nccl::graph_tests {
namespace {

Topology machine(const std::string& lines, std::optional<std::int64_t> count = std::nullopt) {
  return build_topology(parse_topology("reshard-topology 1\nname m\n" + lines, "m.topo"), count);
}

std::vector<Rank> ranks(int first, int count) {
  std::vector<Rank> out;
  for (int r = first; r < first + count; ++r) out.push_back(Rank{r});
  return out;
}

const std::string kHopper =
    "devices 8\ncount nodes\ngpu sm90\nreduces nvlink\nport nvlink 450GB/s\nport nic 50GB/s\n"
    "route within via nvlink.out nvlink.in latency 1us transport nvlink\n"
    "route between via nic.out nic.in latency 5us transport network\n";
const std::string kPairs =
    "devices 4\ngpu sm80\nport nvlink 300GB/s\n"
    "route within via nvlink.out nvlink.in latency 1us cap 100GB/s transport nvlink\n";

void check_graph(const Graph& graph, int channels, double rate) {
  CHECK(graph.channels == channels);
  CHECK(graph.intra == Approx(rate));
}

}  // namespace

TEST_CASE("Rings on a node take the channels that carry most, the fastest of equals") {
  check_graph(rings_on_node(240, 80), 12, 20);     // 6 x 40, cut in two
  check_graph(rings_on_node(370.8, 90), 12, 30);   // 6 x 60, cut in two
  check_graph(rings_on_node(721.8, 100), 16, 45);  // 8 x 90, cut in two
  check_graph(rings_on_node(24, 80), 2, 12);
  check_graph(rings_on_node(2, 80), 1, 2);     // below every speed that is tried
  check_graph(rings_on_node(100, 90), 4, 25);  // 2 x 50
  check_graph(rings_on_node(20, 80), 1, 20);   // too slow to be cut
}

TEST_CASE("Rings between nodes run over every NIC, within what a GPU forwards") {
  check_graph(rings_between(8, 48, 8, 370.8, 90), 8, 48);
  check_graph(rings_between(8, 24, 8, 240, 80), 8, 24);
  check_graph(rings_between(1, 48, 1, 0, 90), 2, 24);
  // A ring of two GPUs leaves one edge of two in the node: 20 GB/s carry 40.
  CHECK(rings_between(8, 48, 2, 20, 90).channels * rings_between(8, 48, 2, 20, 90).intra <= 40.1);
}

TEST_CASE("Switches that reduce carry one part more than there are ranks") {
  CHECK(nvls_on_node(8, 370.8, 90) == Graph{8, 40, 60});
  CHECK(nvls_on_node(8, 721.8, 100) == Graph{8, 80, 90});
  CHECK(nvls_on_node(4, 370.8, 90) == Graph{4, 60, 60});
  CHECK_FALSE(nvls_on_node(8, 240, 80));
  CHECK_FALSE(nvls_on_node(1, 370.8, 90));
}

TEST_CASE("A communicator's channels follow from the topology and its ranks") {
  Topology hopper = machine(kHopper, 2);
  CommunicatorShape eight = communicator_of(hopper, ranks(0, 8));
  check_graph(eight.ring, 12, 30);
  CHECK((eight.ranks == 8 && eight.nodes == 1 && eight.ring.within == PathClass::NVL));
  REQUIRE(eight.nvls);
  CHECK(*eight.nvls == Graph{8, 40, 60});

  CommunicatorShape both = communicator_of(hopper, ranks(0, 16));
  check_graph(both.ring, 8, 48);
  CHECK((both.ranks == 16 && both.nodes == 2 && both.ranks_per_node() == 8));
  REQUIRE(both.nvls);
  CHECK(both.nvls->inter == 48);

  CommunicatorShape one_each = communicator_of(hopper, std::vector<Rank>{Rank{3}, Rank{11}});
  CHECK((one_each.nodes == 2 && !one_each.nvls));
  CHECK(one_each.ring.channels * one_each.ring.intra == Approx(48));
}

TEST_CASE("Where each pair has a link, two ranks have one and four have three each") {
  Topology pairs = machine(kPairs);
  CommunicatorShape two = communicator_of(pairs, ranks(0, 2)),
                    four = communicator_of(pairs, ranks(0, 4));
  CHECK(two.ring.channels * two.ring.intra == Approx(80));
  CHECK(four.ring.channels * four.ring.intra == Approx(240));
}

TEST_CASE("The class of GPU is stated or follows from the links") {
  CHECK(gpus_of(machine(kHopper, 1)).compute_capability == 90);
  CHECK(gpus_of(machine(kHopper, 1)).stated);
  std::string silent = kHopper;
  silent.erase(silent.find("gpu sm90\n"), 9);
  CHECK(gpus_of(machine(silent, 1)).compute_capability == 90);
  CHECK_FALSE(gpus_of(machine(silent, 1)).stated);
  auto of_rate = [](const std::string& rate) {
    return gpus_of(
               machine("devices 2\nport nvlink " + rate +
                       "\nroute within via nvlink.out nvlink.in latency 1us transport nvlink\n"))
        .compute_capability;
  };
  CHECK(of_rate("900GB/s") == 100);
  CHECK(of_rate("300GB/s") == 80);
  CHECK(of_rate("150GB/s") == 70);
}

TEST_CASE("A stated rate of the rings rules") {
  Topology stated = machine(
      "devices 2\ngpu sm80\nfigure nccl.ring 120GB/s\nport nvlink 300GB/s\n"
      "route within via nvlink.out nvlink.in latency 1us transport nvlink\n");
  CommunicatorShape two = communicator_of(stated, ranks(0, 2));
  CHECK(two.ring.channels * two.ring.intra == Approx(120));
}

}  // namespace reshard::sim::nccl::graph_tests
