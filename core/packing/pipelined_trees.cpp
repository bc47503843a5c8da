// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/pipelined_trees.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/packing/staged_steps.h"
#include "core/packing/staging_buffers.h"

namespace reshard {
namespace {

using Kind = StageKey::Kind;
using Say = std::function<void(StepId, std::string)>;

std::string why(const StageKey& key) {
  switch (key.kind) {
    case Kind::In:
      return key.after == 0 ? "addends leave for the ranks that fold them"
                            : "partial folds move on to the root";
    case Kind::Fold:
      return key.last ? "roots fold everything received" : "intermediate ranks fold";
    case Kind::Out:
      if (key.after == StagedSteps::kNoStage)
        return key.last ? "from holders to ranks that need the data"
                        : "from holders to ranks that relay the data";
      return key.last ? "relays send on to the last ranks in need"
                      : "relays send on what they received";
    case Kind::Divide:
      break;
  }
  return "R -> P(sum) divides what was received";
}

// Elements of a slice's chunk that are consecutive in all coordinates; packed ones count from the
// chunk's corner.
struct ChunkBox {
  DimVector source_lo, destination_lo, packed_lo, extents;
};

// A chunk of an item's slice.
struct SliceChunk {
  const Item& item;
  DimVector extents;
  int across;  // the dim along which the item is divided among trees
  std::int32_t chunk;
  std::vector<ChunkBox> pieces;
  bool needs(Slot slot) const {
    return std::binary_search(item.needing.begin(), item.needing.end(), slot);
  }
};

// Where a rank has a chunk, and the stage that brought it.
struct Held {
  enum class Where : std::uint8_t { Source, Destination, Waiting } where = Where::Source;
  StagingBuffers::StagedBox place = {};
  std::int32_t stage = StagedSteps::kNoStage;

  std::pair<BufferId, DimVector> at(const ChunkBox& piece) const {
    if (where == Where::Source) return {kSourceBuffer, piece.source_lo};
    if (where == Where::Destination) return {kDestinationBuffer, piece.destination_lo};
    DimVector lo = piece.packed_lo;
    for (int d = 0; d < lo.size(); ++d) lo[d] += place.lo[d];
    return {place.buffer, lo};
  }
};

// Sends chunks along the branches of trees. Slots are the packing's, except in steps.
class ChunkSender {
 public:
  ChunkSender(Crossing& crossing, const PackedRequest& packed, const RankRoutes& routes,
              StagedSteps& steps)
      : plan_slot_(packed.plan_slot),
        routes_(routes),
        steps_(steps),
        arrivals_(crossing.plan),
        results_(crossing.plan),
        held_(crossing.plan.slot_count()),
        operands_(crossing.plan.slot_count()),
        height_(crossing.plan.slot_count(), 0),
        passes_on_(crossing.plan.slot_count(), false),
        divides_(crossing.request.fold().divisor > 1 && crossing.request.fold().fold_count == 1) {}

  // `walk` maps the branch's slots to those of the image.
  void send(const SliceChunk& slice_chunk, const Branch& branch, const SymmetryWalk& walk) {
    for (const TreeHop& hop : branch.out) {
      held_[to_index(walk.slot(hop.from))] = {};
      passes_on_[to_index(walk.slot(hop.to))] = false;
    }
    for (const TreeHop& hop : branch.out) passes_on_[to_index(walk.slot(hop.from))] = true;
    if (branch.root >= 0) gather(slice_chunk, branch, walk);
    for (const TreeHop& hop : branch.out)
      send_out(slice_chunk, walk.slot(hop.from), walk.slot(hop.to));
  }

