// SPDX-License-Identifier: BSD-3-Clause
// p2p: direct exchange. Every destination rank gets each part of its shard from one rank that holds
// it: itself where it can, else the replica that has sent least so far (ties: the lower rank).
// Destination ranks are served in ascending order. It knows no topology. The bytes received are the
// fewest possible (redistribution bound 2), and one message goes from a rank to another, however
// many boxes it holds.
//
// Where S becomes P(sum) a rank gets its share of the source and fills the rest with zeros.
//
// Work is linear in what comes out: per dim a table of which source pieces meet which destination
// piece, and per destination rank the product of its rows.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/planners/p2p_parts.h"

namespace reshard {

Slot Senders::pick(std::int32_t base, std::int64_t elements) {
  std::vector<std::pair<std::int64_t, Slot>>& set = sets_[to_index(base)];
  const std::vector<std::int32_t>& offsets = crossing_.source_cells.replica_offsets();
  if (offsets.size() == 1) return crossing_.source_slot[to_index(base)];
  if (set.empty()) {
    for (std::int32_t offset : offsets)
      set.emplace_back(0, crossing_.source_slot[to_index(base + offset)]);
    std::sort(set.begin(), set.end());  // a sorted list is a heap
  }
  std::pop_heap(set.begin(), set.end(), std::greater<>());
  Slot slot = set.back().second;
  set.back().first += elements;
  std::push_heap(set.begin(), set.end(), std::greater<>());
  return slot;
}

namespace {

// Destination elements are single source elements, perhaps divided (R -> P(sum)).
class MovePlanner {
 public:
  explicit MovePlanner(Crossing& crossing)
      : crossing_(crossing),
        remote_(crossing.dims(), crossing.plan.slot_count()),
        local_(crossing.dims(), crossing.plan.slot_count()),
        senders_(crossing),
        divisor_(crossing.request.fold().divisor) {}

  void run(Explanation* explanation) {
    // Division happens at the receiver, from a landing buffer of the destination's shape.
    if (divisor_ > 1) landing_ = crossing_.plan.add_temporary();
    std::vector<std::int32_t> positions(crossing_.destination_slot.size());
    std::iota(positions.begin(), positions.end(), 0);
    std::sort(positions.begin(), positions.end(),
              [&](std::int32_t a, std::int32_t b) { return slot_at(a) < slot_at(b); });
    for (std::int32_t position : positions) serve(position);
    add_steps(explanation);
  }

 private:
  Slot slot_at(std::int32_t position) const {
    return crossing_.destination_slot[to_index(position)];
  }

  void serve(std::int32_t position) {
    const Layout& layout = crossing_.request.destination();
    MeshCoordinate coordinate = layout.mesh().coordinate(position);
    Slot slot = slot_at(position);
    std::int64_t addend = crossing_.request.addends_wanted(position)[0];
    std::array<std::span<const PieceOverlap>, kMaxDims> rows;
    std::array<std::size_t, kMaxDims> sizes{};
    auto dims = to_index(crossing_.dims());
    for (std::size_t d = 0; d < dims; ++d) {
      std::int64_t piece =
          layout.dims() == 0 ? 0 : layout.piece_of(static_cast<int>(d), coordinate);
      rows[d] = crossing_.overlaps[d].of(
          piece, crossing_.zero_axes.share_of(static_cast<int>(d), coordinate));
      sizes[d] = rows[d].size();
    }
    std::int32_t addend_offset = crossing_.source_cells.addend_offsets()[to_index(addend)];
    const std::optional<Crossing::Standing>& own = crossing_.standing(slot);
    for_each_combination(
        std::span<const std::size_t>(sizes.data(), dims), [&](std::span<const std::size_t> at) {
          std::array<PieceOverlap, kMaxDims> cell;
          std::int32_t base = 0;
          std::int64_t volume = 1;
          for (std::size_t d = 0; d < dims; ++d) {
            cell[d] = rows[d][at[d]];
            base += crossing_.source_cells.base(static_cast<int>(d), cell[d].source_piece);
            volume *= cell[d].size;
          }
          Slot sender = slot;
          if (!own || own->base != base || own->addend != addend)
            sender = senders_.pick(base + addend_offset, volume);
          move_cell(sender, slot, std::span<const PieceOverlap>(cell.data(), dims));
        });
  }

