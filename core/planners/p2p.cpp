// SPDX-License-Identifier: BSD-3-Clause
// p2p: direct exchange. Every destination rank gets each part of its shard from one rank that holds
// it: itself if possible, else a replica on its node that has not sent its share, else the replica
// that has sent least so far (ties: the lower position in the mesh). Destination ranks are served
// in the order of their positions, so that their numbers do not matter. Only the topology's nodes
// are used. The bytes received are the fewest possible, and there is one message from a rank to
// another, however many boxes it has.
//
// For S -> P(sum) a rank gets its share of the source and fills the rest with zeros.
//
// The work is linear in the output: per dim a table of which source pieces overlap which
// destination piece, and per destination rank the product of its rows.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/planners/p2p_parts.h"

namespace reshard {

Senders::Senders(const Crossing& crossing, const Topology* topology)
    : crossing_(crossing),
      topology_(topology),
      sets_(crossing.source_slot.size()),
      sent_(crossing.source_slot.size(), 0) {
  if (topology == nullptr || crossing.source_cells.replica_offsets().size() == 1) return;
  for (Rank rank : crossing.request.source().mesh().ranks())
    node_of_.push_back(topology->node_of(rank));
  if (std::ranges::count(node_of_, node_of_.front()) == std::ssize(node_of_)) node_of_.clear();
}

// Updates entries until that of the first is current.
void Senders::refresh(Heap& heap) const {
  while (heap.front().first != sent_[to_index(heap.front().second)]) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.back().first = sent_[to_index(heap.back().second)];
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
}

std::int32_t Senders::take(Heap& heap, std::int64_t elements) {
  refresh(heap);
  std::int32_t position = heap.front().second;
  sent_[to_index(position)] += elements;
  return position;
}

Slot Senders::pick(std::int32_t base, std::int64_t elements) {
  const std::vector<std::int32_t>& offsets = crossing_.source_cells.replica_offsets();
  if (offsets.size() == 1) return crossing_.source_slot[to_index(base)];
  Heap& all = sets_[to_index(base)].all;
  if (all.empty()) {
    for (std::int32_t offset : offsets) all.emplace_back(0, base + offset);
    std::sort(all.begin(), all.end());  // a sorted list is a heap
  }
  return crossing_.source_slot[to_index(take(all, elements))];
}

std::optional<Slot> Senders::pick_near(std::int32_t base, std::int64_t elements, Rank receiver) {
  const std::vector<std::int32_t>& offsets = crossing_.source_cells.replica_offsets();
  Set& set = sets_[to_index(base)];
  auto before = [](const auto& entry, std::int32_t node) { return entry.first < node; };
  if (set.by_node.empty()) {
    std::vector<std::pair<std::int32_t, std::int32_t>> holders;  // node, position
    for (std::int32_t offset : offsets)
      holders.emplace_back(node_of_[to_index(base + offset)], base + offset);
    std::sort(holders.begin(), holders.end());
    for (auto [node, position] : holders) {
      if (set.by_node.empty() || set.by_node.back().first != node)
        set.by_node.push_back({node, {}});
      set.by_node.back().second.emplace_back(0, position);
    }
  }
  std::int32_t node = topology_->node_of(receiver);
  auto near = std::lower_bound(set.by_node.begin(), set.by_node.end(), node, before);
  if (near == set.by_node.end() || near->first != node) return std::nullopt;
  refresh(near->second);
  auto share = ceil_div(set.expected, std::ssize(offsets));
  if (near->second.front().first >= share) return std::nullopt;
  return crossing_.source_slot[to_index(take(near->second, elements))];
}

namespace {

// Plans requests without folds: each destination element is one source element, perhaps divided for
// R -> P(sum).
class MovePlanner {
 public:
  MovePlanner(Crossing& crossing, const Topology* topology)
      : crossing_(crossing),
        remote_(crossing.dims(), crossing.plan.slot_count()),
        local_(crossing.dims(), crossing.plan.slot_count()),
        senders_(crossing, topology),
        divisor_(crossing.request.fold().divisor) {}

  void run(Explanation* explanation) {
    // Division happens at the receiver, from a landing buffer of the destination's shape.
    if (divisor_ > 1) landing_ = crossing_.plan.add_temporary();
    if (senders_.differ())
      for (Pass pass : {Pass::Count, Pass::Near, Pass::Rest}) serve_all(pass);
    else
      serve_all(Pass::All);
    add_steps(explanation);
  }