 private:
  Slot in_plan(Slot slot) const { return plan_slot_[to_index(slot)]; }
  bool needs(const SliceChunk& slice_chunk, Slot slot) const {
    return slice_chunk.needs(in_plan(slot));
  }
  std::int32_t rule(Slot from, Slot to) const {
    return routes_.trunks()[to_index(routes_.trunk(from, to))].rule;
  }
  // Hops from holders and hops between nodes are paced.
  bool paced(const Held& sent, Slot from, Slot to) const {
    return sent.stage == StagedSteps::kNoStage || routes_.node_of(from) != routes_.node_of(to);
  }
  Held wait(StagingBuffers& room, const SliceChunk& slice_chunk, Slot slot, std::int32_t stage) {
    return {
        Held::Where::Waiting,
        room.take(in_plan(slot), stage, slice_chunk.chunk, slice_chunk.across, slice_chunk.extents),
        stage};
  }

  void send(const SliceChunk& slice_chunk, Slot from, Slot to, const Held& sent, const Held& got) {
    steps_.follows(got.stage, sent.stage, sent.where == Held::Where::Waiting);
    MessageSorter& messages = steps_.messages(got.stage, slice_chunk.chunk);
    for (const ChunkBox& piece : slice_chunk.pieces) {
      auto [source, source_lo] = sent.at(piece);
      auto [destination, destination_lo] = got.at(piece);
      messages.add(in_plan(from), in_plan(to),
                   {source, destination, source_lo, destination_lo, piece.extents});
    }
  }

  void send_out(const SliceChunk& slice_chunk, Slot from, Slot to) {
    const Held& sent = held_[to_index(from)];
    StageKey key{Kind::Out, sent.stage, rule(from, to), !passes_on_[to_index(to)]};
    int depth = sent.stage == StagedSteps::kNoStage ? 0 : steps_.depth(sent.stage) + 1;
    std::int32_t stage = steps_.stage(key, depth, paced(sent, from, to));
    bool kept = needs(slice_chunk, to) && !divides_;
    Held got =
        kept ? Held{Held::Where::Destination, {}, stage} : wait(arrivals_, slice_chunk, to, stage);
    send(slice_chunk, from, to, sent, got);
    held_[to_index(to)] = got;
    if (needs(slice_chunk, to) && divides_) divide(slice_chunk, to, got);
  }

  void divide(const SliceChunk& slice_chunk, Slot slot, const Held& got) {
    std::int32_t stage =
        steps_.stage({Kind::Divide, got.stage, 0, true}, steps_.depth(got.stage) + 1, false);
    fold(slice_chunk, slot, {got}, {Held::Where::Destination, {}, stage});
  }

  // ---- folds

  // Inward hops are listed with the root's last, so all that a rank folds has arrived before it
  // sends.
  void gather(const SliceChunk& slice_chunk, const Branch& branch, const SymmetryWalk& walk) {
    Slot root = walk.slot(branch.root);
    auto begin = [&](Slot slot) {
      operands_[to_index(slot)].clear();
      height_[to_index(slot)] = 0;
    };
    begin(root);
    for (const TreeHop& hop : branch.in) begin(walk.slot(hop.from));
    for (Slot slot : branch.contributors) operands_[to_index(walk.slot(slot))].push_back({});
    for (const TreeHop& hop : branch.in) {
      Slot from = walk.slot(hop.from), to = walk.slot(hop.to);
      Held sent = folded(slice_chunk, from, false);
      int height = height_[to_index(from)];
      std::int32_t stage = steps_.stage({Kind::In, height, rule(from, to), false}, 2 * height,
                                        paced(sent, from, to));
      Held got = wait(arrivals_, slice_chunk, to, stage);
      send(slice_chunk, from, to, sent, got);
      operands_[to_index(to)].push_back(got);
      height_[to_index(to)] = std::max(height_[to_index(to)], height + 1);
    }
    held_[to_index(root)] = folded(slice_chunk, root, true);
  }

  // What a rank has once all its operands have arrived.
  Held folded(const SliceChunk& slice_chunk, Slot slot, bool complete) {
    const std::vector<Held>& operands = operands_[to_index(slot)];
    if (!complete && operands.size() == 1) return operands[0];
    int height = height_[to_index(slot)];
    std::int32_t stage = steps_.stage({Kind::Fold, height, 0, complete}, 2 * height - 1, false);
    bool kept = complete && needs(slice_chunk, slot);
    Held result =
        kept ? Held{Held::Where::Destination, {}, stage} : wait(results_, slice_chunk, slot, stage);
    fold(slice_chunk, slot, operands, result);
    return result;
  }

