// SPDX-License-Identifier: BSD-3-Clause
// wander of drawn_plans.h: a correct plan of random steps.
#include <algorithm>
#include <memory>

#include "tests/support/drawn_plans.h"

namespace reshard::test {
namespace {

using State = SlowValue::State;

class Wanderer {
 public:
  Wanderer(Prng& prng, const Request& request, const SlowMeaning& meaning)
      : prng_(prng),
        meanings_{meaning},
        plan_(request, "drawn"),
        run_(std::make_unique<SlowRun>(meanings_, plan_)) {}

  std::optional<Plan> walk() {
    if (prng_.one_in(2)) try_step(fold_all());
    for (std::int64_t left = prng_.between(2, 9); left > 0; --left) try_step(draw());
    if (!finish()) return std::nullopt;
    return std::move(plan_);
  }

 private:
  // A box of a buffer of a rank.
  struct RankBox {
    BufferId buffer;
    Slot slot;
    DimVector lo, extents;
  };

  const SlowMeaning& meaning() const { return meanings_.front(); }
  std::int64_t slots() const { return static_cast<std::int64_t>(plan_.slot_count()); }
  Slot any_slot() { return static_cast<Slot>(prng_.below(slots())); }
  int dims() const { return plan_.dims(); }

  // Of any buffer but the destination; none where the draw meets nothing.
  std::optional<RankBox> any_box(Slot slot) {
    std::vector<BufferId> there;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b)
      if (b != 1 && plan_.buffers[b].elements(slot) > 0)
        there.push_back(BufferId{static_cast<std::int32_t>(b)});
    if (there.empty()) return std::nullopt;
    RankBox out{prng_.pick(there), slot, {}, {}};
    Shape shape = plan_.buffer(out.buffer).shape(slot);
    bool whole = prng_.one_in(3);
    for (int d = 0; d < dims(); ++d) {
      std::int64_t lo = whole ? 0 : prng_.below(shape[d]);
      out.lo.push_back(lo);
      out.extents.push_back(whole ? shape[d] : prng_.between(1, shape[d] - lo));
    }
    return out;
  }
  // A new temporary that leaves room around `extents` at the returned place.
  RankBox landing(Slot slot, const DimVector& extents) {
    RankBox out{plan_.add_temporary(), slot, {}, extents};
    Shape shape;
    for (int d = 0; d < dims(); ++d) {
      out.lo.push_back(prng_.one_in(4) ? 1 : 0);
      shape.push_back(out.lo[d] + extents[d] + (prng_.one_in(4) ? 1 : 0));
    }
    plan_.buffer(out.buffer).set_shape(slot, shape);
    return out;
  }
  static Move move_of(const RankBox& from, const RankBox& to) {
    return {from.buffer, to.buffer, from.lo, to.lo, from.extents};
  }

  std::optional<StepBody> draw() {
    switch (prng_.below(8)) {
      case 0:
        return copy();
      case 1:
        return fill();
      case 2:
        return exchange();
      case 3:
        return reduce();
      default:
        return collective();
    }
  }

  std::optional<StepBody> copy() {
    CopyStep step{{}, MoveList(dims())};
    for (Slot slot = 0; slot < slots(); ++slot) {
      std::optional<RankBox> from = any_box(slot);
      if (!from || prng_.one_in(4)) continue;
      step.parts.push_back({slot, {static_cast<std::uint32_t>(step.moves.size()), 1}});
      step.moves.push_back(move_of(*from, landing(slot, from->extents)));
    }
    if (step.parts.empty()) return std::nullopt;
    return step;
  }

