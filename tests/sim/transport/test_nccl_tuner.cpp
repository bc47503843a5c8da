// SPDX-License-Identifier: BSD-3-Clause
// NCCL's own model: what it assumes about known machines, and what it chooses there.
//
// Expected values: worked out by hand from NCCL 2.30.7's formulas for the channels that its search
// finds on these machines; two figures per algorithm and protocol, latency in us and rate in GB/s.
#include "sim/transport/nccl/nccl_tuner.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "tests/support/unit_sizes.h"

namespace reshard::sim::nccl::tuner_tests {

using Catch::WithinAbs;
using reshard::test::kKiB;
using reshard::test::kMiB;

namespace {

Graph graph_of(int channels, double rate) {
  return {channels, rate, rate, PathClass::NVL, PathClass::PXB, 0};
}

CommunicatorShape dgx(int compute_capability, int nodes, int channels, double rate) {
  CommunicatorShape out;
  out.compute_capability = compute_capability;
  out.nodes = nodes;
  out.ranks = 8 * nodes;
  out.ring = out.tree = graph_of(channels, rate);
  return out;
}

CommunicatorShape h100() {
  CommunicatorShape out = dgx(90, 1, 12, 30);
  out.nvls = {8, 40, 60, PathClass::NVL, PathClass::PXB, 0};
  return out;
}
CommunicatorShape a100() { return dgx(80, 1, 12, 20); }
CommunicatorShape b200() {
  CommunicatorShape out = dgx(100, 1, 16, 45);
  out.nvls = {8, 80, 90, PathClass::NVL, PathClass::PXB, 0};
  return out;
}
CommunicatorShape h100_nodes(int nodes) {
  CommunicatorShape out = dgx(90, nodes, 8, 48);
  out.nvls = {8, 40, 48, PathClass::NVL, PathClass::PXB, 0};
  return out;
}

struct Golden {
  CommunicatorShape communicator;
  Function function;
  Algorithm algorithm;
  std::array<std::pair<double, double>, 3> beliefs;  // by protocol
};

Tuner tuner(const CommunicatorShape& communicator) { return Tuner(constants_of(""), communicator); }

std::string chosen(const CommunicatorShape& communicator, Function function, std::int64_t bytes) {
  Choice choice = tuner(communicator).choose(function, bytes);
  return std::string(text(choice.algorithm)) + " " + std::string(text(choice.protocol));
}

}  // namespace

TEST_CASE("NCCL believes of rings and trees what its formulas say") {
  const std::vector<Golden> goldens{
      {h100(), Function::AllReduce, Algorithm::Ring, {{{15, 80.57}, {40.6, 189.26}, {56, 205.71}}}},
      {h100(),
       Function::AllReduce,
       Algorithm::Tree,
       {{{15.2, 43.58}, {31.5, 128.8}, {64.4, 165.6}}}},
      {h100(),
       Function::AllGather,
       Algorithm::Ring,
       {{{10.8, 161.14}, {27.3, 378.51}, {32.2, 411.43}}}},
      {h100(), Function::Broadcast, Algorithm::Ring, {{{7.2, 141}, {15.9, 331.2}, {11.8, 360}}}},
      {a100(), Function::AllReduce, Algorithm::Ring, {{{15, 50.11}, {40.6, 126.17}, {56, 137.14}}}},
      {a100(),
       Function::AllReduce,
       Algorithm::Tree,
       {{{15.2, 29.05}, {31.5, 85.87}, {64.4, 110.4}}}},
      {a100(),
       Function::AllGather,
       Algorithm::Ring,
       {{{10.8, 100.23}, {27.3, 252.34}, {32.2, 274.29}}}},
      {b200(),
       Function::AllGather,
       Algorithm::Ring,
       {{{10.8, 322.29}, {27.3, 731.43}, {32.2, 822.86}}}},
      {h100_nodes(2),
       Function::AllReduce,
       Algorithm::Ring,
       {{{40, 20.8}, {75.2, 156.59}, {131.6, 204.8}}}},
      {h100_nodes(2),
       Function::AllReduce,
       Algorithm::Tree,
       {{{25.2, 19.5}, {48.5, 146.8}, {92.4, 165.6}}}},
      {h100_nodes(2),
       Function::AllGather,
       Algorithm::Ring,
       {{{23.3, 41.6}, {44.6, 313.17}, {70, 409.6}}}},
      {h100_nodes(4),
       Function::AllGather,
       Algorithm::Ring,
       {{{42.7, 21.06}, {79.2, 303.07}, {145.6, 396.39}}}},
      {h100_nodes(4),
       Function::AllReduce,
       Algorithm::Ring,
       {{{78.8, 10.53}, {144.4, 151.54}, {282.8, 198.19}}}},
      {h100_nodes(4),
       Function::AllReduce,
       Algorithm::Tree,
       {{{35.2, 10.2}, {65.5, 116}, {120.4, 144}}}},
  };
  for (const Golden& golden : goldens)
    for (int p = 0; p < kProtocols; ++p) {
      CAPTURE(golden.communicator.ranks, golden.communicator.compute_capability,
              static_cast<int>(golden.function), text(golden.algorithm), p);
      auto [latency, rate] = golden.beliefs[static_cast<std::size_t>(p)];
      std::optional<Belief> belief =
          tuner(golden.communicator)
              .belief(golden.function, golden.algorithm, static_cast<Protocol>(p));
      REQUIRE(belief);
      CHECK_THAT(belief->latency_us, WithinAbs(latency, 0.05));
      CHECK_THAT(belief->rate_gb_per_s, WithinAbs(rate, 0.06));
    }
}

TEST_CASE("NCCL believes of switches that reduce what its formulas say") {
  auto check = [](const CommunicatorShape& communicator, Function function, Algorithm algorithm,
                  double latency, double rate) {
    std::optional<Belief> belief =
        tuner(communicator).belief(function, algorithm, Protocol::Simple);
    REQUIRE(belief);
    CHECK_THAT(belief->latency_us, WithinAbs(latency, 0.05));
    CHECK_THAT(belief->rate_gb_per_s, WithinAbs(rate, 0.06));
  };
  check(h100(), Function::AllReduce, Algorithm::Nvls, 25, 272);
  check(h100(), Function::AllGather, Algorithm::Nvls, 25, 208.3);
  check(b200(), Function::AllReduce, Algorithm::Nvls, 25, 411.4);
  check(h100_nodes(2), Function::AllReduce, Algorithm::NvlsTree, 66.8, 246.2);
  CHECK_FALSE(tuner(a100()).belief(Function::AllReduce, Algorithm::Nvls, Protocol::Simple));
  CHECK_FALSE(tuner(h100()).belief(Function::AllReduce, Algorithm::NvlsTree, Protocol::Simple));
  CHECK_FALSE(tuner(h100_nodes(2)).belief(Function::AllReduce, Algorithm::Nvls, Protocol::Simple));
  CHECK_FALSE(tuner(h100()).belief(Function::AllReduce, Algorithm::Nvls, Protocol::LL));
}

TEST_CASE("PCIe has no LL128 and longer steps") {
  CommunicatorShape pcie = dgx(80, 1, 2, 10);
  pcie.ring.within = pcie.tree.within = PathClass::PHB;
  std::optional<Belief> ll = tuner(pcie).belief(Function::AllGather, Algorithm::Ring, Protocol::LL);
  REQUIRE(ll);
  CHECK_THAT(ll->latency_us, WithinAbs(13.6, 0.05));
  CHECK_THAT(ll->rate_gb_per_s, WithinAbs(11.43, 0.05));
  std::optional<Belief> simple =
      tuner(pcie).belief(Function::AllGather, Algorithm::Ring, Protocol::Simple);
  REQUIRE(simple);
  CHECK_THAT(simple->latency_us, WithinAbs(48.3, 0.05));
  CHECK_THAT(simple->rate_gb_per_s, WithinAbs(22.86, 0.05));
  CHECK_FALSE(tuner(pcie).belief(Function::AllGather, Algorithm::Ring, Protocol::LL128));
}

TEST_CASE("NCCL chooses by size") {
  CommunicatorShape ring_only = h100();
  ring_only.nvls.reset();
  auto time = [&](Function function, std::int64_t bytes) {
    return tuner(ring_only).choose(function, bytes).time_us;
  };
  CHECK_THAT(time(Function::AllGather, kKiB), WithinAbs(10.8, 0.05));
  CHECK_THAT(time(Function::AllGather, kMiB), WithinAbs(17.3, 0.05));
  CHECK_THAT(time(Function::AllGather, 16 * kMiB), WithinAbs(71.6, 0.05));
  CHECK_THAT(time(Function::AllGather, 128 * kMiB), WithinAbs(358.4, 0.1));
  CHECK_THAT(time(Function::AllGather, 1024 * kMiB), WithinAbs(2642, 0.5));
  CHECK_THAT(time(Function::AllReduce, kKiB), WithinAbs(15.0, 0.05));
  CHECK_THAT(time(Function::AllReduce, kMiB), WithinAbs(28.0, 0.05));
  CHECK_THAT(time(Function::AllReduce, 16 * kMiB), WithinAbs(129, 0.5));
  CHECK_THAT(time(Function::AllReduce, 128 * kMiB), WithinAbs(709, 0.6));
  CHECK_THAT(time(Function::AllReduce, 1024 * kMiB), WithinAbs(5276, 0.6));
  CHECK(chosen(ring_only, Function::AllGather, kMiB) == "ring LL");
  CHECK(chosen(ring_only, Function::AllGather, 16 * kMiB) == "ring LL128");
  CHECK(chosen(ring_only, Function::AllGather, 128 * kMiB) == "ring Simple");

  CHECK(chosen(h100(), Function::AllReduce, kMiB) == "ring LL");
  CHECK(chosen(h100(), Function::AllReduce, 16 * kMiB) == "nvls Simple");
  CHECK_THAT(tuner(h100()).choose(Function::AllReduce, 1024 * kMiB).time_us, WithinAbs(3973, 0.8));
  CHECK(chosen(h100_nodes(2), Function::AllReduce, kKiB) == "tree LL");
}

TEST_CASE("Several nodes without switches that reduce: trees, then rings with a plateau") {
  CommunicatorShape two = h100_nodes(2);
  two.nvls.reset();
  CHECK_THAT(tuner(two).choose(Function::AllReduce, kKiB).time_us, WithinAbs(25.3, 0.05));
  CHECK(chosen(two, Function::AllReduce, kKiB) == "tree LL");
  CHECK_THAT(tuner(two).choose(Function::AllReduce, kMiB).time_us, WithinAbs(60, 0.5));
  CHECK(chosen(two, Function::AllReduce, kMiB) == "tree LL128");
  CHECK_THAT(tuner(two).choose(Function::AllReduce, 128 * kMiB).time_us, WithinAbs(840, 0.7));
  CHECK(chosen(two, Function::AllReduce, 128 * kMiB) == "ring Simple");
}

TEST_CASE("PAT gathers where every node has one rank") {
  CommunicatorShape nodes = dgx(90, 4, 1, 48);
  nodes.ranks = 4;
  std::optional<Belief> pat =
      tuner(nodes).belief(Function::AllGather, Algorithm::Pat, Protocol::Simple);
  REQUIRE(pat);
  CHECK_THAT(pat->latency_us, WithinAbs(8 + 2 * 14 / 3.5 + 2.8 * 4, 1e-9));
  CHECK_THAT(pat->rate_gb_per_s, WithinAbs(36, 1e-9));
  CHECK_FALSE(tuner(nodes).belief(Function::AllReduce, Algorithm::Pat, Protocol::Simple));
  CHECK_FALSE(tuner(h100_nodes(4)).belief(Function::AllGather, Algorithm::Pat, Protocol::Simple));
}

TEST_CASE("Processors of AMD post more slowly and copy by their own figures") {
  CommunicatorShape amd = h100_nodes(2);
  amd.cpu = Cpu::Amd;
  std::optional<Belief> ll = tuner(amd).belief(Function::AllReduce, Algorithm::Ring, Protocol::LL);
  REQUIRE(ll);
  CHECK_THAT(ll->latency_us, WithinAbs(6.6 + 28 * 2.0 + 2 * 2.7, 1e-9));
  CHECK_THAT(ll->rate_gb_per_s, WithinAbs(22.5 * 16 / 30, 1e-9));
}

TEST_CASE("Figures differ between versions") {
  CHECK(constants_of("2.28.9").ring_ll128[3][0] == 73.4);
  CHECK(constants_of("2.30").ring_ll128[3][0] == 40);
  CHECK(&constants_of("") == &constants_of("2.30"));
  CHECK(constants_of("2.27").nvls_tree[3][2] == 43.8);
  CHECK_THROWS_AS(constants_of("2.3"), InputError);
  CHECK_THROWS_AS(constants_of("2.301"), InputError);
  CHECK_THROWS_AS(constants_of("nccl"), InputError);
  CHECK(known_versions() == "2.27, 2.28, 2.29, 2.30");
}

}  // namespace reshard::sim::nccl::tuner_tests