  void fold(const SliceChunk& slice_chunk, Slot slot, const std::vector<Held>& operands,
            const Held& result) {
    for (const Held& operand : operands)
      steps_.follows(result.stage, operand.stage, operand.where == Held::Where::Waiting);
    ReduceStep& step = steps_.fold(result.stage, slice_chunk.chunk);
    for (const ChunkBox& piece : slice_chunk.pieces) {
      auto [destination, lo] = result.at(piece);
      step.parts.push_back({in_plan(slot), destination, lo, piece.extents,
                            static_cast<std::uint32_t>(step.operands.size()),
                            static_cast<std::uint32_t>(operands.size())});
      for (const Held& operand : operands) {
        auto [buffer, operand_lo] = operand.at(piece);
        step.operands.push_back({buffer, operand_lo});
      }
    }
  }

  const std::vector<Slot>& plan_slot_;
  const RankRoutes& routes_;
  StagedSteps& steps_;
  // Results of folds do not share temporaries with their operands.
  StagingBuffers arrivals_, results_;
  std::vector<Held> held_;                   // by slot
  std::vector<std::vector<Held>> operands_;  // by slot: operands of its fold
  std::vector<int> height_;                  // by slot: height above the first senders
  std::vector<bool> passes_on_;              // by slot
  bool divides_;                             // nothing is folded: needers divide what has arrived
};

class TreeEmitter {
 public:
  TreeEmitter(Crossing& crossing, const PackedRequest& packed, const RankRoutes& routes,
              const Packing& packing, const Chunking& chunking)
      : crossing_(crossing),
        packed_(packed),
        packing_(packing),
        steps_(
            crossing.plan,
            {static_cast<std::int32_t>(chunking.weights.size()), chunking.window, chunking.waves},
            crossing.request.fold().op, crossing.request.fold().divisor),
        sender_(crossing, packed, routes, steps_) {
    for (std::int32_t weight : chunking.weights) chunk_ends_.push_back(chunk_ends_.back() + weight);
  }

  void run(const Say& say) {
    keep_own(say);
    send_trees();
    steps_.add_steps([&](StepId id, const StageKey& key, std::int32_t chunk) {
      say(id, why(key));
      if (chunks() > 1) say(id, fmt::format("chunk {} of {}", chunk + 1, chunks()));
    });
  }

 private:
  std::int32_t chunks() const { return static_cast<std::int32_t>(chunk_ends_.size()) - 1; }

  // Data that a rank already holds: copied, or divided at once.
  void keep_own(const Say& say) {
    const FoldMeaning& meaning = crossing_.request.fold();
    LocalMoves copies(crossing_.dims(), crossing_.plan.slot_count());
    ReduceStep divide;
    divide.divisor = meaning.divisor;
    auto keep = [&](Slot slot, const DimVector& source_lo, const DimVector& destination_lo,
                    const DimVector& extents) {
      if (meaning.divisor == 1)
        return copies.add(slot,
                          {kSourceBuffer, kDestinationBuffer, source_lo, destination_lo, extents});
      divide.parts.push_back({slot, kDestinationBuffer, destination_lo, extents,
                              static_cast<std::uint32_t>(divide.operands.size()), 1});
      divide.operands.push_back({kSourceBuffer, source_lo});
    };
    packed_.all.for_each([&](const Item& item) {
      if (item.addends->size() > 1) return;
      for (Slot slot : item.needing) {
        const auto& standing = crossing_.standing(slot);
        if (!standing || standing->base != item.source_base ||
            standing->addend != item.addends->front())
          continue;
        for_each_fragment(
            crossing_, item, box_of(item.extents()),
            [&](const DimVector& source_lo, const DimVector& destination_lo, const DimVector&,
                const DimVector& extents) { keep(slot, source_lo, destination_lo, extents); });
      }
    });
    if (!copies.empty())
      say(crossing_.plan.add_step(copies.take(), {}), "each rank copies what it already holds");
    if (divide.parts.empty()) return;
    sort_parts(divide);
    say(crossing_.plan.add_step(std::move(divide), {}),
        "R -> P(sum) divides by the axis size; each rank first divides what it already holds");
  }