  // Rounds temporaries off: what is not written of one of them.
  std::optional<StepBody> fill() {
    FillStep step;
    for (Slot slot = 0; slot < slots(); ++slot)
      for (std::size_t b = 2; b < plan_.buffers.size(); ++b) {
        BufferId buffer{static_cast<std::int32_t>(b)};
        if (!plan_.buffer(buffer).exists(slot)) continue;
        Shape shape = plan_.buffer(buffer).shape(slot);
        for (std::int64_t i = 0; i < element_count(shape); ++i) {
          if (run_->held(buffer, slot)[static_cast<std::size_t>(i)].state != State::Unwritten)
            continue;
          DimVector lo = index_at(i, shape), hi = lo;
          for (int d = 0; d < dims(); ++d) ++hi[d];
          step.parts.push_back({slot, buffer, {lo, hi}});
        }
      }
    if (step.parts.empty()) return std::nullopt;
    return step;
  }

  std::optional<StepBody> exchange() {
    ExchangeStep step{{}, MoveList(dims())};
    for (Slot from = 0; from < slots(); ++from)
      for (Slot to = 0; to < slots(); ++to) {
        if (from == to || !prng_.one_in(slots())) continue;
        std::optional<RankBox> box = any_box(from);
        if (!box) continue;
        step.messages.push_back({from, to, {static_cast<std::uint32_t>(step.moves.size()), 1}});
        step.moves.push_back(move_of(*box, landing(to, box->extents)));
      }
    if (step.messages.empty()) return std::nullopt;
    return step;
  }

  // Two or three boxes of one rank that can be folded, else one as it is.
  std::optional<StepBody> reduce() {
    ReduceStep step;
    step.op = meaning().op();
    for (Slot slot = 0; slot < slots(); ++slot) {
      std::optional<RankBox> first = any_box(slot);
      if (!first) continue;
      RankBox to = landing(slot, first->extents);
      auto begin = static_cast<std::uint32_t>(step.operands.size());
      step.operands.push_back({first->buffer, first->lo});
      std::uint64_t addends = first_of(*first).addends;
      for (int tries = 0; tries < 20 && step.operands.size() < begin + 3; ++tries)
        if (std::optional<RankBox> other = any_box(slot);
            other && can_join(*first, addends, *other)) {
          step.operands.push_back({other->buffer, other->lo});
          addends |= first_of(*other).addends;
        }
      step.parts.push_back({slot, to.buffer, to.lo, first->extents, begin,
                            static_cast<std::uint32_t>(step.operands.size()) - begin});
    }
    if (step.parts.empty()) return std::nullopt;
    return step;
  }
  const SlowValue& first_of(const RankBox& place) {
    Shape shape = plan_.buffer(place.buffer).shape(place.slot);
    std::int64_t at = 0;
    for (int d = 0; d < dims(); ++d) at = at * shape[d] + place.lo[d];
    return run_->held(place.buffer, place.slot)[static_cast<std::size_t>(at)];
  }
  bool can_join(const RankBox& a, std::uint64_t addends, RankBox& b) {
    Shape shape = plan_.buffer(b.buffer).shape(b.slot);
    for (int d = 0; d < dims(); ++d)
      if (b.lo[d] + a.extents[d] > shape[d]) return false;
    b.extents = a.extents;
    const SlowValue &x = first_of(a), &y = first_of(b);
    return x.element == y.element && (addends & y.addends) == 0;
  }

