// SPDX-License-Identifier: BSD-3-Clause
// Every speed that NCCL's search tries: the channels found for a rate are those of a second
// implementation of the search over the list in the source (src/graph/search.cc of NCCL 2.30.7).
#include <algorithm>
#include <optional>
#include <vector>

#include <catch2/catch.hpp>

#include "core/topology/topology_text.h"
#include "sim/transport/nccl/nccl_graph.h"

namespace reshard::sim::nccl::speeds_tests {
namespace {

struct Speeds {
  int compute_capability;
  std::vector<double> intra, inter;
};

const std::vector<Speeds> kSpeeds{
    {80,
     {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
     {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12}},
    {90,
     {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3},
     {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}},
    {100,
     {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18},
     {96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}}};

// What one speed carries where `total` can pass, in at most 32 channels.
int channels_of(double total, double speed) {
  int channels = 0;
  while (channels < 32 && (channels + 1) * speed <= total + 1e-9 * speed) ++channels;
  return channels;
}

// Before fast channels are cut in two.
std::pair<int, double> searched(const std::vector<double>& speeds, double total) {
  std::pair<int, double> best{0, 0};
  for (double speed : speeds)
    if (int channels = channels_of(total, speed); channels * speed > best.first * best.second)
      best = {channels, speed};
  return best;
}

void check_same(const Graph& found, std::pair<int, double> best, int compute_capability) {
  bool cut = best.second >= 25 && (compute_capability < 90 || best.second >= 50 || best.first <= 4);
  CHECK(found.channels == best.first * (cut ? 2 : 1));
  CHECK(found.intra == Approx(best.second / (cut ? 2 : 1)));
  CHECK(found.inter == found.intra);
}

}  // namespace

TEST_CASE("rings on a node are found by the speeds of their generation") {
  for (const Speeds& speeds : kSpeeds)
    for (double speed : speeds.intra)
      for (int channels : {1, 2, 3, 5, 7, 11})
        for (double more : {0.0, 0.4, 0.9}) {
          double total = channels * (speed + more);
          CAPTURE(speeds.compute_capability, speed, channels, more);
          check_same(rings_on_node(total, speeds.compute_capability), searched(speeds.intra, total),
                     speeds.compute_capability);
        }
}

TEST_CASE("rings between nodes are found by the speeds of their generation") {
  for (const Speeds& speeds : kSpeeds)
    for (double speed : speeds.inter)
      for (int channels : {1, 3, 7})
        for (double more : {0.0, 0.02, 0.4}) {
          double nic = channels * (speed + more);
          CAPTURE(speeds.compute_capability, speed, channels, more);
          check_same(rings_between(1, nic, 1, 0, speeds.compute_capability),
                     searched(speeds.inter, nic), speeds.compute_capability);
        }
}

// The cap is at least three quarters of the narrowest hop, 200 GB/s, so it is what copies reach of
// it, and the rings get the hop whole: 160 of 200, 0.8 of it counted; not one cap after the other.
TEST_CASE("what copies reach of a route is set beside its narrowest hop") {
  auto carried = [](const std::string& cap) {
    Topology topology = build_topology(
        parse_topology(
            "reshard-topology 1\nname m\ndevices 2\ngpu sm80\nport nvlink 400GB/s\n"
            "shared bridge 200GB/s\nroute within via nvlink.out bridge nvlink.in latency "
            "1us cap " +
                cap + " transport nvlink\n",
            "m.topo"),
        std::nullopt);
    Graph ring = communicator_of(topology, std::vector<Rank>{Rank{0}, Rank{1}}).ring;
    return ring.channels * ring.intra;
  };
  CHECK(carried("160GB/s") == Approx(carried("200GB/s")));
  CHECK(carried("150GB/s") == Approx(carried("200GB/s")));
  CHECK(carried("140GB/s") < carried("150GB/s"));
}

}  // namespace reshard::sim::nccl::speeds_tests
