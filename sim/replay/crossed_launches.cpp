// SPDX-License-Identifier: BSD-3-Clause
// Finds launches in contradicting orders.
//
// Each rank launches its operations of communicators one after the other. The graph has an edge
// from X to Y if some rank launches X right before Y. Without a cycle, one order fits all ranks. An
// edge does no harm if streams and `after` let X start only after Y has ended, whichever is
// launched first: such edges are removed before a cycle is reported.
#include <algorithm>

#include <fmt/core.h>

#include "sim/replay/deadlock.h"
#include "sim/replay/trace_workload.h"
#include "sim/trace/findings.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMaxListed = 3;  // launches in a sentence; longer cycles become a table
// Operations visited by all calls of comes_before() together; after that every edge counts as
// harmless.
constexpr std::int64_t kMaxVisited = 100'000'000;

class LaunchCrossings {
 public:
  LaunchCrossings(const Workload& workload, const Order& order)
      : workload_(workload), order_(order), next_(workload.operations.size()) {
    for (std::int32_t rank = 0; rank <= to_int(order_.highest_rank()); ++rank)
      add_launches(Rank{rank});
  }

  struct Edge {
    OpId to;
    Rank rank;  // that launches in this order
  };

  // A cycle of operations, each with the edge to the next one; empty if there is none.
  std::vector<std::pair<OpId, Edge>> cycle() {
    if (!strip()) return {};
    for (std::size_t op = 0; op < next_.size(); ++op)
      std::erase_if(next_[op],
                    [&](const Edge& edge) { return comes_before(edge.to, id_of<OpId>(op)); });
    if (!strip()) return {};
    return walk();
  }

 private:
  void add_launches(Rank rank) {
    std::vector<OpId> last, now;
    for (std::int32_t launch : order_.issued()[rank]) {
      operations_of(order_.launches()[to_index(launch)].gate, now);
      if (workload_.operations[to_index(now.front())].communicator < 0) continue;
      for (OpId before : last)
        for (OpId each : now) next_[before].push_back({each, rank});
      last.swap(now);
    }
  }

  void operations_of(std::int32_t gate, std::vector<OpId>& out) const {
    out.clear();
    if (order_.is_place(gate))
      out.push_back(order_.op_of(gate));
    else
      for (std::int32_t place : order_.batch_of(gate)) out.push_back(order_.op_of(place));
  }

  // Repeatedly removes operations that no edge enters; returns whether any are left.
  bool strip() {
    std::vector<std::int32_t> entering(next_.size(), 0);
    for (const std::vector<Edge>& edges : next_)
      for (const Edge& edge : edges) ++entering[to_index(edge.to)];
    std::vector<OpId> free;
    for (std::size_t op = 0; op < entering.size(); ++op)
      if (entering[op] == 0) free.push_back(id_of<OpId>(op));
    std::size_t left = next_.size();
    for (; !free.empty(); --left) {
      OpId op = free.back();
      free.pop_back();
      for (const Edge& edge : next_[op])
        if (--entering[to_index(edge.to)] == 0) free.push_back(edge.to);
      next_[op].clear();
    }
    return left > 0;
  }

  // Whether streams, communicators and `after` let `second` start only after `first` has ended.
  bool comes_before(OpId first, OpId second) {
    std::vector<OpId> reached{first};
    ++question_;
    seen_in_.resize(workload_.operations.size(), 0);
    while (!reached.empty()) {
      OpId op = reached.back();
      reached.pop_back();
      if (op == second || ++visited_ > kMaxVisited) return true;
      auto reach = [&](OpId next) {
        if (seen_in_[to_index(next)] == question_) return;
        seen_in_[to_index(next)] = question_;
        reached.push_back(next);
      };
      for (OpId next : order_.dependents(op)) reach(next);
      for (std::int32_t place = order_.first_of(op); place < order_.end_of(op); ++place) {
        std::vector<std::int32_t> nodes{place};
        while (!nodes.empty()) {
          std::int32_t node = nodes.back();
          nodes.pop_back();
          for (std::int32_t next : order_.at_end(node))
            if (order_.is_place(next))
              reach(order_.op_of(next));
            else
              nodes.push_back(next);
        }
      }
    }
    return false;
  }

