// SPDX-License-Identifier: BSD-3-Clause
// Constants of NCCL's own model of collectives, by version. NCCL uses them to choose an algorithm
// and a protocol; what the choice then costs is in nccl_costs.h.
//
// Source: src/graph/tuning.cc of the versions named. Latencies in us, rates in GB/s (10^9).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace reshard::sim::nccl {

enum class Algorithm : std::uint8_t {
  Tree,
  Ring,
  CollNetDirect,
  CollNetChain,
  Nvls,
  NvlsTree,
  Pat
};
inline constexpr int kAlgorithms = 7;
enum class Protocol : std::uint8_t { LL, LL128, Simple };
inline constexpr int kProtocols = 3;
std::string_view text(Algorithm algorithm);  // "tree", "ring" .. "nvls", "nvls_tree", "pat"
std::string_view text(Protocol protocol);    // "LL", "LL128", "Simple"

// Generations of GPUs that the model distinguishes, by compute capability (x 10).
enum class Generation : std::uint8_t { Volta, Ampere, Hopper, Blackwell };
Generation generation_of(int compute_capability);  // from 70; 100 and above: Blackwell

// What a step of an algorithm crosses: NVLink, directly or through a switch; PCIe, host memory or
// another GPU; a network.
enum class Hardware : std::uint8_t { NvLink, Pci, Net };

template <class Value>
using PerProtocol = std::array<Value, kProtocols>;
// On one node, on two, on more.
using PerNodes = std::array<double, 3>;
using PerGeneration = std::array<PerNodes, 4>;

struct Constants {
  std::array<PerProtocol<double>, kAlgorithms> base_us;
  std::array<std::array<PerProtocol<double>, kAlgorithms>, 3> step_us;  // by Hardware
  PerGeneration ll_total;                                               // of all channels
  PerGeneration ring_ll128, tree_ll128, tree, nvls_tree;                // per channel
  std::array<double, 4> nvls_efficiency;
  // Share of a tree's rate that remains, by the binary logarithm of (bytes / 64); 1 beyond the
  // last.
  PerProtocol<std::array<double, 23>> tree_share;
};

// "2.27" .. "2.30" (also with a patch level: "2.28.9"); empty: the newest. Throws InputError.
const Constants& constants_of(std::string_view version, std::string_view field = "--nccl-version");
// "2.27, 2.28, 2.29, 2.30".
std::string known_versions();

}  // namespace reshard::sim::nccl
