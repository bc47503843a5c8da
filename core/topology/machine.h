// SPDX-License-Identifier: BSD-3-Clause
// What a machine is beside its links, for models of the software that drives them: its GPUs and
// processors, whether its switches reduce, and figures that were measured or fitted. All of it may
// be missing: then models fall back on what links and GPUs suggest.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reshard {

enum class Cpu : std::uint8_t { Intel, Amd, Other };
std::string_view text(Cpu cpu);  // "intel", "amd", "other"

// Figures of NCCL and of copy engines on this machine. What each means in which formula:
// sim/transport/nccl/nccl_costs.h, copy_carrier.h, setup_costs.h, sim/network/interference.h.
enum class Figure : std::uint8_t {
  Launch,            // of a kernel that does a collective
  HopNvlink,         // one step of a ring in the LL protocol: over NVLink,
  HopPcie,           // over PCIe switches,
  HopHost,           // by way of the host or between sockets
  SimpleLaunch,      // the Simple protocol against its usual cost: once,
  SimpleHop,         // and per step of a ring
  RingRate,          // of all rings together on one node, as NCCL's search finds it
  Efficiency,        // what of that rate is reached
  NvlsEfficiency,    // what of it switches that reduce reach
  CtaRate,           // of one thread block that sends to a peer
  HostRate,          // of one send by way of host memory
  Range,             // of each box but the first that a message brings together
  CopyLaunch,        // of one copy
  CopyStaging,       // what a copy through host memory waits for beside
  CopyEfficiency,    // what of an NVLink a copy reaches
  CopyEngines,       // of a GPU: copies at one time
  CopyShared,        // what of its way out of a GPU several copies reach together
  CommInit,          // making a communicator: what it takes in any case,
  CommRank,          // and per rank of it
  CommSplit,         // splitting one off another
  CommConnect,       // first use of a peer
  CommMemory,        // what a communicator holds on each GPU,
  CommPeer,          // and for a peer that it has used, per channel
  LaunchQueue,       // launches of a GPU that are issued and not done; none: any number
  ComputeUnderNccl,  // what is left of the rate: of compute while NCCL's kernels move bytes,
  NcclUnderCompute,  // of these while the GPU computes,
  ComputeUnderCopy,  // of compute while copy engines do,
  CopyUnderCompute,  // of these while the GPU computes
  Sms,               // multiprocessors of a GPU
  GpuMemory,         // rate of its memory
  GpuF64,            // 10^12 operations a second of products, by dtype: f64,
  GpuF32,            // f32,
  GpuF16             // bf16 and f16
};
inline constexpr int kFigures = 33;

// Times in ps, rates in bytes per second, sizes in bytes, ratios and counts in millionths.
enum class FigureUnit : std::uint8_t { Time, Rate, Size, Ratio };

struct FigureRow {
  std::string_view name;  // "nccl.hop.nvlink"
  FigureUnit unit;
  std::int64_t least, most;
  std::string_view meaning;
};
// By Figure.
std::span<const FigureRow> figure_rows();
std::optional<Figure> find_figure(std::string_view name);

// What carries steps, and what that costs beside the links (sim/transport).
enum class TransportKind : std::uint8_t { Ideal, Nccl, CopyEngine };
inline constexpr std::array<std::string_view, 3> kTransportNames{"ideal", "nccl", "copy-engine"};
inline constexpr int kTransportKinds = static_cast<int>(kTransportNames.size());
std::string_view text(TransportKind kind);
std::optional<TransportKind> find_transport(std::string_view name);
std::string transport_names();  // "ideal, nccl or copy-engine"

struct Machine {
  std::optional<std::int32_t> compute_capability;  // of the GPUs, x 10: 80, 90, 100; 50 .. 999
  std::optional<Cpu> cpu;
  std::optional<TransportKind> transport;  // the usual one; none: ideal
  std::string nccl_version;                // whose choices are made; "": the newest known
  bool nvls = false;                       // NVLink switches reduce and multicast
  bool sharp = false;                      // the network's switches reduce
  std::array<std::optional<std::int64_t>, kFigures> figures;  // by Figure

  std::optional<std::int64_t> figure(Figure which) const {
    return figures[static_cast<std::size_t>(which)];
  }
  void set(Figure which, std::int64_t value) { figures[static_cast<std::size_t>(which)] = value; }
  friend bool operator==(const Machine&, const Machine&) = default;
};

}  // namespace reshard
