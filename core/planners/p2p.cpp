// SPDX-License-Identifier: BSD-3-Clause
// p2p: direct exchange. Every destination rank gets each part of its shards from one rank that
// holds it: itself if possible, else a replica on its node that has not sent its share, else the
// replica that has sent least so far (ties: the lower position in the mesh). Destination ranks are
// served in the order of their positions, so that their numbers do not matter. Only the topology's
// nodes are used. The bytes received are the fewest possible, and there is one message from a rank
// to another, however many boxes of however many tensors it has.
//
// What a rank has sent counts over all tensors. Tensors with few replicas are served first, as only
// the others leave a choice; among them those of large shards, so that small ones even out.
//
// For S -> P(sum) a rank gets its share of the source and fills the rest with zeros. Partial
// sources are folded by an owner of every element: p2p_fold.cpp.
//
// The work is linear in the output (for_each_needed).
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "core/demand/items.h"
#include "core/moves/zeros.h"
#include "core/planners/p2p_fold.h"
#include "core/planners/planner.h"

namespace reshard {
namespace {

// Divisions for R -> P(sum), by divisor.
using Divisions = std::map<std::int64_t, ReduceStep>;

class P2pPlanner {
 public:
  P2pPlanner(const Demand& demand, const PlannerInput& input)
      : demand_(demand),
        explanation_(input.explanation),
        plan_({demand.requests().begin(), demand.requests().end()}, "p2p"),
        remote_(plan_.dims(), plan_.slot_count()),
        results_(plan_.dims(), plan_.slot_count()),
        local_(plan_.dims(), plan_.slot_count()),
        senders_(demand, input.topology),
        folds_(plan_, demand, senders_, remote_, results_) {}

  Plan run() {
    if (FillStep zeros = zeros_of(demand_); !zeros.parts.empty())
      say(plan_.add_step(std::move(zeros), {}), zeros_text(demand_));
    std::vector<std::size_t> kinds = kinds_in_order();
    for (std::size_t kind : kinds)
      for (TensorId tensor : demand_.kinds()[kind].tensors)
        if (demand_.kinds()[kind].folds()) folds_.plan_tensor(kind, tensor);
    std::vector<Pass> passes = senders_.differ() ? std::vector{Pass::Count, Pass::Near, Pass::Rest}
                                                 : std::vector{Pass::All};
    for (Pass pass : passes) serve_all(kinds, pass);
    add_steps();
    return std::move(plan_);
  }

 private:
  // If replicas are on several nodes, the first pass counts what they are asked for; then receivers
  // with a replica on their own node are served, then the others.
  enum class Pass : std::uint8_t { Count, Near, Rest, All };

