// SPDX-License-Identifier: BSD-3-Clause
#include "sim/replay/operation_bound.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/errors.h"
#include "core/bounds/order_bound.h"
#include "sim/network/order.h"

namespace reshard::sim {

namespace {

// Bytes that must enter a set that holds `inside` of the collective's members, with or without its
// root.
Int128 collective_in(const BareCollective& collective, std::int64_t inside, bool root_inside) {
  auto members = static_cast<std::int64_t>(collective.ranks.size());
  Int128 bytes = collective.bytes;
  if (inside == 0 || inside == members) return 0;
  switch (collective.kind) {
    case BareKind::AllGather:
      return bytes * (members - inside);
    case BareKind::ReduceScatter:  // one folded value for each element that a member inside keeps
      return bytes * inside;
    case BareKind::AllReduce:
      return bytes;
    case BareKind::AllToAll:
      return bytes * inside * (members - inside);
    case BareKind::Broadcast:
      return root_inside ? Int128{0} : bytes;
    case BareKind::Reduce:  // the members outside can fold their values first
      return root_inside ? bytes : Int128{0};
    case BareKind::Gather:
      return root_inside ? bytes * (members - inside) : Int128{0};
    case BareKind::Scatter:
      return root_inside ? Int128{0} : bytes * inside;
    case BareKind::Barrier:
      break;
  }
  return 0;
}

// Works through the workload in the order of the engine's program (sim/network/program.h), but
// without communicators and with bounds in place of transfers. A part is released when the previous
// one on its stream is done and everything that its operation names in `after` is complete; either
// can only raise the time at which it can start.
class LongestPath {
 public:
  LongestPath(const Workload& workload,
              const std::vector<std::shared_ptr<const OperationBound>>& bounds)
      : workload_(workload),
        bounds_(bounds),
        order_(workload, {.communicators = false}),
        operations_(workload.operations.size()),
        parts_(order_.nodes()) {
    for (std::size_t node = 0; node < parts_.size(); ++node)
      parts_[node].waits = order_.waits_of(static_cast<std::int32_t>(node));
    for (std::size_t place = 0; place < order_.places(); ++place)
      ++parts_[order_.gate_of(static_cast<std::int32_t>(place))].waits;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      auto op = id_of<OpId>(i);
      operations_[op].parts_left = order_.end_of(op) - order_.first_of(op);
      operations_[op].after_left = workload.operations[i].after.size();
    }
  }

  std::int64_t run() {
    for (std::size_t i = 0; i < operations_.size(); ++i)
      if (operations_[i].after_left == 0) pending_.push_back(id_of<OpId>(i));
    release_pending();
    while (!ready_.empty()) {
      std::int32_t node = ready_.back();
      ready_.pop_back();
      if (order_.is_place(node))
        start(node);
      else
        finish(node, parts_[node].start_ps);
    }
    RESHARD_CHECK(complete_ == operations_.size(),
                  "a path through operations that wait for each other");
    return end_ps_;
  }

 private:
  // State of a node of the order.
  struct NodeState {
    std::int32_t waits = 0;
    std::int64_t start_ps = 0;
  };
  // State of an operation.
  struct State {
    std::int32_t parts_left = 0;
    std::size_t after_left = 0;
    std::int64_t first_start_ps = std::numeric_limits<std::int64_t>::max(), last_ps = 0;
  };

  void release(std::int32_t node, std::int64_t at_ps) {
    NodeState& part = parts_[node];
    part.start_ps = std::max(part.start_ps, at_ps);
    if (--part.waits == 0) ready_.push_back(node);
  }

  void release_all(OpId op) {
    std::int64_t at_ps = operations_[op].last_ps;
    for (std::int32_t place = order_.first_of(op); place < order_.end_of(op); ++place)
      release(order_.gate_of(place), at_ps);
    if (operations_[op].parts_left == 0) complete(op, at_ps);
  }

  void start(std::int32_t place) {
    OpId op = order_.op_of(place);
    std::int32_t first = order_.first_of(op);
    State& state = operations_[op];
    const OperationBound& bound = *bounds_[to_index(op)];
    bool rendezvous = std::holds_alternative<PointToPoint>(workload_.operations[to_index(op)].body);
    std::int64_t start_ps = parts_[place].start_ps,
                 done_ps = later_ps(start_ps, bound.part_ps[place - first]);
    state.first_start_ps = std::min(state.first_start_ps, start_ps);
    state.last_ps = std::max(state.last_ps, done_ps);
    --state.parts_left;
    // Neither end of a message is done before both have started.
    if (!rendezvous) finish(place, done_ps);
    if (state.parts_left > 0) return;
    for (std::int32_t i = first; rendezvous && i < order_.end_of(op); ++i) finish(i, state.last_ps);
    complete(op, std::max(state.last_ps, later_ps(state.first_start_ps, bound.time_ps)));
  }

  void finish(std::int32_t node, std::int64_t done_ps) {
    for (std::int32_t next : order_.at_end(node)) release(next, done_ps);
  }

