// SPDX-License-Identifier: BSD-3-Clause
// PyTorch pushes every step that it sees and drops states that are closed by the time they are
// popped. Here a step is pushed only if no path of at most its cost is known. The plan is the same:
// steps not pushed would have been popped later, because they cost no less and were found later,
// and the rest keep their order.
#include "core/torch/redistribution.h"

#include <algorithm>
#include <queue>

#include "core/base/errors.h"
#include "core/torch/packed_state.h"

namespace reshard {
namespace {

using namespace packed;

// Whether these operators must not be mixed: more than one, other than sum with avg.
bool is_mix(std::uint32_t ops) {
  constexpr std::uint32_t kSums =
      1U << static_cast<int>(ReduceOp::Sum) | 1U << static_cast<int>(ReduceOp::Avg);
  return (ops & (ops - 1)) != 0 && ops != kSums;
}

std::vector<ReduceOp> operators_of(const OrderedRequest& request) {
  std::vector<ReduceOp> out;
  for (const Layout* side : {&request.source, &request.target})
    for (const Placement& placement : side->placements())
      if (placement.is_partial() && std::ranges::find(out, placement.op) == out.end())
        out.push_back(placement.op);
  return out;
}

// Whether a step of this axis agrees with the addends that the request defines there.
bool is_wanted(const OrderedRequest& request, int axis, const Placement& from,
               const Placement& to) {
  const Placement &first = request.source.placement(axis), &last = request.target.placement(axis);
  if (!last.is_partial() || request.source.mesh().axis_size(axis) == 1) return true;
  if (first.is_replicate()) return !to.is_partial() || from.is_replicate();
  return !first.is_partial() && from == first && to == last;
}

// The least known cost of every state met, in an open-addressing hash table: a search looks up
// millions.
class LeastCosts {
 public:
  // Whether `cost_us` is less than the cost known so far; if so it is stored.
  bool improve(State state, double cost_us) {
    if (2 * met_ >= slots_.size()) grow();
    Slot& slot = slots_[place(state)];
    if (slot.state == kEmpty) ++met_;
    if (slot.state == state && slot.cost_us <= cost_us) return false;
    slot = {state, cost_us};
    return true;
  }
  double of(State state) const { return slots_[place(state)].cost_us; }

 private:
  static constexpr State kEmpty = ~State{0};  // not a state: only five bytes are in use
  struct Slot {
    State state = kEmpty;
    double cost_us = 0.0;
  };

  std::size_t place(State state) const {
    std::size_t at = (state * 0x9e3779b97f4a7c15U) >> shift_;
    while (slots_[at].state != state && slots_[at].state != kEmpty)
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    --shift_;
    for (const Slot& slot : old)
      if (slot.state != kEmpty) slots_[place(slot.state)] = slot;
  }

  int shift_ = 64 - 7;
  std::vector<Slot> slots_ = std::vector<Slot>(1U << 7);
  std::size_t met_ = 0;
};

// The number of states of `left` more axes when `cut` others are shards already.
std::int64_t state_count(int left, std::int64_t cut, std::int64_t dims, std::int64_t uncut) {
  // A new shard goes into one of the dims' orders, at any place in it.
  if (left == 0) return 1;
  return uncut * state_count(left - 1, cut, dims, uncut) +
         (dims + cut) * state_count(left - 1, cut + 1, dims, uncut);
}

class Search {
 public:
  Search(const OrderedRequest& request, std::int32_t devices_per_host, WantedAddends addends)
      : request_(request),
        mesh_(request.source.mesh()),
        addends_(addends),
        topology_(torch_mesh_topology(mesh_, devices_per_host)),
        bytes_(static_cast<double>(request.source.bytes())),
        dims_(request.source.dims()),
        ops_(operators_of(request)),
        target_(state_of(request.target)) {}

