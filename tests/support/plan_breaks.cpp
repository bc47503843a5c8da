// SPDX-License-Identifier: BSD-3-Clause
// break_plan of drawn_plans.h: puts one random fault into a plan.
#include <algorithm>
#include <limits>

#include "tests/support/drawn_plans.h"

namespace reshard::test {
namespace {

class Break {
 public:
  Break(Prng& prng, Plan& plan) : prng_(prng), plan_(plan) {}

  std::string run() {
    if (plan_.steps.empty()) return shape();
    switch (prng_.below(12)) {
      case 0:
        return shape();
      case 1:
      case 2:
        return order();
      case 3:
        return place();
      default:
        return std::visit([&](auto& body) { return in(body); }, any(plan_.steps).body);
    }
  }

 private:
  template <class T>
  T& any(std::vector<T>& from) {
    return from[static_cast<std::size_t>(prng_.below(static_cast<std::int64_t>(from.size())))];
  }
  // Another value, most often the next one.
  template <class T>
  void nudge(T& value) {
    auto by = static_cast<T>(prng_.one_in(4) ? prng_.between(1, 3) : 1);
    value = static_cast<T>(prng_.one_in(2) ? value + by : value - by);
  }
  std::string buffer(BufferId& id) {
    if (prng_.one_in(8)) {
      auto number = static_cast<std::int32_t>(id);
      nudge(number);
      id = BufferId{number};
    } else {
      id = BufferId{
          static_cast<std::int32_t>(prng_.below(static_cast<std::int64_t>(plan_.buffers.size())))};
    }
    return "buffer";
  }
  std::string slot(Slot& at) {
    at = static_cast<Slot>(prng_.below(static_cast<std::int64_t>(plan_.slot_count())));
    if (prng_.one_in(16)) at = prng_.one_in(2) ? -1 : static_cast<Slot>(plan_.slot_count());
    return "slot";
  }
  void nudge_one_of(DimVector& values) {
    std::int64_t& value = values[static_cast<int>(prng_.below(values.size()))];
    if (!prng_.one_in(30)) return nudge(value);
    value = prng_.one_in(2) ? std::numeric_limits<std::int64_t>::max()
                            : std::numeric_limits<std::int64_t>::min();
  }
  std::string box(DimVector& lo, DimVector& extents) {
    bool of_extents = prng_.one_in(3);
    nudge_one_of(of_extents ? extents : lo);
    return of_extents ? "extent" : "lo";
  }
  std::string op(ReduceOp& op) {
    op = static_cast<ReduceOp>(prng_.below(kReduceOpCount));
    return "operator";
  }
  std::string divisor(std::int64_t& divisor) {
    divisor = prng_.one_in(6)   ? std::int64_t{1} << 62
              : prng_.one_in(2) ? divisor * 2
                                : prng_.between(-1, 3);
    return "divisor";
  }
  std::string range(MoveRange& range) {
    nudge(prng_.one_in(2) ? range.first : range.count);
    return "range of boxes";
  }

  std::string shape() {
    Buffer& buffer = any(plan_.buffers);
    auto at = static_cast<Slot>(prng_.below(static_cast<std::int64_t>(plan_.slot_count())));
    Shape shape = buffer.exists(at) ? buffer.shape(at) : Shape(plan_.dims(), 1);
    int d = static_cast<int>(prng_.below(shape.size()));
    if (prng_.one_in(6))
      shape = Shape(shape.size(), -1);  // the rank loses it
    else if (prng_.one_in(3) && shape.size() > 1)
      std::swap(shape[d], shape[(d + 1) % shape.size()]);
    else
      nudge(shape[d]);
    buffer.set_shape(at, shape);
    return "shape of a buffer";
  }

  std::string order() {
    auto s = static_cast<std::int64_t>(prng_.below(static_cast<std::int64_t>(plan_.steps.size())));
    std::vector<StepId>& after = plan_.steps[static_cast<std::size_t>(s)].after;
    if (!after.empty() && !prng_.one_in(4)) {
      after.erase(after.begin() + prng_.below(static_cast<std::int64_t>(after.size())));
    } else {
      after.push_back(StepId{static_cast<std::int32_t>(prng_.between(-1, s))});
      if (!prng_.one_in(6)) std::sort(after.begin(), after.end());
    }
    return "after";
  }

  std::string place() {
    auto s =
        static_cast<std::ptrdiff_t>(prng_.below(static_cast<std::int64_t>(plan_.steps.size())));
    if (prng_.one_in(3)) {
      plan_.steps.erase(plan_.steps.begin() + s);
      return "step left out";
    }
    if (prng_.one_in(3)) {
      plan_.steps.push_back(Step(plan_.steps[static_cast<std::size_t>(s)]));
      return "step twice";
    }
    std::swap(plan_.steps[static_cast<std::size_t>(s)], any(plan_.steps));
    return "steps swapped";
  }