  void complete(OpId op, std::int64_t at_ps) {
    end_ps_ = std::max(end_ps_, at_ps);
    ++complete_;
    for (OpId dependent : order_.dependents(op)) {
      State& next = operations_[dependent];
      // Before an operation's parts start, last_ps is the time at which everything that it names in
      // `after` is complete.
      next.last_ps = std::max(next.last_ps, at_ps);
      if (--next.after_left == 0) pending_.push_back(dependent);
    }
    release_pending();
  }

  // A loop instead of recursion: operations without ranks complete at once, and chains of them can
  // be long.
  void release_pending() {
    if (releasing_) return;
    releasing_ = true;
    while (!pending_.empty()) {
      OpId next = pending_.back();
      pending_.pop_back();
      release_all(next);
    }
    releasing_ = false;
  }

  const Workload& workload_;
  const std::vector<std::shared_ptr<const OperationBound>>& bounds_;
  const Order order_;
  IndexVector<OpId, State> operations_;
  IndexVector<std::int32_t, NodeState> parts_;  // by node
  std::vector<std::int32_t> ready_;             // nodes
  std::vector<OpId> pending_;
  bool releasing_ = false;
  std::size_t complete_ = 0;
  std::int64_t end_ps_ = 0;
};

}  // namespace

void add_collective(std::vector<Int128>& in_bytes, const CutSets& sets,
                    const BareCollective& issued) {
  BareCollective collective = as_carried(issued);
  auto members = static_cast<std::int64_t>(collective.ranks.size());
  if (members < 2) return;
  const std::vector<Rank>& job = sets.ranks();
  for (const CutLevel& level : sets.levels()) {
    std::map<std::int32_t, std::int64_t> inside;  // members by set
    std::int32_t root_set = -1;
    for (Rank rank : collective.ranks) {
      auto index = std::lower_bound(job.begin(), job.end(), rank) - job.begin();
      std::int32_t set = level.member_of[to_index(index)];
      if (set >= 0) ++inside[set];
      if (rank == collective.root) root_set = set;
    }
    // Sets without members are skipped: all members are in the complement, so nothing enters
    // either.
    for (auto [set, count] : inside) {
      std::size_t at = level.first_set + 2 * to_index(set);
      in_bytes[at] += collective_in(collective, count, set == root_set);
      in_bytes[at + 1] += collective_in(collective, members - count, set != root_set);
    }
  }
}

std::shared_ptr<const OperationBound> OperationBounds::of_requests(
    std::span<const Request> requests, const Stages& stages, Switches use) {
  std::shared_ptr<const OperationBound>& known = requests_[{fingerprint_of(requests, stages), use}];
  if (known) return known;
  CutSets sets(topology_, ranks_of(requests), use);
  RequestDemand demand = demand_of(requests, sets);
  known = std::make_shared<const OperationBound>(OperationBound{
      std::max(reshard::bound_of(demand, sets).time_ps(), order_bound_ps(requests, stages, sets)),
      part_bounds_ps(demand.in_bytes, sets)});
  return known;
}

std::shared_ptr<const OperationBound> OperationBounds::of_collective(
    const BareCollective& collective) {
  std::shared_ptr<const OperationBound>& known =
      collectives_[{collective.kind, collective.root, collective.bytes, collective.ranks}];
  if (known) return known;
  std::vector<Rank> sorted = collective.ranks;
  std::sort(sorted.begin(), sorted.end());
  CutSets sets(topology_, sorted);
  RequestDemand demand;
  demand.in_bytes.assign(sets.size(), 0);
  demand.receipts_bytes.assign(sets.levels().size(), 0);
  add_collective(demand.in_bytes, sets, collective);
  std::vector<std::int64_t> by_sorted = part_bounds_ps(demand.in_bytes, sets);
  OperationBound bound{reshard::bound_of(demand, sets).time_ps(), {}};
  for (Rank rank : collective.ranks)
    bound.part_ps.push_back(
        by_sorted[to_index(std::lower_bound(sorted.begin(), sorted.end(), rank) - sorted.begin())]);
  known = std::make_shared<const OperationBound>(std::move(bound));
  return known;
}

// A message takes one route: its latency, then its bytes at the route's cap or its narrowest
// capacity, whichever is less.
OperationBound OperationBounds::of_message(const PointToPoint& message) const {
  Route route = topology_.route(message.source, message.destination);
  std::int64_t rate = route.cap_bytes_per_s.value_or(std::numeric_limits<std::int64_t>::max());
  for (ResourceId resource : route.resources)
    rate = std::min(rate, topology_.resource_bytes_per_s(resource));
  std::int64_t transfer = least_transfer_ps(message.bytes, rate);
  std::int64_t time = transfer > std::numeric_limits<std::int64_t>::max() - route.latency_ps
                          ? transfer
                          : transfer + route.latency_ps;
  return {time, {time, time}};
}

