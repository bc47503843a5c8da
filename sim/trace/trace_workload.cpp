// SPDX-License-Identifier: BSD-3-Clause
// From a trace and its plans to what the engine runs, and whether that can run at all.

#include <algorithm>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/network/program.h"
#include "sim/trace/replay.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMaxNamed = 6;  // blocked lines in a message

const TraceEnd* receiving(const Trace& trace, OpId op) {
  const auto* end = std::get_if<TraceEnd>(&trace.operations[op].body);
  return end != nullptr && end->side == TraceEnd::Side::Receive ? end : nullptr;
}

// Names in `after`, with a recv replaced by its message.
void add_after(const Trace& trace, const TraceOperation& operation, std::vector<OpId>& out) {
  for (OpId before : operation.after) {
    const TraceEnd* end = receiving(trace, before);
    out.push_back(end == nullptr ? before : OpId{end->other});
  }
}

// Every rank goes through its operations in an order that all ranks share (the trace's), unless a
// message's ends stand in different places or `after` points forward.
bool may_block(const Trace& trace) {
  for (std::size_t op = 0; op < trace.operations.size(); ++op) {
    const TraceOperation& operation = trace.operations[op];
    if (std::holds_alternative<TraceEnd>(operation.body)) return true;
    if (!operation.after.empty() && to_index(operation.after.back()) >= op) return true;
  }
  return false;
}

}  // namespace

Workload workload_of(const Trace& trace, const std::vector<std::shared_ptr<const Plan>>& plans) {
  Workload workload;
  workload.operations.reserve(trace.operations.size());
  for (std::size_t op = 0; op < trace.operations.size(); ++op) {
    const TraceOperation& given = trace.operations[op];
    Operation operation{RunPlan{}, given.stream, {}};
    const auto* end = std::get_if<TraceEnd>(&given.body);
    if (end == nullptr || end->side == TraceEnd::Side::Send)
      add_after(trace, given, operation.after);
    if (end != nullptr && end->side == TraceEnd::Side::Send) {
      operation.body = Message{end->rank, end->peer, end->bytes, end->cap_bytes_per_s};
      operation.seats = {{id_of<OpId>(op), given.stream},
                         {OpId{end->other}, trace.operations[end->other].stream}};
      add_after(trace, trace.operations[end->other], operation.after);
    } else if (end != nullptr) {
      operation.body = Compute{{}, 0};
    } else if (const auto* compute = std::get_if<TraceCompute>(&given.body)) {
      operation.body = Compute{compute->ranks, compute->duration_ps};
    } else if (const auto* collective = std::get_if<TraceCollective>(&given.body)) {
      operation.body = BareCollective{collective->kind, collective->algorithm, collective->ranks,
                                      collective->bytes};
    } else {
      RESHARD_CHECK(plans[op] != nullptr,
                    fmt::format("no plan for {}", trace.place_of(id_of<OpId>(op))));
      operation.body = RunPlan{plans[op]};
    }
    std::sort(operation.after.begin(), operation.after.end());
    operation.after.erase(std::unique(operation.after.begin(), operation.after.end()),
                          operation.after.end());
    workload.operations.push_back(std::move(operation));
  }
  return workload;
}

std::optional<TraceFinding> find_deadlock(const Trace& trace, const Workload& workload,
                                          std::int32_t devices) {
  if (!may_block(trace)) return std::nullopt;
  Program program(workload, devices, {});
  std::vector<Transit> transits;
  std::vector<Sleep> sleeps;
  while (program.busy()) {
    transits.clear();
    sleeps.clear();
    program.advance(0, transits, sleeps);
    for (const Transit& transit : transits) program.arrived(transit);
    for (const Sleep& sleep : sleeps) program.woken(sleep.op, sleep.part);
  }
  if (program.complete()) return std::nullopt;

  TraceFinding finding;
  std::vector<OpId> blocked;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    OpId op{static_cast<std::int32_t>(i)};
    const TraceEnd* end = receiving(trace, op);
    if (program.complete(end == nullptr ? op : OpId{end->other})) continue;
    blocked.push_back(op);
    finding.lines.push_back(trace.line_of(op).number);
  }
  finding.what =
      fmt::format("{}: operations wait for each other for ever:", trace.place_of(blocked.front()));
  for (std::size_t i = 0; i < blocked.size() && i < kMaxNamed; ++i) {
    const TraceOperation& operation = trace.operations[blocked[i]];
    finding.what += fmt::format("{} line {} ({} on rank {}{})", i == 0 ? "" : ",",
                                trace.line_of(operation).number, op_text(operation),
                                to_int(ranks_of(operation).front()),
                                ranks_of(operation).size() > 1 ? " and others" : "");
  }
  if (blocked.size() > kMaxNamed)
    finding.what += fmt::format(" and {} more", blocked.size() - kMaxNamed);
  return finding;
}

}  // namespace reshard::sim