  // An edge enters every operation that is left, so walking backwards ends in a cycle.
  std::vector<std::pair<OpId, Edge>> walk() const {
    struct Entered {
      OpId from{-1};
      Edge edge{};
    };
    IndexVector<OpId, Entered> entered(next_.size());
    OpId at{-1};
    // The loops run backwards so that the lowest (operation, rank) that enters each remains.
    for (std::size_t op = next_.size(); op-- > 0;)
      for (std::size_t i = next_[op].size(); i-- > 0;)
        entered[next_[op][i].to] = {id_of<OpId>(op), next_[op][i]};
    for (std::size_t op = 0; op < next_.size() && at == OpId{-1}; ++op)
      if (entered[op].from != OpId{-1}) at = id_of<OpId>(op);
    std::vector<bool> seen(next_.size(), false);
    for (; !seen[to_index(at)]; at = entered[at].from) seen[to_index(at)] = true;
    std::vector<std::pair<OpId, Edge>> out;
    OpId stop = at;
    do {
      out.push_back({entered[at].from, entered[at].edge});
      at = entered[at].from;
    } while (at != stop);
    std::reverse(out.begin(), out.end());
    return out;
  }

  const Workload& workload_;
  const Order& order_;
  IndexVector<OpId, std::vector<Edge>> next_;
  std::vector<std::int64_t> seen_in_;  // by operation: the last question that reached it
  std::int64_t question_ = 0;
  std::int64_t visited_ = 0;
};

}  // namespace

std::optional<TraceFinding> find_crossed_launches(const Trace& trace, const Workload& workload,
                                                  const Order& order) {
  std::vector<std::pair<OpId, LaunchCrossings::Edge>> cycle =
      LaunchCrossings(workload, order).cycle();
  if (cycle.empty()) return std::nullopt;
  TraceFinding finding;
  std::string what;
  std::size_t count = cycle.size();
  auto line_on = [&](OpId op, Rank rank) {
    return trace.line_of(stated_operation(workload, op, rank)).number;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [from, edge] = cycle[i];
    OpId first = stated_operation(workload, from, edge.rank),
         second = stated_operation(workload, edge.to, edge.rank);
    for (OpId op : {first, second}) finding.lines.push_back(trace.line_of(op).number);
    finding.ranks.push_back(edge.rank);
    Rank before = cycle[(i + count - 1) % count].second.rank;
    if (count > kMaxListed)
      finding.cycle.push_back({edge.rank, line_on(edge.to, edge.rank), "launch order",
                               line_on(from, edge.rank), line_on(from, before), before});
    else
      what += fmt::format("{}rank {} launches line {} ({}) before line {} ({})", i == 0 ? "" : ", ",
                          to_int(edge.rank), trace.line_of(first).number,
                          op_text(trace.operations[first]), trace.line_of(second).number,
                          op_text(trace.operations[second]));
  }
  // Each row must continue on the rank of the next one.
  std::reverse(finding.cycle.begin(), finding.cycle.end());
  if (count > kMaxListed) what = fmt::format("{} in a cycle", count);
  finding.what = fmt::format(
      "{}: communicators are used in contradicting orders, and no stream imposes one "
      "(NCCL_LAUNCH_ORDER_IMPLICIT would): {}",
      trace.place_of(stated_operation(workload, cycle[0].first, cycle[0].second.rank)), what);
  std::sort(finding.lines.begin(), finding.lines.end());
  finding.lines.erase(std::unique(finding.lines.begin(), finding.lines.end()), finding.lines.end());
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.ranks.erase(std::unique(finding.ranks.begin(), finding.ranks.end()), finding.ranks.end());
  return finding;
}

}  // namespace reshard::sim
