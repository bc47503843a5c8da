// SPDX-License-Identifier: BSD-3-Clause
#include "sim/transport/nccl/nccl_costs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace reshard::sim::nccl {
namespace {

constexpr double kKiB = 1024, kMiB = 1024 * 1024;

double hyp(double a, double b) { return std::sqrt(a * a + b * b); }
double norm4(double a, double b) {
  double aa = a * a, bb = b * b;
  return std::sqrt(std::sqrt(aa * aa + bb * bb));
}
// bytes/us per GB/s.
constexpr double kPerUs = 1000;

// The binary logarithm, linear between powers of two.
double log2_about(double value) {
  if (value < 1) return 0;
  auto whole = static_cast<std::uint64_t>(value);
  auto exponent = static_cast<int>(std::bit_width(whole)) - 1;
  return exponent + (value / static_cast<double>(std::uint64_t{1} << exponent) - 1);
}

// By Function: Broadcast, AllGather, ReduceScatter, AllReduce.
constexpr std::array<double, 4> kKappa{0.31, 0.31, 0.18, 0.21}, kDelta{0.34, 0.34, 0.25, 0.17};

struct Defaults {
  double launch_us, hop_us, simple_launch, simple_hop, efficiency, nvls, cta_gb;
  double copy_gb;  // rate at which a rank copies its own part: that of its full NVLinks
};

// Volta: from Ampere; Blackwell: launch and hop are the geometric means of Ampere and Hopper.
constexpr std::array<Defaults, 4> kDefaults{{{9.03, 0.893, 1, 1, 0.921, 0.832, 8.0, 110},
                                             {9.03, 0.893, 1.01, 1.05, 0.921, 0.832, 11.5, 221},
                                             {4.70, 0.786, 0.989, 0.954, 0.972, 0.832, 22.9, 350},
                                             {6.51, 0.838, 1, 1, 0.946, 0.832, 22.9, 681}}};
// Two classes of hop in a PCIe machine: one switch, and between sockets.
constexpr double kHopPcieUs = 0.58, kHopHostUs = 1.42;

}  // namespace

double Parameters::hop_us(PathClass path_class) const {
  return path_class == PathClass::NVL || path_class == PathClass::C2C ? hop_nvlink_us
         : path_class <= PathClass::PXN                               ? hop_pcie_us
                                                                      : hop_host_us;
}