  std::vector<std::size_t> kinds_in_order() const {
    const std::vector<TensorKind>& kinds = demand_.kinds();
    std::vector<std::size_t> out(kinds.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    auto key = [&](std::size_t kind) {
      const Layout& source = kinds[kind].request().source();
      std::int64_t shard = element_count(source.local_shape(0)) * kinds[kind].element_bytes();
      return std::tuple(kinds[kind].fewest_holders(), -shard, kind);
    };
    std::sort(out.begin(), out.end(),
              [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return out;
  }

  void serve_all(const std::vector<std::size_t>& kinds, Pass pass) {
    visited_ = 0;
    for (std::size_t number : kinds) {
      kind_number_ = number;
      kind_ = &demand_.kinds()[number];
      if (kind_->folds()) continue;
      divisor_ = kind_->request().fold().divisor;
      for (TensorId tensor : kind_->tensors) {
        tensor_ = tensor;
        // Division happens at the receiver, from a landing buffer of the destination's shape.
        if (divisor_ > 1) landing_ = landing_of(tensor_);
        auto ranks = static_cast<std::int32_t>(kind_->destination_slot.size());
        for (std::int32_t position = 0; position < ranks; ++position) serve(position, pass);
      }
    }
  }

  void serve(std::int32_t position, Pass pass) {
    Slot slot = kind_->destination_slot[to_index(position)];
    std::int64_t addend = kind_->request().addends_wanted(position)[0];
    for_each_needed(*kind_, position, [&](const NeededPart& part) {
      const std::int64_t tensors = kind_->request().tensors();
      if (holds(*kind_, part, slot, addend)) {
        if (pass == Pass::Near || pass == Pass::All) move_part(slot, slot, part, 0, tensors);
        return;
      }
      Senders::Set set{kind_number_, kind_->holder_set(part.source, addend)};
      for (std::int64_t i = 0, shares = shares_of(set.number); i < shares; ++i) {
        std::int64_t first = tensors * i / shares, end = tensors * (i + 1) / shares;
        std::int64_t elements = part.elements / tensors * (end - first);
        if (auto sender = sender_of(set, elements * kind_->element_bytes(), slot, pass))
          move_part(*sender, slot, part, first, end);
      }
    });
  }

  // Among how many replicas the tensors of a series are divided: so many that those who need a part
  // ask each replica for some of it.
  std::int64_t shares_of(HolderSet set) {
    const std::int64_t tensors = kind_->request().tensors();
    auto replicas = static_cast<std::int64_t>(kind_->holder_count(set));
    if (tensors == 1 || replicas == 1) return 1;
    std::vector<std::int64_t>& needed = needed_[kind_number_];
    if (needed.empty()) {
      needed.resize(kind_->holder_sets(), 0);
      for (std::int32_t at = 0; at < std::ssize(kind_->destination_slot); ++at)
        for_each_needed(*kind_, at, [&](const NeededPart& part) {
          ++needed[to_index(kind_->holder_set(part.source, 0))];
        });
    }
    return std::min(tensors, ceil_div(replicas, needed[to_index(set)]));
  }

  // Nothing if another pass serves it.
  std::optional<Slot> sender_of(Senders::Set set, std::int64_t bytes, Slot receiver, Pass pass) {
    std::optional<Slot> out;
    switch (pass) {
      case Pass::Count:
        senders_.expect(set, bytes);
        break;
      case Pass::Near:
        out = senders_.pick_near(set, bytes, plan_.rank_of(receiver));
        served_.push_back(out.has_value());
        break;
      case Pass::Rest:
        if (!served_[visited_++]) out = senders_.pick(set, bytes);
        break;
      case Pass::All:
        out = senders_.pick(set, bytes);
    }
    return out;
  }

  // Moves the part for tensors [first, end) of a series.
  void move_part(Slot sender, Slot receiver, const NeededPart& part, std::int64_t first,
                 std::int64_t end) {
    BufferId source = source_of(tensor_), destination = destination_of(tensor_);
    const std::optional<int> series_dim = plan_.series_dim(source);
    for_each_fragment(
        *kind_, part, sender, receiver, plan_.dims(),
        [&](DimVector source_lo, DimVector destination_lo, DimVector extents) {
          if (series_dim) {
            source_lo[*series_dim] = destination_lo[*series_dim] = first;
            extents[*series_dim] = end - first;
          }
          add(sender, receiver, {source, destination, source_lo, destination_lo, extents});
        });
  }

  void add(Slot sender, Slot receiver, Move move) {
    bool remote = sender != receiver;
    if (divisor_ == 1) {
      remote ? remote_.add(sender, receiver, move) : local_.add(receiver, move);
      return;
    }
    ReduceStep& divide = (remote ? divide_landed_ : divide_own_)[divisor_];
    divide.divisor = divisor_;
    divide.parts.push_back({receiver, move.destination, move.destination_lo, move.extents,
                            static_cast<std::uint32_t>(divide.operands.size()), 1});
    divide.operands.push_back(remote ? ReduceStep::Operand{landing_, move.destination_lo}
                                     : ReduceStep::Operand{move.source, move.source_lo});
    if (!remote) return;
    plan_.buffer(landing_).set_shape(receiver, plan_.buffer(move.destination).shape(receiver));
    move.destination = landing_;
    remote_.add(sender, receiver, move);
  }

  BufferId landing_of(TensorId tensor) {
    auto [at, is_new] = landings_.try_emplace(tensor, BufferId{});
    if (is_new) at->second = plan_.add_temporary(tensor);
    return at->second;
  }

  void say(StepId step, const char* why) {
    if (explanation_ != nullptr) explanation_->add(step, why);
  }

  void add_divisions(Divisions& divisions, const std::vector<StepId>& after, const char* why) {
    for (auto& [divisor, divide] : divisions) {
      sort_parts(divide);
      say(plan_.add_step(std::move(divide), after), why);
    }
  }

  void add_steps() {
    bool moves = !remote_.empty(), folds = false;
    if (!local_.empty())
      say(plan_.add_step(local_.take(), {}), "each rank copies what it already holds");
    add_divisions(divide_own_, {},
                  "R -> P(sum) divides by the axis size; each rank first divides what it already "
                  "holds");
    if (!moves) return;
    std::vector<ReduceStep> reduces = folds_.take_folds();
    folds = !reduces.empty();
    StepId exchange = plan_.add_step(remote_.take(), {});
    if (!folds || demand_.kinds().size() > 1)
      say(exchange,
          "every other part comes directly from one rank that holds it, the replica that has sent "
          "least");
    if (folds)
      say(exchange,
          "phase 1: addends go to one owner per element, if possible a rank that needs the result "
          "and holds an addend");
    add_divisions(divide_landed_, {exchange}, "R -> P(sum) divides what was received");
    std::vector<StepId> folding;
    for (ReduceStep& reduce : reduces) {
      folding.push_back(plan_.add_step(std::move(reduce), {exchange}));
      say(folding.back(), "the owner folds the addends in ascending order");
    }
    if (!results_.empty())
      say(plan_.add_step(results_.take(), folding),
          "phase 2: results go to the other ranks that need them");
  }

  const Demand& demand_;
  Explanation* explanation_;
  Plan plan_;
  MessageSorter remote_, results_;
  LocalMoves local_;
  Senders senders_;
  FoldPlanner folds_;
  Divisions divide_own_, divide_landed_;
  std::map<TensorId, BufferId> landings_;
  std::map<std::size_t, std::vector<std::int64_t>> needed_;  // by kind of series, set: how often
  std::vector<bool> served_;                                 // per part from another rank, in order
  std::size_t visited_ = 0;
  // For the tensor that is being served:
  std::size_t kind_number_ = 0;
  const TensorKind* kind_ = nullptr;
  TensorId tensor_{};
  std::int64_t divisor_ = 1;
  BufferId landing_{};
};

}  // namespace

Plan plan_p2p(const Demand& demand, const PlannerInput& input) {
  return P2pPlanner(demand, input).run();
}

}  // namespace reshard
