// SPDX-License-Identifier: BSD-3-Clause
// The table of figures with their names, units and ranges.
#include "core/topology/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/ids.h"
#include "core/base/limits.h"
#include "core/base/units.h"

namespace reshard {
namespace {

constexpr std::int64_t kUs = 1'000'000, kSecond = 1'000'000 * kUs, kGB = 1'000'000'000,
                       kOne = kRatioOne;

constexpr std::array<FigureRow, kFigures> kRows{{
    {"nccl.launch", FigureUnit::Time, kUs / 10, 1'000 * kUs, "launch of a collective's kernel"},
    {"nccl.hop.nvlink", FigureUnit::Time, kUs / 100, 100 * kUs,
     "step of a ring over NVLink, LL protocol"},
    {"nccl.hop.pcie", FigureUnit::Time, kUs / 100, 100 * kUs,
     "step of a ring over PCIe switches, LL protocol"},
    {"nccl.hop.host", FigureUnit::Time, kUs / 100, 100 * kUs,
     "step of a ring through the host, LL protocol"},
    {"nccl.simple.launch", FigureUnit::Ratio, kOne / 4, 4 * kOne,
     "launch of the Simple protocol, relative to its usual cost"},
    {"nccl.simple.hop", FigureUnit::Ratio, kOne / 4, 4 * kOne,
     "step of the Simple protocol, relative to its usual cost"},
    {"nccl.ring", FigureUnit::Rate, kGB / 100, 100'000 * kGB,
     "rate of all rings of a node, as found by NCCL's search"},
    {"nccl.efficiency", FigureUnit::Ratio, kOne / 20, 2 * kOne, "share of nccl.ring achieved"},
    {"nccl.nvls", FigureUnit::Ratio, kOne / 20, 2 * kOne,
     "share of nccl.ring achieved by reducing switches"},
    {"nccl.cta", FigureUnit::Rate, kGB / 100, 10'000 * kGB,
     "rate of one thread block sending to a peer"},
    {"nccl.host", FigureUnit::Rate, kGB / 100, 1'000 * kGB, "rate of one send through host memory"},
    {"nccl.range", FigureUnit::Time, 1, 1'000 * kUs,
     "each range after the first that a message gathers"},
    {"copy.launch", FigureUnit::Time, kUs / 100, 1'000 * kUs, "launch of a copy"},
    {"copy.staging", FigureUnit::Time, kUs / 100, 1'000 * kUs,
     "extra wait of a copy through host memory"},
    {"copy.efficiency", FigureUnit::Ratio, kOne / 20, 2 * kOne,
     "share of an NVLink that a copy achieves"},
    {"copy.engines", FigureUnit::Ratio, kOne, 64 * kOne, "copies of a GPU at the same time"},
    {"copy.shared", FigureUnit::Ratio, kOne / 20, kOne,
     "share of a GPU's outgoing links that several copies achieve together"},
    {"comm.init", FigureUnit::Time, kUs, 1'000 * kSecond, "creation of a communicator"},
    {"comm.init.rank", FigureUnit::Time, 1, kSecond, "creation of a communicator, per rank"},
    {"comm.split", FigureUnit::Time, kUs, 1'000 * kSecond, "split of a communicator"},
    {"comm.connect", FigureUnit::Time, kUs, 1'000 * kSecond, "first use of a peer"},
    {"comm.memory", FigureUnit::Size, 0, kMaxBytes, "memory of a communicator on a GPU"},
    {"comm.memory.peer", FigureUnit::Size, 0, kMaxBytes, "memory per used channel of a peer"},
    {"launch.queue", FigureUnit::Ratio, kOne, 1'000'000 * kOne,
     "launches of a GPU that are issued but not done"},
    {"compute.under_nccl", FigureUnit::Ratio, kOne / 100, kOne,
     "rate of compute while NCCL's kernels run"},
    {"nccl.under_compute", FigureUnit::Ratio, kOne / 100, kOne,
     "rate of NCCL's kernels while the GPU computes"},
    {"compute.under_copy", FigureUnit::Ratio, kOne / 100, kOne,
     "rate of compute while copy engines move bytes"},
    {"copy.under_compute", FigureUnit::Ratio, kOne / 100, kOne,
     "rate of copies while the GPU computes"},
    {"gpu.sms", FigureUnit::Ratio, kOne, 1'000 * kOne, "multiprocessors of a GPU"},
    {"gpu.memory", FigureUnit::Rate, kGB, 1'000'000 * kGB, "bandwidth of a GPU's memory"},
    {"gpu.tflops.f64", FigureUnit::Ratio, kOne / 1'000, 1'000'000 * kOne,
     "matrix products of f64, 10^12 operations per second"},
    {"gpu.tflops.f32", FigureUnit::Ratio, kOne / 1'000, 1'000'000 * kOne, "matrix products of f32"},
    {"gpu.tflops.f16", FigureUnit::Ratio, kOne / 1'000, 1'000'000 * kOne,
     "matrix products of bf16 and f16"},
}};

}  // namespace

std::string_view text(Cpu cpu) {
  constexpr std::array<std::string_view, 3> kWords{"intel", "amd", "other"};
  return kWords[to_index(cpu)];
}

std::string_view text(TransportKind kind) { return kTransportNames[to_index(kind)]; }

std::optional<TransportKind> find_transport(std::string_view name) {
  for (std::size_t i = 0; i < kTransportNames.size(); ++i)
    if (kTransportNames[i] == name) return static_cast<TransportKind>(i);
  return std::nullopt;
}

std::string transport_names() {
  std::span all(kTransportNames);
  return fmt::format("{} or {}", fmt::join(all.first(all.size() - 1), ", "), all.back());
}

std::span<const FigureRow> figure_rows() { return kRows; }

std::optional<Figure> find_figure(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name) return static_cast<Figure>(i);
  return std::nullopt;
}

}  // namespace reshard
