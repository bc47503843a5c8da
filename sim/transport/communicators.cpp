// SPDX-License-Identifier: BSD-3-Clause
#include "sim/transport/communicators.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/core.h>

#include "core/base/integers.h"
#include "core/base/limits.h"
#include "core/traffic/transfers.h"
#include "core/traffic/workload.h"
#include "sim/network/order.h"
#include "sim/transport/nccl/nccl_costs.h"
#include "sim/transport/nccl/nccl_graph.h"

namespace reshard::sim {
namespace {

using Pair = std::pair<Rank, Rank>;  // lower rank first

Pair pair_of(Rank a, Rank b) { return a < b ? Pair{a, b} : Pair{b, a}; }

class Making {
 public:
  Making(CommunicatorPolicy policy, const SetupCosts& costs, bool cold,
         std::span<const std::vector<Rank>> members, const std::vector<bool>& named,
         const std::function<bool(OpId)>& by_nccl, Workload& workload)
      : costs_(costs), cold_(cold), by_nccl_(by_nccl), workload_(workload) {
    use_.policy = policy;
    std::set<Rank> job;
    for (const Operation& operation : workload.operations)
      for (Rank rank : ranks_of(operation)) job.insert(rank);
    add({job.begin(), job.end()}, true);
    for (std::size_t i = 0; i < members.size(); ++i) {
      bool parent = !named[i] && members[i] == made_[kParent].ranks;
      of_group_.push_back(parent ? kParent : add(members[i], named[i]));
    }
    made_[kParent].at_start = makes_parent_at_start(policy);
    for (Made& made : made_) made.split = made_[kParent].at_start && &made != &made_[kParent];
    for (Made& made : made_) made.at_start |= made.split;
  }

  CommunicatorUse run() {
    Order order(workload_, {.communicators = false});
    for (std::int32_t rank = 0; rank <= to_int(order.highest_rank()); ++rank)
      for (std::int32_t launch : order.issued()[rank])
        issue(order, order.launches()[to_index(launch)].gate, Rank{rank});
    assign();
    make();
    connect();
    warn();
    return std::move(use_);
  }

 private:
  static constexpr std::int32_t kParent = 0;

  struct Made {
    std::vector<Rank> ranks;
    bool at_start, split = false;
    std::map<Rank, Seat> first = {};  // rank -> its first use
  };
  // The communicators that the two ends of a message would use.
  struct Ends {
    std::int32_t communicator[2] = {-1, -1};
  };
  struct First {
    Seat seats[2];
    bool seen[2] = {false, false};
  };

  std::int32_t add(std::vector<Rank> ranks, bool at_start) {
    made_.push_back({std::move(ranks), at_start});
    return static_cast<std::int32_t>(made_.size() - 1);
  }

  void issue(const Order& order, std::int32_t gate, Rank rank) {
    if (order.is_place(gate)) {
      issue_place(order, gate, rank);
      return;
    }
    for (std::int32_t place : order.batch_of(gate)) issue_place(order, place, rank);
  }

  void issue_place(const Order& order, std::int32_t place, Rank rank) {
    OpId op = order.op_of(place);
    const Operation& operation = workload_.operations[to_index(op)];
    auto part = to_index(place - order.first_of(op));
    Seat seat = operation.seat(part, op);
    const auto* message = std::get_if<PointToPoint>(&operation.body);
    bool plain = message != nullptr && operation.communicator < 0;
    if (!by_nccl_(op) || (!plain && operation.communicator < 0)) return;
    std::int32_t communicator =
        plain ? of_message(*message, seat, rank) : of_group_[to_index(operation.communicator)];
    made_[to_index(communicator)].first.try_emplace(rank, seat);
    if (communicator == kParent) has_parent_.insert(rank);
    if (const auto* run = std::get_if<RunPlan>(&operation.body))
      connect_plan(op, *run->plan, communicator);
    if (message == nullptr) return;
    if (plain) ends_[op].communicator[part] = communicator;
    Pair pair = pair_of(message->source, message->destination);
    if (connected_.count({communicator, pair}) > 0) return;
    First& first = connections_[{communicator, pair}];
    std::size_t which = rank == pair.first ? 0 : 1;
    if (!first.seen[which]) first.seats[which] = seat;
    first.seen[which] = true;
  }