 private:
  // If replicas are on several nodes, the first pass counts what they are asked for; then receivers
  // with a replica on their own node are served, then the others.
  enum class Pass : std::uint8_t { Count, Near, Rest, All };

  void serve_all(Pass pass) {
    visited_ = 0;
    auto ranks = static_cast<std::int32_t>(crossing_.destination_slot.size());
    for (std::int32_t position = 0; position < ranks; ++position) serve(position, pass);
  }

  void serve(std::int32_t position, Pass pass) {
    const Layout& layout = crossing_.request.destination();
    MeshCoordinate coordinate = layout.mesh().coordinate(position);
    Slot slot = crossing_.destination_slot[to_index(position)];
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
          std::optional<Slot> sender;
          if (own && own->base == base && own->addend == addend) {
            if (pass == Pass::Near || pass == Pass::All) sender = slot;
          } else {
            sender = sender_of(base + addend_offset, volume, slot, pass);
          }
          if (sender) move_cell(*sender, slot, std::span<const PieceOverlap>(cell.data(), dims));
        });
  }

  // Nothing if another pass serves it.
  std::optional<Slot> sender_of(std::int32_t base, std::int64_t volume, Slot receiver, Pass pass) {
    std::optional<Slot> out;
    switch (pass) {
      case Pass::Count:
        senders_.expect(base, volume);
        break;
      case Pass::Near:
        out = senders_.pick_near(base, volume, crossing_.plan.rank_of(receiver));
        served_.push_back(out.has_value());
        break;
      case Pass::Rest:
        if (!served_[visited_++]) out = senders_.pick(base, volume);
        break;
      case Pass::All:
        out = senders_.pick(base, volume);
    }
    return out;
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

  // Sorts the parts by slot, and the operands in the same order.
  void in_order(ReduceStep& divide) const {
    divide.divisor = divisor_;
    std::ranges::stable_sort(divide.parts, {}, &ReduceStep::SlotFold::slot);
    std::vector<ReduceStep::Operand> operands;
    for (ReduceStep::SlotFold& part : divide.parts) {
      operands.push_back(divide.operands[part.first_operand]);
      part.first_operand = static_cast<std::uint32_t>(operands.size() - 1);
    }
    divide.operands = std::move(operands);
  }

  void add_steps(Explanation* explanation) {
    Plan& plan = crossing_.plan;
    auto say = [&](StepId step, const char* why) {
      if (explanation) explanation->add(step, why);
    };
    in_order(divide_own_);
    in_order(divide_landed_);
    if (!local_.empty())
      say(plan.add_step(local_.take(), {}), "each rank copies what it already holds");
    if (!divide_own_.parts.empty())
      say(plan.add_step(std::move(divide_own_), {}),
          "R -> P(sum) divides by the axis size; each rank first divides what it already holds");
    if (remote_.empty()) return;
    StepId exchange = plan.add_step(remote_.take(), {});
    say(exchange,
        "every other part comes directly from one rank that holds it, the replica that has sent "
        "least");
    if (!divide_landed_.parts.empty())
      say(plan.add_step(std::move(divide_landed_), {exchange}),
          "R -> P(sum) divides what was received");
  }

  Crossing& crossing_;
  MessageSorter remote_;
  LocalMoves local_;
  Senders senders_;
  std::int64_t divisor_;
  BufferId landing_{};
  ReduceStep divide_own_, divide_landed_;
  std::vector<bool> served_;  // per part from another rank, in order
  std::size_t visited_ = 0;
};

}  // namespace

Plan plan_p2p(const Request& request, const PlannerInput& input) {
  Crossing crossing(request, "p2p");
  if (FillStep zeros = crossing.zeros(); !zeros.parts.empty()) {
    StepId id = crossing.plan.add_step(std::move(zeros), {});
    if (input.explanation)
      input.explanation->add(id, "S -> P(sum): zeros for elements that other ranks hold");
  }
  if (request.fold().fold_count > 1)
    plan_folds(crossing, input);
  else
    MovePlanner(crossing, input.topology).run(input.explanation);
  return std::move(crossing.plan);
}

}  // namespace reshard