  std::string in(MoveList& moves) {
    if (prng_.one_in(40)) {
      moves = MoveList(moves.dims() + 1);
      return "dims of boxes";
    }
    auto chosen = static_cast<std::size_t>(prng_.below(static_cast<std::int64_t>(moves.size())));
    MoveList out(moves.dims());
    std::string what;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      Move move = moves[i];
      if (i == chosen) {
        if (prng_.one_in(4)) {
          what = buffer(prng_.one_in(2) ? move.source : move.destination);
        } else {
          DimVector& lo = prng_.one_in(2) ? move.source_lo : move.destination_lo;
          what = box(lo, move.extents);
        }
      }
      out.push_back(move);
    }
    moves = std::move(out);
    return what;
  }

  // One of a list, of which ranges into another list may speak.
  template <class T>
  std::string list(std::vector<T>& of) {
    auto at = of.begin() + prng_.below(static_cast<std::int64_t>(of.size()));
    if (prng_.one_in(3)) {
      of.erase(at);
      return "one left out";
    }
    if (prng_.one_in(2)) {
      T again = *at;
      of.insert(at, again);
      return "one twice";
    }
    std::swap(*at, any(of));
    return "two swapped";
  }

  std::string in(CopyStep& step) {
    if (prng_.one_in(8)) return list(step.parts);
    CopyStep::SlotMoves& part = any(step.parts);
    return prng_.one_in(6) ? slot(part.slot) : prng_.one_in(6) ? range(part.moves) : in(step.moves);
  }
  std::string in(ExchangeStep& step) {
    if (prng_.one_in(8)) return list(step.messages);
    ExchangeStep::Message& message = any(step.messages);
    if (prng_.one_in(4)) return slot(prng_.one_in(2) ? message.source : message.destination);
    return prng_.one_in(6) ? range(message.moves) : in(step.moves);
  }
  std::string in(FillStep& step) {
    if (prng_.one_in(8)) return list(step.parts);
    FillStep::SlotFill& part = any(step.parts);
    if (prng_.one_in(4)) return slot(part.slot);
    if (prng_.one_in(4)) return buffer(part.buffer);
    return ends(part.box);
  }
  // Whose distance is a number still.
  std::string ends(Box& box) {
    if (prng_.one_in(20) && box.dims() < kMaxDims) {
      box.lo.push_back(0);
      box.hi.push_back(1);
      return "dims of a box";
    }
    int d = static_cast<int>(prng_.below(box.dims()));
    std::int64_t by = prng_.one_in(30) ? std::int64_t{1} << 62 : prng_.one_in(4) ? 2 : 1;
    if (prng_.one_in(2)) by = -by;
    (prng_.one_in(2) ? box.hi[d] : box.lo[d]) += by;
    return "box";
  }
  std::string in(ReduceStep& step) {
    if (prng_.one_in(8)) return prng_.one_in(2) ? list(step.parts) : list(step.operands);
    ReduceStep::SlotFold& part = any(step.parts);
    ReduceStep::Operand& operand = any(step.operands);
    switch (prng_.below(9)) {
      case 0:
        return op(step.op);
      case 1:
        return divisor(step.divisor);
      case 2:
        return slot(part.slot);
      case 3:
        return buffer(prng_.one_in(2) ? part.destination : operand.buffer);
      case 4:
        nudge(prng_.one_in(2) ? part.first_operand : part.operand_count);
        return "range of operands";
      case 5:
        nudge_one_of(operand.lo);
        return "lo of an operand";
      case 6:
        if (!prng_.one_in(4) || operand.lo.size() == kMaxDims) return box(operand.lo, part.extents);
        for (DimVector* values : {&operand.lo, &part.destination_lo, &part.extents})
          if (prng_.one_in(2)) values->push_back(1);
        return "dims of a box";
      default:
        return box(part.destination_lo, part.extents);
    }
  }
  std::string in(CollectiveStep& step) {
    if (!step.input_boxes.empty() && prng_.one_in(3)) {
      std::vector<Box>& boxes = prng_.one_in(2) ? step.input_boxes : step.output_boxes;
      if (!prng_.one_in(6)) return ends(any(boxes));
      if (prng_.one_in(2)) return list(boxes);
      boxes.clear();
      return "all boxes left out";
    }
    if (prng_.one_in(40)) {
      step.members.clear();
      return "no members";
    }
    switch (prng_.below(9)) {
      case 0:
        step.kind = static_cast<CollectiveKind>(prng_.below(4));
        return "kind";
      case 1:
        return op(step.op);
      case 2:
        return divisor(step.divisor);
      case 3:
        return buffer(prng_.one_in(2) ? step.input : step.output);
      case 4:
        nudge(prng_.one_in(2) ? step.input_dim : step.output_dim);
        return "dim of the blocks";
      case 5:
        if (prng_.one_in(2)) {
          nudge(step.group_size);
          return "size of the groups";
        }
        step.members.pop_back();
        return "a member left out";
      case 6:
        return slot(any(step.members));
      default:
        std::swap(any(step.members), any(step.members));
        return "members swapped";
    }
  }

  Prng& prng_;
  Plan& plan_;
};

}  // namespace

std::string break_plan(Prng& prng, Plan& plan) { return Break(prng, plan).run(); }

}  // namespace reshard::test