  // Connects a plan's peers at once, in one group: the rank with most new peers determines the
  // time.
  void connect_plan(OpId op, const Plan& plan, std::int32_t communicator) {
    if (!seen_plans_.insert(op).second) return;
    std::map<Rank, std::int64_t> peers;
    for (const Step& step : plan.steps) {
      std::optional<StepTraffic> sent = step_traffic(plan, step);
      if (!sent || sent->kind) continue;
      auto rank = [&](std::int32_t part) { return plan.rank_of(sent->slots[to_index(part)]); };
      for (const Flow& flow : sent->flows) {
        Pair pair = pair_of(rank(flow.source), rank(flow.destination));
        if (connections_.count({communicator, pair}) > 0) continue;  // by an earlier message
        if (!connected_.insert({communicator, pair}).second) continue;
        ++peers[pair.first];
        ++peers[pair.second];
      }
    }
    if (!peers.empty()) of_plans_.push_back({op, std::move(peers)});
  }

  std::int32_t of_message(const PointToPoint& message, const Seat& seat, Rank rank) {
    switch (use_.policy) {
      case CommunicatorPolicy::Eager:
      case CommunicatorPolicy::StreamPerPair:
        return kParent;
      case CommunicatorPolicy::Cached:
        if (has_parent_.count(rank) > 0) return kParent;
        [[fallthrough]];
      case CommunicatorPolicy::Pairwise:
      case CommunicatorPolicy::Split:
        return seat.batch >= 0 ? kParent : of_pair(pair_of(message.source, message.destination));
    }
    return kParent;
  }

  std::int32_t of_pair(Pair pair) {
    auto next = static_cast<std::int32_t>(made_.size());
    auto [it, is_new] = of_pair_.try_emplace(pair, next);
    if (is_new) {
      bool split = use_.policy == CommunicatorPolicy::Split;
      made_.push_back({{pair.first, pair.second}, split, split});
    }
    return it->second;
  }

  void assign() {
    for (Operation& operation : workload_.operations)
      if (operation.communicator >= 0)
        operation.communicator = of_group_[to_index(operation.communicator)];
    for (const auto& [op, ends] : ends_) {
      Operation& operation = workload_.operations[to_index(op)];
      operation.communicator = ends.communicator[0];
      if (ends.communicator[1] < 0 || ends.communicator[1] == ends.communicator[0]) continue;
      const auto& message = std::get<PointToPoint>(operation.body);
      bool source = ends.communicator[0] == kParent;
      use_.parent_mismatches.push_back({op, source ? message.source : message.destination,
                                        source ? message.destination : message.source});
    }
  }

  // Adds the setups of the communicators used, in the order of first use. Splits are calls of all
  // ranks of the parent, one after another at the start: one setup that takes the sum of their
  // times.
  void make() {
    std::map<Rank, std::int64_t> time_ps, bytes;
    std::int64_t splits = 0;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const Made& made = made_[i];
      bool parent = i == kParent;
      if (made.ranks.empty() || (made.first.empty() && !(parent && made.at_start))) continue;
      if (parent && !made.at_start) find_absent(made);
      ++use_.created;
      for (Rank rank : made.ranks) add_bytes(bytes[rank], costs_.memory_bytes);
      if (made.split)
        ++splits;
      else
        add_making(made.ranks, costs_.making_ps(made.ranks.size()), &made, time_ps);
    }
    if (splits > 0) {
      Int128 taken_ps = std::min<Int128>(Int128{splits} * costs_.split_ps, kMaxTimePs);
      add_making(made_[kParent].ranks, static_cast<std::int64_t>(taken_ps), nullptr, time_ps);
    }
    for (const auto& [key, first] : connections_)
      for (Rank rank : {key.second.first, key.second.second})
        add_bytes(bytes[rank], costs_.peer_bytes);
    for (const auto& [op, peers] : of_plans_)
      for (auto [rank, count] : peers) add_bytes(bytes[rank], count * costs_.peer_bytes);
    for (const auto& [rank, ps] : time_ps) use_.making_ps = std::max(use_.making_ps, ps);
    for (const auto& [rank, held] : bytes) use_.bytes = std::max(use_.bytes, held);
  }

  // `made`: the communicator, which its ranks may create on first use; null: created at the start.
  void add_making(const std::vector<Rank>& ranks, std::int64_t taken_ps, const Made* made,
                  std::map<Rank, std::int64_t>& time_ps) {
    std::vector<Seat> seats;
    for (Rank rank : ranks) {
      time_ps[rank] = add_ps(time_ps[rank], taken_ps);
      if (made == nullptr || made->at_start) {
        seats.push_back({});
        continue;
      }
      auto first = made->first.find(rank);
      seats.push_back(first == made->first.end() ? Seat{} : first->second);
    }
    add_setup(ranks, std::move(seats), taken_ps);
  }

