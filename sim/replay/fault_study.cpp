// SPDX-License-Identifier: BSD-3-Clause
#include "sim/replay/fault_study.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/trace/findings.h"

namespace reshard::sim {
namespace {

ResourceId link_of(const Trace& trace, OpId op, const std::string& name, const Topology& topology) {
  for (std::int32_t id = 0; id < topology.resource_count(); ++id)
    if (topology.resource_name(ResourceId{id}) == name) return ResourceId{id};
  throw InputError(fmt::format("{}: link: expected a link of {} such as '{}', found {}",
                               trace.place_of(op), topology.name(),
                               topology.resource_name(ResourceId{0}), reshard::quoted(name)));
}

// Each operation's time from its first start to its last end; -1 if it has no spans.
std::vector<std::int64_t> durations(const Timeline& timeline) {
  struct Extent {
    std::int64_t start_ps = std::numeric_limits<std::int64_t>::max(), end_ps = 0;
  };
  std::vector<Extent> extents;
  for (const Span& span : timeline.spans) {
    if (to_index(span.op) >= extents.size()) extents.resize(to_index(span.op) + 1);
    Extent& extent = extents[to_index(span.op)];
    extent.start_ps = std::min(extent.start_ps, span.start_ps);
    extent.end_ps = std::max(extent.end_ps, span.end_ps);
  }
  std::vector<std::int64_t> out;
  for (const Extent& extent : extents)
    out.push_back(std::max<std::int64_t>(-1, extent.end_ps - extent.start_ps));
  return out;
}

}  // namespace

bool has_faults(const Trace& trace) {
  return std::any_of(trace.operations.begin(), trace.operations.end(), [](const auto& operation) {
    return std::holds_alternative<TraceFault>(operation.body);
  });
}

std::vector<Fault> faults_of(const Trace& trace, const Topology& topology) {
  std::vector<Fault> out;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    auto op = id_of<OpId>(i);
    const auto* given = std::get_if<TraceFault>(&trace.operations[op].body);
    if (given == nullptr || given->kind == TraceFault::Kind::Late) continue;
    bool share = given->kind == TraceFault::Kind::Share;
    Fault fault{share ? Fault::Kind::RankShare : Fault::Kind::RankLatency, given->from_ps,
                given->amount};
    if (given->rank) {
      fault.rank = *given->rank;
    } else {
      fault.kind = share ? Fault::Kind::LinkShare : Fault::Kind::LinkLatency;
      fault.resource = link_of(trace, op, given->link, topology);
    }
    out.push_back(fault);
  }
  return out;
}

TraceFinding finding_of(const Trace& trace, const TransferStopped& stopped) {
  return finding_of(trace, {stopped.operation}, {}, stopped.operation, stopped.what());
}

Workload without_late_ranks(const Trace& trace, Workload workload) {
  for (std::size_t i = 0; i < trace.operations.size(); ++i)
    if (std::holds_alternative<TraceFault>(trace.operations[i].body))
      if (auto* setup = std::get_if<Setup>(&workload.operations[i].body)) setup->duration_ps = 0;
  return workload;
}

FaultCost cost_of(const Trace& trace, const Timeline& with, const Timeline& without) {
  FaultCost out{without.end_ps, {}};
  std::vector<std::int64_t> now = durations(with), before = durations(without);
  std::size_t count = std::min({now.size(), before.size(), trace.operations.size()});
  for (std::size_t op = 0; op < count; ++op)
    if (before[op] >= 0 && now[op] > before[op] &&
        !std::holds_alternative<TraceFault>(trace.operations[op].body))
      out.grown.push_back({id_of<OpId>(op), now[op] - before[op]});
  std::stable_sort(out.grown.begin(), out.grown.end(),
                   [](const Grown& a, const Grown& b) { return a.ps > b.ps; });
  return out;
}

}  // namespace reshard::sim
