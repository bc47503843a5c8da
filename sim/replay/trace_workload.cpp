// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/replay/trace_workload.h"

namespace reshard::sim {
namespace {

class Building {
 public:
  Building(const Trace& trace, const std::vector<std::shared_ptr<const Plan>>& plans,
           const std::function<bool(OpId)>& has_communicator)
      : trace_(trace), plans_(plans), has_communicator_(has_communicator) {}

  Workload run() {
    collect_calls();
    workload_.operations.reserve(trace_.operations.size());
    for (std::size_t op = 0; op < trace_.operations.size(); ++op)
      workload_.operations.push_back(built(id_of<OpId>(op)));
    return std::move(workload_);
  }

 private:
  // Groups calls under the first call of their collective, sorted by rank.
  void collect_calls() {
    for (std::size_t i = 0; i < trace_.operations.size(); ++i)
      if (const auto* call = std::get_if<TraceCall>(&trace_.operations[i].body))
        calls_[OpId{call->first}].push_back(id_of<OpId>(i));
    for (auto& [first, calls] : calls_)
      std::sort(calls.begin(), calls.end(), [this](OpId a, OpId b) {
        return std::get<TraceCall>(trace_.operations[a].body).rank <
               std::get<TraceCall>(trace_.operations[b].body).rank;
      });
  }

  Seat seat_of(OpId op) const {
    const TraceOperation& given = trace_.operations[op];
    return {op, given.stream, given.async, given.batch};
  }

  // A recv, or a call that is not the first, becomes an operation without ranks, which keeps the
  // numbering; its part runs in the operation of the send or of the first call.
  Operation built(OpId op) const {
    const TraceOperation& given = trace_.operations[op];
    if (trace_.runs(op) != op) return {Compute{{}, 0}, given.stream, {}};
    std::vector<OpId> stating{op};
    Operation out{body_of(op, stating), given.stream, {}};
    if (has_communicator_(op)) out.communicator = given.communicator;
    bool plain = stating.size() == 1 && !given.async && given.batch < 0;
    std::size_t ranks = plain ? 0 : std::max(stating.size(), reshard::ranks_of(out).size());
    for (std::size_t i = 0; i < ranks; ++i)
      out.seats.push_back(seat_of(stating.size() == 1 ? op : stating[i]));
    for (OpId line : stating)
      for (OpId before : trace_.operations[line].after) out.after.push_back(trace_.runs(before));
    std::sort(out.after.begin(), out.after.end());
    out.after.erase(std::unique(out.after.begin(), out.after.end()), out.after.end());
    return out;
  }

  // For messages and calls, `stating` becomes the trace operations of its ranks, in their order.
  decltype(Operation::body) body_of(OpId op, std::vector<OpId>& stating) const {
    const TraceBody& given = trace_.operations[op].body;
    if (const auto* send = std::get_if<TraceEnd>(&given)) {
      stating = {op, OpId{send->other}};
      return PointToPoint{send->rank, send->peer, send->bytes, send->cap_bytes_per_s};
    }
    if (const auto* call = std::get_if<TraceCall>(&given)) {
      stating = calls_.at(op);
      std::vector<Rank> ranks;
      for (OpId each : stating)
        ranks.push_back(std::get<TraceCall>(trace_.operations[each].body).rank);
      return BareCollective{call->kind, call->algorithm, std::move(ranks), call->bytes, call->root};
    }
    if (const auto* compute = std::get_if<TraceCompute>(&given))
      return Compute{compute->ranks, compute->duration_ps, compute->blocks};
    if (const auto* fault = std::get_if<TraceFault>(&given)) {
      if (fault->kind == TraceFault::Kind::Late) return Setup{{*fault->rank}, fault->amount};
      return Compute{{}, 0};
    }
    if (const auto* collective = std::get_if<TraceCollective>(&given))
      return BareCollective{collective->kind, collective->algorithm, collective->ranks,
                            collective->bytes, collective->root};
    RESHARD_CHECK(plans_[to_index(op)] != nullptr,
                  fmt::format("no plan for {}", trace_.place_of(op)));
    return RunPlan{plans_[to_index(op)]};
  }

  const Trace& trace_;
  const std::vector<std::shared_ptr<const Plan>>& plans_;
  const std::function<bool(OpId)>& has_communicator_;
  std::map<OpId, std::vector<OpId>> calls_;
  Workload workload_;
};

}  // namespace

void check_ranks(const Trace& trace, const Topology& topology) {
  for (std::size_t op = 0; op < trace.operations.size(); ++op)
    for (Rank rank : ranks_of(trace.operations[op]))
      if (to_int(rank) >= topology.devices())
        throw InputError(fmt::format(
            "{}: expected ranks below {}, the number of devices of {}, found rank {}",
            trace.place_of(id_of<OpId>(op)), topology.devices(), topology.name(), to_int(rank)));
}

Workload workload_of(const Trace& trace, const std::vector<std::shared_ptr<const Plan>>& plans,
                     const std::function<bool(OpId)>& has_communicator) {
  return Building(trace, plans, has_communicator).run();
}

OpId stated_operation(const Workload& workload, OpId run, Rank rank) {
  const Operation& operation = workload.operations[to_index(run)];
  if (operation.seats.empty()) return run;
  std::vector<Rank> ranks = ranks_of(operation);
  std::size_t part = to_index(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  return operation.seats[std::min(part, ranks.size() - 1)].at;
}

}  // namespace reshard::sim