  void find_absent(const Made& parent) {
    for (Rank rank : parent.ranks)
      if (parent.first.count(rank) == 0) use_.absent.push_back(rank);
    use_.first_of_parent = parent.first.begin()->second.at;
    for (const auto& [rank, seat] : parent.first)
      use_.first_of_parent = std::min(use_.first_of_parent, seat.at);
  }

  void connect() {
    std::map<Rank, std::int64_t> time_ps;
    for (const auto& [key, first] : connections_) {
      Pair pair = key.second;
      ++use_.connected;
      for (Rank rank : {pair.first, pair.second})
        time_ps[rank] = add_ps(time_ps[rank], costs_.connect_ps);
      add_setup({pair.first, pair.second}, {first.seats[0], first.seats[1]}, costs_.connect_ps);
    }
    for (const auto& [op, peers] : of_plans_) {
      std::int64_t most = 0, pairs = 0;
      std::vector<Rank> ranks = ranks_of(workload_.operations[to_index(op)]);
      for (auto [rank, count] : peers) {
        most = std::max(most, count);
        pairs += count;
      }
      use_.connected += pairs / 2;
      std::int64_t taken_ps =
          static_cast<std::int64_t>(std::min<Int128>(Int128{most} * costs_.connect_ps, kMaxTimePs));
      for (Rank rank : ranks) time_ps[rank] = add_ps(time_ps[rank], taken_ps);
      std::vector<Seat> seats(ranks.size(), Seat{op});
      add_setup(std::move(ranks), std::move(seats), taken_ps);
    }
    for (const auto& [rank, ps] : time_ps) use_.connecting_ps = std::max(use_.connecting_ps, ps);
  }

  static std::int64_t add_ps(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(std::min<Int128>(Int128{a} + b, kMaxTimePs));
  }

  void add_setup(std::vector<Rank> ranks, std::vector<Seat> seats, std::int64_t taken_ps) {
    for (Seat& seat : seats) seat = {seat.at};
    Operation setup{Setup{std::move(ranks), cold_ ? taken_ps : 0}, 0, {}};
    setup.seats = std::move(seats);
    workload_.operations.push_back(std::move(setup));
  }

  void warn() {
    if (ends_.empty()) return;
    if (use_.policy == CommunicatorPolicy::Eager)
      use_.warning = "messages share the parent's single stream with all of its other operations";
    else if (use_.policy == CommunicatorPolicy::Cached && !of_pair_.empty())
      use_.warning = fmt::format(
          "the parent did not exist at the first message: {} communicators of two ranks were "
          "created",
          of_pair_.size());
  }

  SetupCosts costs_;
  bool cold_;
  const std::function<bool(OpId)>& by_nccl_;
  Workload& workload_;
  CommunicatorUse use_;
  std::vector<Made> made_;              // the parent first
  std::vector<std::int32_t> of_group_;  // index in made_, by the workload's number
  std::map<Pair, std::int32_t> of_pair_;
  std::map<OpId, Ends> ends_;
  std::map<std::pair<std::int32_t, Pair>, First> connections_;           // by messages
  std::set<std::pair<std::int32_t, Pair>> connected_;                    // by plans
  std::vector<std::pair<OpId, std::map<Rank, std::int64_t>>> of_plans_;  // number of new peers of
                                                                         // each rank
  std::set<OpId> seen_plans_;
  std::set<Rank> has_parent_;
};

}  // namespace

std::int64_t SetupCosts::making_ps(std::size_t ranks) const {
  Int128 ps = Int128{init_ps} + Int128{rank_ps} * static_cast<std::int64_t>(ranks);
  return static_cast<std::int64_t>(std::min<Int128>(ps, kMaxTimePs));
}

SetupCosts setup_costs_of(const Topology& topology) {
  auto figure = [&](Figure which) {
    return topology.machine().figure(which).value_or(
        nccl::default_figure(which, nccl::gpus_of(topology).compute_capability));
  };
  // The channels that two neighbours have.
  std::int64_t channels = 1;
  if (topology.devices() > 1)
    channels = nccl::channels_per_peer(
        nccl::communicator_of(topology, std::vector{Rank{0}, Rank{1}}), false);
  return {figure(Figure::CommInit),   figure(Figure::CommRank),
          figure(Figure::CommSplit),  figure(Figure::CommConnect),
          figure(Figure::CommMemory), figure(Figure::CommPeer) * channels};
}

CommunicatorUse use_communicators(CommunicatorPolicy policy, const SetupCosts& costs, bool cold,
                                  std::span<const std::vector<Rank>> members,
                                  const std::vector<bool>& named,
                                  const std::function<bool(OpId)>& by_nccl, Workload& workload) {
  return Making(policy, costs, cold, members, named, by_nccl, workload).run();
}

}  // namespace reshard::sim
