// SPDX-License-Identifier: BSD-3-Clause
// Facts about a machine other than its links, for models of the software that drives them: its GPUs
// and processors, whether its switches reduce, and figures that were measured or fitted. All are
// optional: where they are missing, models estimate from links and GPUs.
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

// Figures of NCCL and of copy engines on this machine. The formulas that use them are in
// sim/transport/nccl/nccl_costs.h, sim/transport/copy_carrier.h, sim/transport/communicators.h and
// sim/network/interference.h.
enum class Figure : std::uint8_t {
  Launch,            // of a kernel that runs a collective
  HopNvlink,         // one step of a ring in the LL protocol: over NVLink,
  HopPcie,           // over PCIe switches,
  HopHost,           // through the host or between sockets
  SimpleLaunch,      // launch of the Simple protocol relative to its usual cost,
  SimpleHop,         // and the same for one step of a ring
  RingRate,          // of all rings of a node together, as NCCL's search finds it
  Efficiency,        // share of RingRate that is reached,
  NvlsEfficiency,    // and that is reached with switches that reduce
  CtaRate,           // of one thread block that sends to a peer
  HostRate,          // of one send through host memory
  Range,             // cost of each box but the first in a message
  CopyLaunch,        // of one copy
  CopyStaging,       // additional delay of a copy through host memory
  CopyEfficiency,    // share of an NVLink's rate that a copy reaches
  CopyEngines,       // concurrent copies of a GPU
  CopyShared,        // share of a GPU's outgoing link that several copies reach together
  CommInit,          // creating a communicator: fixed part,
  CommRank,          // and per rank
  CommSplit,         // splitting off a communicator
  CommConnect,       // first use of a peer
  CommMemory,        // held by a communicator on each GPU,
  CommPeer,          // and for each peer that it has used, per channel
  LaunchQueue,       // launches that a GPU can have issued but not done; missing: any number
  ComputeUnderNccl,  // fraction left of the rate: of compute while NCCL's kernels move bytes,
  NcclUnderCompute,  // of NCCL's kernels while the GPU computes,
  ComputeUnderCopy,  // of compute while copy engines move bytes,
  CopyUnderCompute,  // of copy engines while the GPU computes
  Sms,               // multiprocessors of a GPU
  GpuMemory,         // rate of its memory
  GpuF64,            // matrix products, 10^12 operations per second: f64,
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
// Indexed by Figure.
std::span<const FigureRow> figure_rows();
std::optional<Figure> find_figure(std::string_view name);

// The software that carries steps; it adds costs to those of the links (sim/transport).
enum class TransportKind : std::uint8_t { Ideal, Nccl, CopyEngine };
inline constexpr std::array<std::string_view, 3> kTransportNames{"ideal", "nccl", "copy-engine"};
inline constexpr int kTransportKinds = static_cast<int>(kTransportNames.size());
std::string_view text(TransportKind kind);
std::optional<TransportKind> find_transport(std::string_view name);
std::string transport_names();  // "ideal, nccl or copy-engine"

struct Machine {
  std::optional<std::int32_t> compute_capability;  // of the GPUs, x 10: 80, 90, 100; 50 .. 999
  std::optional<Cpu> cpu;
  std::optional<TransportKind> transport;  // the default; none: ideal
  std::string nccl_version;                // the version to model; "": the newest known
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