std::shared_ptr<const OperationBound> OperationBounds::of(const Operation& operation,
                                                          Switches use) {
  if (const auto* run = std::get_if<RunPlan>(&operation.body))
    return of_requests(run->plan->tensors, run->plan->stages, use);
  if (const auto* collective = std::get_if<BareCollective>(&operation.body))
    return of_collective(*collective);
  if (const auto* message = std::get_if<PointToPoint>(&operation.body))
    return std::make_shared<const OperationBound>(of_message(*message));
  if (const auto* setup = std::get_if<Setup>(&operation.body))  // no physical limit requires it
    return std::make_shared<const OperationBound>(
        OperationBound{0, std::vector<std::int64_t>(setup->ranks.size(), 0)});
  const auto& compute = std::get<Compute>(operation.body);
  std::int64_t time = compute.ranks.empty() ? 0 : compute.duration_ps;
  return std::make_shared<const OperationBound>(
      OperationBound{time, std::vector<std::int64_t>(compute.ranks.size(), time)});
}

namespace {

using Operations = std::vector<const Operation*>;

// `ranks` must include all ranks of the operations.
std::int64_t cut_bound_of(const Operations& operations, const std::set<Rank>& ranks,
                          const Topology& topology) {
  CutSets sets(topology, {ranks.begin(), ranks.end()});
  std::vector<Int128> in_bytes(sets.size(), 0);
  // Each distinct job and how often it occurs.
  std::map<Digest, std::pair<std::span<const Request>, std::int64_t>> requests;
  for (const Operation* operation : operations) {
    if (const auto* run = std::get_if<RunPlan>(&operation->body)) {
      auto [it, is_new] =
          requests.try_emplace(fingerprint_of(run->plan->tensors), run->plan->tensors, 0);
      ++it->second.second;
    } else if (const auto* collective = std::get_if<BareCollective>(&operation->body)) {
      add_collective(in_bytes, sets, *collective);
    } else if (const auto* message = std::get_if<PointToPoint>(&operation->body)) {
      add_transfer(in_bytes, sets, message->source, message->destination, message->bytes);
    }
  }
  for (const auto& [fingerprint, request] : requests) {
    RequestDemand demand = demand_of(request.first, sets);
    for (std::size_t set = 0; set < in_bytes.size(); ++set)
      in_bytes[set] += demand.in_bytes[set] * request.second;
  }
  return cut_bound_ps(in_bytes, sets);
}

// Operations grouped by their ranks.
using ByRanks = std::map<std::set<Rank>, Operations>;

// Merges groups that share a rank, directly or through other groups.
ByRanks joined(const ByRanks& by_ranks) {
  std::map<Rank, Rank> leader;
  auto first_of = [&](Rank rank) {
    while (leader.at(rank) != rank) rank = leader[rank] = leader.at(leader.at(rank));
    return rank;
  };
  for (const auto& [ranks, operations] : by_ranks)
    for (Rank rank : ranks) {
      leader.try_emplace(rank, rank);
      Rank a = first_of(rank), b = first_of(*ranks.begin());
      leader[std::max(a, b)] = std::min(a, b);
    }
  std::map<Rank, std::pair<std::set<Rank>, Operations>> parts;
  for (const auto& [ranks, operations] : by_ranks) {
    auto& [all_ranks, all] = parts[first_of(*ranks.begin())];
    all_ranks.insert(ranks.begin(), ranks.end());
    all.insert(all.end(), operations.begin(), operations.end());
  }
  ByRanks out;
  for (auto& [first, part] : parts) out.emplace(std::move(part.first), std::move(part.second));
  return out;
}

// With more distinct sets of ranks than this, operations are not summed by equal ranks.
constexpr std::size_t kMostSets = 4096;

}  // namespace

// With more ranks, more links lead into a set, including links that operations of the other ranks
// cannot use. The bound of all operations can therefore be lower than that of some of them, and the
// greatest is taken.
std::int64_t summed_cut_bound_ps(const Workload& workload, const Topology& topology) {
  ByRanks by_ranks;
  std::set<Rank> job;
  Operations all;
  for (const Operation& operation : workload.operations) {
    if (!moves_bytes(operation)) continue;
    std::vector<Rank> ranks = ranks_of(operation);
    if (ranks.empty()) continue;
    by_ranks[{ranks.begin(), ranks.end()}].push_back(&operation);
    job.insert(ranks.begin(), ranks.end());
    all.push_back(&operation);
  }
  if (job.size() < 2) return 0;
  std::int64_t out = cut_bound_of(all, job, topology);
  ByRanks parts = joined(by_ranks);
  auto add = [&](const std::set<Rank>& ranks, const Operations& operations) {
    if (ranks.size() > 1) out = std::max(out, cut_bound_of(operations, ranks, topology));
  };
  if (parts.size() > 1)
    for (const auto& [ranks, operations] : parts) add(ranks, operations);
  if (by_ranks.size() <= kMostSets)
    for (const auto& [ranks, operations] : by_ranks)
      if (!parts.contains(ranks)) add(ranks, operations);
  return out;
}

std::int64_t longest_path_ps(const Workload& workload,
                             const std::vector<std::shared_ptr<const OperationBound>>& bounds) {
  return LongestPath(workload, bounds).run();
}

}  // namespace reshard::sim