  // Groups of the ranks that have `input` in one shape; of whole buffers or of a box for each.
  std::optional<StepBody> collective() {
    CollectiveStep step{};
    step.kind = static_cast<CollectiveKind>(prng_.below(4));
    step.op = meaning().op();
    auto b = prng_.below(static_cast<std::int64_t>(plan_.buffers.size()));
    step.input = BufferId{static_cast<std::int32_t>(b == 1 ? 0 : b)};
    std::vector<Slot> slots_left;
    for (Slot slot = 0; slot < slots(); ++slot) slots_left.push_back(slot);
    prng_.shuffle(slots_left);
    Shape input;
    for (Slot slot : slots_left) {
      if (plan_.buffer(step.input).elements(slot) == 0) continue;
      if (step.members.empty()) input = plan_.buffer(step.input).shape(slot);
      if (plan_.buffer(step.input).shape(slot) == input) step.members.push_back(slot);
    }
    if (step.members.size() < 2) return std::nullopt;
    auto all = static_cast<std::int32_t>(step.members.size());
    step.group_size = prng_.one_in(2) ? all : static_cast<std::int32_t>(prng_.between(2, all));
    step.members.resize(static_cast<std::size_t>(all / step.group_size * step.group_size));
    Shape taken = input;
    bool boxed = prng_.one_in(3);
    for (int d = 0; boxed && d < dims(); ++d) taken[d] = prng_.between(1, input[d]);
    std::optional<Shape> output = output_shape(step, taken);
    if (!output) return std::nullopt;
    step.output = plan_.add_temporary();
    for (std::size_t g = 0; boxed && g < step.group_count(); ++g) {
      DimVector from(dims()), to(dims());
      for (int d = 0; d < dims(); ++d) {
        from[d] = prng_.between(0, input[d] - taken[d]);
        to[d] = prng_.below(2);
      }
      step.input_boxes.push_back(box_at(from, taken));
      step.output_boxes.push_back(box_at(to, *output));
    }
    for (int d = 0; boxed && d < dims(); ++d) (*output)[d] += prng_.between(1, 2);
    for (Slot slot : step.members) plan_.buffer(step.output).set_shape(slot, *output);
    return step;
  }
  std::optional<Shape> output_shape(CollectiveStep& step, Shape shape) {
    int first = 0;
    while (first < dims() - 1 && shape[first] == 1) ++first;
    if (step.kind == CollectiveKind::ReduceScatter || step.kind == CollectiveKind::AllToAll) {
      step.input_dim = first;
      if (shape[first] % step.group_size != 0) return std::nullopt;
      shape[first] /= step.group_size;
    }
    if (step.kind == CollectiveKind::AllGather || step.kind == CollectiveKind::AllToAll) {
      first = 0;
      while (first < dims() - 1 && shape[first] == 1) ++first;
      step.output_dim = static_cast<int>(prng_.between(0, first));
      shape[step.output_dim] *= step.group_size;
      if (element_count(shape) > 200) return std::nullopt;
    }
    return shape;
  }
  // The request's own fold, for the most part of requests with one Partial axis.
  std::optional<StepBody> fold_all() {
    CollectiveStep step{};
    step.kind = CollectiveKind::AllReduce;
    step.op = meaning().op();
    if (!meaning().destination().empty() && !meaning().destination()[0].values.empty())
      step.divisor = meaning().destination()[0].values[0].divisor;
    step.input = kSourceBuffer;
    for (Slot slot = 0; slot < slots(); ++slot)
      if (plan_.buffer(kSourceBuffer).elements(slot) > 0) step.members.push_back(slot);
    step.group_size = static_cast<std::int32_t>(step.members.size());
    if (step.group_size < 2) return std::nullopt;
    step.output = plan_.add_temporary();
    for (Slot slot : step.members)
      plan_.buffer(step.output).set_shape(slot, plan_.buffer(kSourceBuffer).shape(slot));
    return step;
  }

  // Appends the step where it is right, after as few earlier ones as the draw finds.
  bool try_step(std::optional<StepBody> body) {
    if (!body) return false;
    std::vector<StepId> all;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s)
      all.push_back(StepId{static_cast<std::int32_t>(s)});
    for (int tries = 0; tries < 4; ++tries) {
      std::vector<StepId> after;
      for (StepId id : all)
        if (tries == 3 || !prng_.one_in(3)) after.push_back(id);
      plan_.add_step(*body, after);
      auto next = std::make_unique<SlowRun>(*run_);
      if (next->run_step(plan_.steps.size() - 1)) {
        run_ = std::move(next);
        return true;
      }
      plan_.steps.pop_back();
    }
    return false;
  }