  // Every tree of every image of its commodity gets a slice. Copies of one tree within a commodity
  // get adjacent slices.
  void send_trees() {
    SymmetryWalk walk(packed_.symmetry, crossing_.plan.slot_count(), packed_.items.size());
    std::vector<std::int64_t> seen(packed_.items.size(), 0);  // by commodity: images so far
    do {
      std::int64_t before = 0;  // granules of the commodity that earlier trees take
      for (std::size_t i = 0; i < packing_.trees.size(); ++i) {
        const PackedTree& tree = packing_.trees[i];
        std::size_t of = to_index(tree.commodity);
        if (i == 0 || packing_.trees[i - 1].commodity != tree.commodity) before = 0;
        std::size_t image = to_index(walk.commodity(tree.commodity));
        std::int64_t copies = packing_.stabilizer[of],
                     first = before * copies + seen[image] * tree.granules;
        send_slice(tree, walk, packed_.items[image], first, first + tree.granules,
                   packing_.granules[of] * copies);
        before += tree.granules;
        if (before == packing_.granules[of]) ++seen[image];
      }
    } while (walk.next());
  }

  // The part of `box` from lo/of to hi/of along a dim.
  static Box cut(Box box, int dim, std::int64_t lo, std::int64_t hi, std::int64_t of) {
    std::int64_t begin = box.lo[dim];
    Int128 extent = box.extent(dim);
    box.lo[dim] = begin + static_cast<std::int64_t>(lo * extent / of);
    box.hi[dim] = begin + static_cast<std::int64_t>(hi * extent / of);
    return box;
  }

  void send_slice(const PackedTree& tree, const SymmetryWalk& walk, const Item& item,
                  std::int64_t first, std::int64_t last, std::int64_t of) {
    Box all = box_of(item.extents());
    auto [across, along] = cut_dims(all);
    Box slice = cut(all, across, first, last, of);
    for (std::int32_t chunk = 0; chunk < chunks(); ++chunk) {
      Box box = cut(slice, along, chunk_ends_[to_index(chunk)], chunk_ends_[to_index(chunk) + 1],
                    chunk_ends_.back());
      if (box.volume() == 0) continue;
      SliceChunk slice_chunk{item, box.extents(), across, chunk, {}};
      for_each_fragment(
          crossing_, item, box,
          [&](const DimVector& source_lo, const DimVector& destination_lo,
              const DimVector& packed_lo, const DimVector& extents) {
            slice_chunk.pieces.push_back({source_lo, destination_lo, packed_lo, extents});
          });
      for (const Branch& branch : tree.branches) sender_.send(slice_chunk, branch, walk);
    }
  }

  // The dim that is divided among trees, and the one along which chunks follow each other.
  std::pair<int, int> cut_dims(const Box& box) const {
    int across = 0;
    for (int d = 1; d < box.dims(); ++d)
      if (box.extent(d) > box.extent(across)) across = d;
    int along = across;
    for (int d = 0; d < box.dims(); ++d)
      if (d != across && box.extent(d) >= chunks() &&
          (along == across || box.extent(d) > box.extent(along)))
        along = d;
    return {across, along};
  }

  Crossing& crossing_;
  const PackedRequest& packed_;
  const Packing& packing_;
  StagedSteps steps_;
  ChunkSender sender_;
  std::vector<std::int64_t> chunk_ends_{0};
};

}  // namespace

void emit_trees(Crossing& crossing, const PackedRequest& packed, const RankRoutes& routes,
                const Packing& packing, const Chunking& chunking, const Say& say) {
  TreeEmitter(crossing, packed, routes, packing, chunking).run(say);
}

}  // namespace reshard