  std::vector<TorchStep> run() {
    State source = state_of(request_.source);
    least_us_.improve(source, 0.0);
    queue_.push({0.0, pushed_++, source, kNone});
    while (!queue_.empty()) {
      QueuedState entry = queue_.top();
      queue_.pop();
      if (entry.state == target_) return steps_to(entry);
      if (entry.cost_us > least_us_.of(entry.state)) continue;
      closed_.push_back({entry.state, entry.before});
      leave(entry);
    }
    RESHARD_CHECK(false, "every request has a path for the min-cost planner");
    return {};
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct QueuedState {
    double cost_us;
    std::uint64_t pushed;
    State state;
    std::size_t before;                               // index into closed_
    bool operator<(const QueuedState& other) const {  // makes the queue pop the least
      return cost_us != other.cost_us ? cost_us > other.cost_us : pushed > other.pushed;
    }
  };
  struct Closed {
    State state;
    std::size_t before;
  };

  void leave(const QueuedState& entry) {
    StateFacts facts = facts_of(entry.state, mesh_);
    double gib = bytes_ / facts.shards / 1024.0 / 1024.0 / 1024.0;
    auto push = [&](int axis, Code code, double step_us) {
      const Placement from = placement_of(facts.codes[to_index(axis)]), to = placement_of(code);
      if (addends_ == WantedAddends::AsRequested && !is_wanted(request_, axis, from, to)) return;
      State next = with(entry.state, axis, code);
      double cost_us = entry.cost_us + step_us;
      if (least_us_.improve(next, cost_us))
        queue_.push({cost_us, pushed_++, next, closed_.size() - 1});
    };
    move_shards(facts, gib, push);
    gather(facts, gib, push);
    each_axis(facts, is_partial, [&](int axis) {
      push(axis, kReplicate, torch_allreduce_cost_us(gib, topology_, axis));
    });
    each_axis(facts, is_replicate, [&](int axis) { to_shards(facts, axis, 0.0, push); });
    each_axis(facts, is_partial, [&](int axis) {
      to_shards(facts, axis, torch_reduce_scatter_cost_us(gib, topology_, axis), push);
    });
    each_axis(facts, is_replicate, [&](int axis) {
      for (ReduceOp op : ops_)
        if (!is_mix(facts.ops | 1U << static_cast<int>(op))) push(axis, partial_code(op), 0.0);
    });
    embed(facts, push);
  }

  static bool is_replicate(Code code) { return code == kReplicate; }

  template <class F>
  void each_axis(const StateFacts& facts, bool (*is)(Code), F&& f) const {
    for (int axis = 0; axis < mesh_.axes(); ++axis)
      if (is(facts.codes[to_index(axis)])) f(axis);
  }
  // Calls f(dim, innermost axis).
  template <class F>
  void each_cut_dim(const StateFacts& facts, F&& f) const {
    for (int dim = 0; dim < dims_; ++dim)
      if (facts.depth[to_index(dim)] > 0) f(dim, facts.innermost[to_index(dim)]);
  }

  template <class F>
  void move_shards(const StateFacts& facts, double gib, F&& push) const {
    each_cut_dim(facts, [&](int from, int axis) {
      double cost_us = torch_all_to_all_cost_us(gib, topology_, axis);
      for (int to = 0; to < dims_; ++to)
        if (to != from) push(axis, shard_code(to, facts.depth[to_index(to)]), cost_us);
    });
  }
  template <class F>
  void gather(const StateFacts& facts, double gib, F&& push) const {
    each_cut_dim(facts, [&](int, int axis) {
      double gathered = gib * static_cast<double>(mesh_.axis_size(axis));
      push(axis, kReplicate, torch_allgather_cost_us(gathered, topology_, axis));
    });
  }
  template <class F>
  void to_shards(const StateFacts& facts, int axis, double cost_us, F&& push) const {
    for (int dim = 0; dim < dims_; ++dim)
      push(axis, shard_code(dim, facts.depth[to_index(dim)]), cost_us);
  }
  template <class F>
  void embed(const StateFacts& facts, F&& push) const {
    Code sum = partial_code(ReduceOp::Sum);
    each_cut_dim(facts, [&](int, int axis) {
      if (code_at(target_, axis) == sum) push(axis, sum, 0.0);
    });
  }

  std::vector<TorchStep> steps_to(const QueuedState& target) const {
    std::vector<TorchStep> steps;
    State after = target.state;
    for (std::size_t at = target.before; at != kNone; at = closed_[at].before) {
      State before = closed_[at].state;
      for (int axis = 0; axis < mesh_.axes(); ++axis)
        if (code_at(before, axis) != code_at(after, axis))
          steps.push_back(
              {axis, placement_of(code_at(before, axis)), placement_of(code_at(after, axis))});
      after = before;
    }
    std::ranges::reverse(steps);
    return steps;
  }

  const OrderedRequest& request_;
  const Mesh& mesh_;
  WantedAddends addends_;
  TorchMeshTopology topology_;
  double bytes_;
  int dims_;
  std::vector<ReduceOp> ops_;
  State target_;
  std::priority_queue<QueuedState> queue_;
  std::uint64_t pushed_ = 0;
  std::vector<Closed> closed_;
  LeastCosts least_us_;
};

}  // namespace

bool can_search(const OrderedRequest& request) {
  auto ops = static_cast<std::int64_t>(operators_of(request).size());
  return state_count(request.source.mesh().axes(), 0, request.source.dims(), 1 + ops) <=
         kMaxTorchStates;
}

std::vector<TorchStep> torch_min_cost_steps(const OrderedRequest& request,
                                            std::int32_t devices_per_host, WantedAddends addends) {
  return Search(request, devices_per_host, addends).run();
}

bool make_wanted_addends(const OrderedRequest& request, const std::vector<TorchStep>& steps) {
  return std::ranges::all_of(steps, [&](const TorchStep& step) {
    return is_wanted(request, step.axis, step.from, step.to);
  });
}

}  // namespace reshard
