// SPDX-License-Identifier: BSD-3-Clause
#include "sim/replay/reorder.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "sim/replay/deadlock.h"
#include "sim/replay/trace_workload.h"
#include "sim/study/losses/serialised.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMaxPairs = 32;      // tried per order
constexpr std::int64_t kMaxTried = 1'000;  // orders in total

// The workload in one order, and its run.
struct Variant {
  Workload workload;
  std::unique_ptr<const Order> order;
  Timeline timeline;
};

class Search {
 public:
  Search(const Trace& trace, const Topology& topology, const EngineOptions& options)
      : trace_(trace), topology_(topology), options_(options) {}

  Reordered run(const Workload& workload, const Timeline& timeline, bool search) {
    Variant best{workload, std::make_unique<const Order>(workload, options_.order->rules()),
                 timeline};
    Reordered out;
    out.time_ps = timeline.end_ps;
    for (bool first = true;; first = false) {
      std::optional<Variant> better;
      Delayed taken{};
      for (Delayed& pair : pairs(best)) {
        std::optional<Variant> other = swapped(best.workload, pair);
        if (!other) continue;
        pair.gain_ps = best.timeline.end_ps - other->timeline.end_ps;
        if (first) out.delayed.push_back(pair);
        if (pair.gain_ps <= 0 || (better && pair.gain_ps <= taken.gain_ps)) continue;
        better = std::move(other);
        taken = pair;
      }
      if (!better || !search) break;
      best = std::move(*better);
      out.swaps.push_back(taken);
      out.time_ps = best.timeline.end_ps;
    }
    out.tried = tried_;
    return out;
  }

 private:
  // The pairs that can be swapped, longest waits first, at most kMaxPairs.
  std::vector<Delayed> pairs(const Variant& of) const {
    std::vector<Delayed> out;
    for (const Serialised& held : serialised_launches(of.workload, *of.order, of.timeline))
      if (can_swap(of, held))
        out.push_back({held.rank, held.op, held.predecessor, held.to_ps - held.from_ps, 0});
    std::stable_sort(out.begin(), out.end(),
                     [](const Delayed& a, const Delayed& b) { return a.waited_ps > b.waited_ps; });
    if (out.size() > kMaxPairs) out.resize(kMaxPairs);
    return out;
  }

  template <class AnyWorkload>  // const or not
  static auto seat_of(AnyWorkload& workload, OpId op, Rank rank)
      -> decltype(&workload.operations[0].seats[0]) {
    auto& operation = workload.operations[to_index(op)];
    std::vector<Rank> ranks = ranks_of(operation);
    auto at = std::find(ranks.begin(), ranks.end(), rank);
    return operation.seats.empty() || at == ranks.end()
               ? nullptr
               : &operation.seats[to_index(at - ranks.begin())];
  }

  // False if a synchronous operation between the two is on a stream of either, and for batches.
  // False also for redistributions: moved on one rank only, one would just make its other ranks
  // wait.
  bool can_swap(const Variant& of, const Serialised& held) const {
    for (OpId op : {held.op, held.predecessor})
      if (std::holds_alternative<RunPlan>(of.workload.operations[to_index(op)].body)) return false;
    const Seat *second = seat_of(of.workload, held.op, held.rank),
               *first = seat_of(of.workload, held.predecessor, held.rank);
    if (first == nullptr || second == nullptr || first->batch >= 0 || second->batch >= 0)
      return false;
    for (std::int32_t launch : of.order->issued()[held.rank]) {
      std::int32_t gate = of.order->launches()[to_index(launch)].gate;
      if (!of.order->is_place(gate)) continue;
      OpId op = of.order->op_of(gate);
      if (op == held.op || op == held.predecessor) continue;
      Seat seat =
          of.workload.operations[to_index(op)].seat(to_index(gate - of.order->first_of(op)), op);
      bool between = seat.at > first->at && seat.at < second->at;
      if (between && !seat.async && (seat.stream == first->stream || seat.stream == second->stream))
        return false;
    }
    return true;
  }

  std::optional<Variant> swapped(const Workload& workload, const Delayed& pair) {
    if (tried_ >= kMaxTried) return std::nullopt;
    Variant out{workload, nullptr, {}};
    Seat *second = seat_of(out.workload, pair.op, pair.rank),
         *first = seat_of(out.workload, pair.predecessor, pair.rank);
    std::swap(first->at, second->at);
    out.order = std::make_unique<const Order>(out.workload, options_.order->rules());
    if (find_hang(trace_, out.workload, *out.order, topology_)) return std::nullopt;
    EngineOptions options = options_;
    options.order = out.order.get();
    options.record_flows = false;
    options.observer = nullptr;
    ++tried_;
    try {
      out.timeline = sim::run(out.workload, topology_, options);
    } catch (const TransferStopped&) {  // a link goes down before this order ends
      return std::nullopt;
    }
    return out;
  }

  const Trace& trace_;
  const Topology& topology_;
  const EngineOptions& options_;
  std::int64_t tried_ = 0;
};

std::string name_of(const Trace& trace, OpId op) {
  const TraceLine& line = trace.line_of(op);
  return !line.name.empty() ? line.name : std::string(op_text(trace.operations[op]));
}

}  // namespace

Reordered reorder(const Trace& trace, const Workload& workload, const Topology& topology,
                  const EngineOptions& options, const Timeline& timeline, bool search) {
  Reordered out = Search(trace, topology, options).run(workload, timeline, search);
  for (std::vector<Delayed>* list : {&out.delayed, &out.swaps})
    for (Delayed& pair : *list) {
      pair.name = name_of(trace, pair.op);
      pair.predecessor_name = name_of(trace, pair.predecessor);
      pair.op = stated_operation(workload, pair.op, pair.rank);
      pair.predecessor = stated_operation(workload, pair.predecessor, pair.rank);
    }
  return out;
}

}  // namespace reshard::sim