  // Each destination element from a place drawn among all that hold its value, in runs along the
  // last dim; a copy for those on its rank and an exchange for the others. Zeros that nobody holds
  // are filled.
  bool finish() {
    std::vector<std::vector<Move>> moves(plan_.slot_count() * plan_.slot_count());
    FillStep fill;
    for (const SlowMeaning::Shard& shard : meaning().destination()) {
      Slot to = plan_.slot_of(shard.rank);
      for (std::size_t e = 0; e < shard.values.size(); ++e) {
        std::vector<RankBox> from = holders(shard.values[e]);
        DimVector lo = index_at(static_cast<std::int64_t>(e), shard.shape);
        if (from.empty() && shard.values[e].state == State::Padding) {
          fill.parts.push_back({to, kDestinationBuffer, box_at(lo, DimVector(dims(), 1))});
          continue;
        }
        if (from.empty()) return false;
        const RankBox& place = prng_.pick(from);
        add(moves[static_cast<std::size_t>(place.slot) * plan_.slot_count() +
                  static_cast<std::size_t>(to)],
            {place.buffer, kDestinationBuffer, place.lo, lo, DimVector(dims(), 1)});
      }
    }
    CopyStep copy{{}, MoveList(dims())};
    ExchangeStep exchange{{}, MoveList(dims())};
    for (Slot from = 0; from < slots(); ++from)
      for (Slot to = 0; to < slots(); ++to) {
        const auto& list = moves[static_cast<std::size_t>(from) * plan_.slot_count() +
                                 static_cast<std::size_t>(to)];
        if (list.empty()) continue;
        MoveList& target = from == to ? copy.moves : exchange.moves;
        MoveRange range{static_cast<std::uint32_t>(target.size()),
                        static_cast<std::uint32_t>(list.size())};
        if (from == to)
          copy.parts.push_back({from, range});
        else
          exchange.messages.push_back({from, to, range});
        for (const Move& move : list) target.push_back(move);
      }
    std::stable_sort(fill.parts.begin(), fill.parts.end(),
                     [](const auto& a, const auto& b) { return a.slot < b.slot; });
    if (!fill.parts.empty() && !try_step(fill)) return false;
    if (!copy.parts.empty() && !try_step(copy)) return false;
    if (!exchange.messages.empty() && !try_step(exchange)) return false;
    return run_->check_destination();
  }
  void add(std::vector<Move>& moves, const Move& move) const {
    int last = dims() - 1;
    if (!moves.empty()) {
      Move& before = moves.back();
      Move next = before;
      next.source_lo[last] += before.extents[last];
      next.destination_lo[last] += before.extents[last];
      if (before.source == move.source && next.source_lo == move.source_lo &&
          next.destination_lo == move.destination_lo) {
        ++before.extents[last];
        return;
      }
    }
    moves.push_back(move);
  }
  // Temporaries where there are any, so that what was drawn is used.
  std::vector<RankBox> holders(const SlowValue& value) {
    std::vector<RankBox> out, source;
    for (Slot slot = 0; slot < slots(); ++slot)
      for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
        BufferId buffer{static_cast<std::int32_t>(b)};
        if (b == 1 || !plan_.buffer(buffer).exists(slot)) continue;
        Shape shape = plan_.buffer(buffer).shape(slot);
        const std::vector<SlowValue>& held = run_->held(buffer, slot);
        for (std::size_t i = 0; i < held.size(); ++i)
          if (held[i].holds(value))
            (b == 0 ? source : out)
                .push_back({buffer, slot, index_at(static_cast<std::int64_t>(i), shape),
                            DimVector(dims(), 1)});
      }
    return out.empty() ? source : out;
  }

  Prng& prng_;
  SlowMeanings meanings_;  // of the one tensor
  Plan plan_;
  std::unique_ptr<SlowRun> run_;
};

}  // namespace

std::optional<Plan> wander(Prng& prng, const Request& request, const SlowMeaning& meaning) {
  return Wanderer(prng, request, meaning).walk();
}

}  // namespace reshard::test