std::int64_t default_figure(Figure which, int compute_capability) {
  const Defaults& of = kDefaults[to_index(generation_of(compute_capability))];
  auto us = [](double value) { return static_cast<std::int64_t>(value * 1e6 + 0.5); };
  auto ratio = us;
  switch (which) {
    case Figure::Launch:
      return us(of.launch_us);
    case Figure::HopNvlink:
      return us(of.hop_us);
    case Figure::HopPcie:
      return us(kHopPcieUs);
    case Figure::HopHost:
      return us(kHopHostUs);
    case Figure::SimpleLaunch:
      return ratio(of.simple_launch);
    case Figure::SimpleHop:
      return ratio(of.simple_hop);
    case Figure::Efficiency:
      return ratio(of.efficiency);
    case Figure::NvlsEfficiency:
      return ratio(of.nvls);
    case Figure::CtaRate:
      return static_cast<std::int64_t>(of.cta_gb * 1e9);
    case Figure::Range:
      return us(0.005);
    case Figure::CopyLaunch:
      return us(2.5);
    case Figure::CopyStaging:
      return us(5);
    case Figure::CopyEfficiency:
      return ratio(compute_capability >= 90 ? 0.835 : 0.917);
    case Figure::CopyEngines:
      return ratio(compute_capability < 80                                     ? 5
                   : compute_capability % 10 != 0 || compute_capability >= 120 ? 2
                                                                               : 3);
    case Figure::CopyShared:
      return ratio(1);
    case Figure::CommInit:  // fitted to 8 and 96,000 ranks (docs/communicators.md)
      return us(638'000);
    case Figure::CommRank:
      return us(2'750);
    case Figure::CommSplit:
      return us(150'000);
    case Figure::CommConnect:
      return us(100'000);
    case Figure::CommMemory:
      return std::int64_t{484} << 20;
    case Figure::CommPeer:
      return std::int64_t{12} << 20;
    case Figure::ComputeUnderNccl:
    case Figure::NcclUnderCompute:
    case Figure::ComputeUnderCopy:
    case Figure::CopyUnderCompute:
      return ratio(1);
    case Figure::RingRate:
    case Figure::HostRate:
    case Figure::LaunchQueue:
    case Figure::Sms:
    case Figure::GpuMemory:
    case Figure::GpuF64:
    case Figure::GpuF32:
    case Figure::GpuF16:
      break;  // from the search; from the links; unlimited; unknown; core/topology/gpu_figures.h
  }
  return 0;
}

Parameters parameters_of(const Topology& topology) {
  int sm = gpus_of(topology).compute_capability;
  auto figure = [&](Figure which) {
    return static_cast<double>(
        topology.machine().figure(which).value_or(default_figure(which, sm)));
  };
  return {figure(Figure::Launch) / 1e6,       figure(Figure::HopNvlink) / 1e6,
          figure(Figure::HopPcie) / 1e6,      figure(Figure::HopHost) / 1e6,
          figure(Figure::SimpleLaunch) / 1e6, figure(Figure::SimpleHop) / 1e6,
          figure(Figure::Efficiency) / 1e6,   figure(Figure::NvlsEfficiency) / 1e6,
          figure(Figure::CtaRate) / 1e9,      figure(Figure::Range) / 1e6};
}

double Costs::ring_us(Function function, Protocol protocol, double bytes) const {
  auto f = to_index(function);
  double n = comm_.ranks, part = bytes / n, steps = n - 1;
  if (function == Function::AllReduce) steps *= 2;
  double launch = machine_.launch_us, hop = machine_.hop_us(comm_.ring.within);
  double rate = ring_gb_per_s() * kPerUs, x = part / rate;
  double copy =
      part / (kDefaults[to_index(generation_of(comm_.compute_capability))].copy_gb * kPerUs);
  switch (protocol) {
    case Protocol::LL: {
      auto generation = to_index(generation_of(comm_.compute_capability));
      double ll = 0.92 * std::min(constants_.ll_total[generation][0], 0.5 * bus()) * kPerUs;
      double grown = 1 + kKappa[f] * std::clamp(part / (4 * kKiB) - 1, 0.0, 1.0);
      return grown * launch + steps * hyp(grown * hop, part / ll);
    }
    case Protocol::LL128:
      return 2.81 * launch + steps * (0.63 * hop + x / 0.755);
    default:
      return 2.88 * machine_.simple_launch * launch +
             steps * hyp(8.85 * machine_.simple_hop * hop, x) + kDelta[f] * copy +
             0.29 * std::min(part, 48 * kMiB) / rate;
  }
}

double Costs::nvls_us(Function function, double bytes) const {
  double n = comm_.ranks, rate = machine_.nvls_efficiency * bus() * n / (n + 1) * kPerUs;
  // Gathers and scatters move one way only, and one part of n does not move.
  if (function != Function::AllReduce) rate = rate * (n + 1) / n;
  return 36.8 * machine_.hop_nvlink_us + bytes / rate + 0.37 * std::min(bytes, 32 * kMiB) / rate;
}

double Costs::time_us(Function function, const Choice& choice, std::int64_t bytes) const {
  auto size = static_cast<double>(bytes);
  if (comm_.nodes == 1 && choice.algorithm == Algorithm::Ring && function != Function::Broadcast)
    return ring_us(function, choice.protocol, size);
  if (choice.algorithm == Algorithm::Nvls) return nvls_us(function, size);
  return *tuner_.time_us(function, choice.algorithm, choice.protocol, bytes);
}

// Latency that grows from that of small messages, up to 4 KiB, to `high`, from 64 KiB on.
double Costs::grown_latency_us(std::int64_t bytes, double high) const {
  double low = machine_.launch_us + 1.3 + 0.69 * log2_about(comm_.ranks);
  double share = std::clamp((log2_about(static_cast<double>(bytes)) - 12) / 4, 0.0, 1.0);
  return low + (high - low) * share;
}

double Costs::message_latency_us(std::int64_t bytes, bool network) const {
  return grown_latency_us(bytes, machine_.launch_us + 7.8) + (network ? 8 : 0);
}

double Costs::transfer_us(std::int64_t bytes, int channels) const {
  auto size = static_cast<double>(bytes);
  bool nvlink = comm_.ring.within <= PathClass::NVB;
  auto taken = [&](double part) {
    double blocks = part / (channels * machine_.cta_gb_per_s * kPerUs);
    return nvlink ? norm4(part / (0.93 * ring_gb_per_s() * kPerUs), blocks) : blocks;
  };
  return taken(size) + 0.41 * taken(std::min(size, 16 * kMiB));
}

Costs::MessageTime Costs::lone_message(std::int64_t bytes, bool network) const {
  auto size = static_cast<double>(bytes);
  bool nvlink = comm_.ring.within <= PathClass::NVB && !network;
  double blocks =
      size / (channels_per_message(bytes, network) * 2 * machine_.cta_gb_per_s * kPerUs);
  if (!nvlink) return {message_latency_us(bytes, network) + blocks, blocks};
  double moving = norm4(size / (1.05 * ring_gb_per_s() * kPerUs), blocks);
  return {hyp(grown_latency_us(bytes, 1.75 * machine_.launch_us), moving), moving};
}

double Costs::all_to_all_us(std::int64_t bytes) const {
  int peers = comm_.ranks - 1;
  return message_latency_us(bytes, false) +
         transfer_us(peers * bytes, std::min(32, peers * channels_per_message(bytes, false)));
}

namespace {

int all_channels(const CommunicatorShape& communicator) {
  bool nvlink = communicator.ring.within <= PathClass::NVB;
  auto rounded = static_cast<int>(std::bit_ceil(static_cast<unsigned>(communicator.ring.channels)));
  return std::min(rounded * (nvlink ? 2 : 1), 32);
}

}  // namespace

int channels_per_peer(const CommunicatorShape& communicator, bool network) {
  bool nvlink = communicator.ring.within <= PathClass::NVB;
  return network || !nvlink ? 2 : all_channels(communicator);
}

int Costs::channels_per_message(std::int64_t bytes, bool network) const {
  bool nvlink = comm_.ring.within <= PathClass::NVB;
  int all = all_channels(comm_), per_peer = channels_per_peer(comm_, network);
  std::int64_t chunk = (network || !nvlink ? 128 : 512) * 1024,
               least = comm_.nodes > 1 ? chunk / 2 : chunk / 8,
               most = comm_.nodes > 1 ? chunk : 32 * chunk;
  int few = per_peer;
  while (few > 1 && few * comm_.ranks > all) few /= 2;
  std::int64_t parts = std::max<std::int64_t>(1, (bytes + least - 1) / least);
  auto count = static_cast<int>(std::min<std::int64_t>(few, parts));
  while (bytes / count > most && count < per_peer) count = std::min(2 * count, per_peer);
  return count;
}

}  // namespace reshard::sim::nccl