  void move_cell(Slot sender, Slot receiver, std::span<const PieceOverlap> cell) {
    std::array<std::size_t, kMaxDims> counts{};
    for (std::size_t d = 0; d < cell.size(); ++d) counts[d] = cell[d].fragment_count;
    for_each_combination(std::span<const std::size_t>(counts.data(), cell.size()),
                         [&](std::span<const std::size_t> at) {
                           auto dims = static_cast<int>(cell.size());
                           Move move{kSourceBuffer, kDestinationBuffer, DimVector(dims),
                                     DimVector(dims), DimVector(dims)};
                           for (int d = 0; d < dims; ++d) {
                             auto index = to_index(d);
                             const Fragment& fragment =
                                 crossing_.overlaps[index].fragments(cell[index])[at[index]];
                             move.source_lo[d] = fragment.source_lo;
                             move.destination_lo[d] = fragment.destination_lo;
                             move.extents[d] = fragment.size;
                           }
                           add(sender, receiver, move);
                         });
  }

  void add(Slot sender, Slot receiver, Move move) {
    bool remote = sender != receiver;
    if (divisor_ == 1) {
      remote ? remote_.add(sender, receiver, move) : local_.add(receiver, move);
      return;
    }
    ReduceStep& divide = remote ? divide_landed_ : divide_own_;
    divide.parts.push_back({receiver, kDestinationBuffer, move.destination_lo, move.extents,
                            static_cast<std::uint32_t>(divide.operands.size()), 1});
    divide.operands.push_back(
        {remote ? landing_ : kSourceBuffer, remote ? move.destination_lo : move.source_lo});
    if (!remote) return;
    move.destination = landing_;
    crossing_.plan.buffer(landing_).set_shape(
        receiver, crossing_.plan.buffer(kDestinationBuffer).shape(receiver));
    remote_.add(sender, receiver, move);
  }

  void add_steps(Explanation* explanation) {
    Plan& plan = crossing_.plan;
    auto say = [&](StepId step, const char* why) {
      if (explanation) explanation->add(step, why);
    };
    divide_own_.divisor = divide_landed_.divisor = divisor_;
    if (!local_.empty())
      say(plan.add_step(local_.take(), {}), "what a rank already holds it copies");
    if (!divide_own_.parts.empty())
      say(plan.add_step(std::move(divide_own_), {}),
          "R -> P(sum) divides by the axis size; what a rank already holds it divides at once");
    if (remote_.empty()) return;
    StepId exchange = plan.add_step(remote_.take(), {});
    say(exchange,
        "every other part comes straight from one rank that holds it, the replica that has sent "
        "least");
    if (!divide_landed_.parts.empty())
      say(plan.add_step(std::move(divide_landed_), {exchange}),
          "R -> P(sum) divides what has arrived");
  }

  Crossing& crossing_;
  MessageSorter remote_;
  LocalMoves local_;
  Senders senders_;
  std::int64_t divisor_;
  BufferId landing_{};
  ReduceStep divide_own_, divide_landed_;
};

}  // namespace

Plan plan_p2p(const Request& request, const PlannerInput& input) {
  Crossing crossing(request, "p2p");
  if (FillStep zeros = crossing.zeros(); !zeros.parts.empty()) {
    StepId id = crossing.plan.add_step(std::move(zeros), {});
    if (input.explanation)
      input.explanation->add(id, "S -> P(sum): zeros for the elements of other ranks");
  }
  if (request.fold().fold_count > 1)
    plan_folds(crossing, input.explanation);
  else
    MovePlanner(crossing).run(input.explanation);
  return std::move(crossing.plan);
}

}  // namespace reshard
