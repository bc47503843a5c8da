// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/steps/pipelined_trees.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "core/packing/steps/commodity_string.h"
#include "core/packing/steps/own_data.h"
#include "core/packing/steps/slice_chunk.h"
#include "core/packing/steps/staged_steps.h"
#include "core/packing/steps/staging_buffers.h"

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

// Where a rank has a chunk, and the stage that brought it.
struct Held {
  enum class Where : std::uint8_t { Source, Destination, Staged } where = Where::Source;
  std::int32_t stage = StagedSteps::kNoStage;
  std::size_t first_box = 0;  // if staged: of the boxes of all parts
};

// Sends chunks along the branches of trees. Slots are the packing's, except in steps.
class ChunkSender {
 public:
  ChunkSender(Plan& plan, const Demand& demand, const RankRoutes& routes, StagedSteps& steps)
      : plan_slot_(demand.slot_at()),
        routes_(routes),
        steps_(steps),
        arrivals_(plan),
        results_(plan),
        held_(plan.slot_count()),
        operands_(plan.slot_count()),
        height_(plan.slot_count(), 0),
        passes_on_(plan.slot_count(), false) {}

  // `walk` maps the branch's slots to those of the image. If chunks are joined, the hops that take
  // several at once are left to send_joined().
  void send(const SliceChunk& slice_chunk, const Branch& branch, const SymmetryWalk& walk,
            bool are_joined = false) {
    boxes_.clear();
    for (const TreeHop& hop : branch.out) {
      held_[to_index(walk.slot(hop.from))] = {};
      passes_on_[to_index(walk.slot(hop.to))] = false;
    }
    for (const TreeHop& hop : branch.out) passes_on_[to_index(walk.slot(hop.from))] = true;
    if (branch.root >= 0) gather(slice_chunk, branch, walk);
    for (const TreeHop& hop : branch.out)
      if (Slot from = walk.slot(hop.from), to = walk.slot(hop.to);
          !are_joined || !takes_joined(slice_chunk, from, to))
        send_out(slice_chunk, from, to);
  }

  // Sends several chunks, which send() has sent along the branch just before, over the other hops.
  void send_joined(const SliceChunk& joined, const Branch& branch, const SymmetryWalk& walk) {
    for (const TreeHop& hop : branch.out)
      if (Slot from = walk.slot(hop.from), to = walk.slot(hop.to); takes_joined(joined, from, to))
        send_out(joined, from, to);
  }

 private:
  Slot in_plan(Slot slot) const { return plan_slot_[to_index(slot)]; }
  std::int32_t rule(Slot from, Slot to) const {
    return routes_.trunks()[to_index(routes_.trunk(from, to))].rule;
  }
  // Hops from holders and hops between nodes are paced.
  bool paced(const Held& sent, Slot from, Slot to) const {
    return sent.stage == StagedSteps::kNoStage || routes_.node_of(from) != routes_.node_of(to);
  }
  // No rank waits for hops to ranks that forward nothing, and within a node they are quick.
  // What is sent must not be in a temporary, which only lasts for a chunk.
  bool takes_joined(const SliceChunk& slice_chunk, Slot from, Slot to) const {
    return !passes_on_[to_index(to)] && routes_.node_of(from) == routes_.node_of(to) &&
           held_[to_index(from)].where != Held::Where::Staged && slice_chunk.needs(to) &&
           !slice_chunk.divides();
  }
  Held stage(StagingBuffers& buffers, const SliceChunk& slice_chunk, Slot slot,
             std::int32_t stage) {
    Held out{Held::Where::Staged, stage, boxes_.size()};
    for (const ChunkPart& part : slice_chunk.parts)
      boxes_.push_back(buffers.take(part.tensor, part.first, in_plan(slot), stage,
                                    slice_chunk.chunk, part.across, part.extents));
    return out;
  }

  // Where a rank has a piece of the part at index `i`.
  std::pair<BufferId, DimVector> at(Slot slot, const Held& held, const ChunkPart& part,
                                    std::size_t i, const SliceChunk::Piece& piece) const {
    if (held.where == Held::Where::Source)
      return {source_of(part.tensor), in_source(*part.item, in_plan(slot), piece.source_lo)};
    if (held.where == Held::Where::Destination)
      return {destination_of(part.tensor),
              in_destination(*part.item, in_plan(slot), piece.destination_lo)};
    const StagingBuffers::StagedBox& box = boxes_[held.first_box + i];
    DimVector lo = piece.packed_lo;
    for (int d = 0; d < lo.size(); ++d) lo[d] += box.lo[d];
    return {box.buffer, lo};
  }

  void send(const SliceChunk& slice_chunk, Slot from, Slot to, const Held& sent, const Held& got) {
    steps_.follows(got.stage, sent.stage, sent.where == Held::Where::Staged);
    MessageSorter& messages = steps_.messages(got.stage, slice_chunk.chunk);
    for (std::size_t i = 0; i < slice_chunk.parts.size(); ++i)
      for (const ChunkPart& part = slice_chunk.parts[i];
           const auto& piece : slice_chunk.pieces(part)) {
        auto [source, source_lo] = at(from, sent, part, i, piece);
        auto [destination, destination_lo] = at(to, got, part, i, piece);
        messages.add(in_plan(from), in_plan(to),
                     {source, destination, source_lo, destination_lo, piece.extents});
      }
  }

  void send_out(const SliceChunk& slice_chunk, Slot from, Slot to) {
    const Held sent = held_[to_index(from)];
    StageKey key{Kind::Out, sent.stage, rule(from, to), !passes_on_[to_index(to)]};
    int depth = sent.stage == StagedSteps::kNoStage ? 0 : steps_.depth(sent.stage) + 1;
    std::int32_t number = steps_.stage(key, depth, paced(sent, from, to));
    bool needs = slice_chunk.needs(to), kept = needs && !slice_chunk.divides();
    Held got =
        kept ? Held{Held::Where::Destination, number} : stage(arrivals_, slice_chunk, to, number);
    send(slice_chunk, from, to, sent, got);
    held_[to_index(to)] = got;
    if (needs && !kept) divide(slice_chunk, to, got);
  }

  void divide(const SliceChunk& slice_chunk, Slot slot, const Held& got) {
    std::int32_t stage =
        steps_.stage({Kind::Divide, got.stage, 0, true}, steps_.depth(got.stage) + 1, false);
    fold(slice_chunk, slot, {got}, {Held::Where::Destination, stage});
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
      std::int32_t number = steps_.stage({Kind::In, height, rule(from, to), false}, 2 * height,
                                         paced(sent, from, to));
      Held got = stage(arrivals_, slice_chunk, to, number);
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
    std::int32_t number = steps_.stage({Kind::Fold, height, 0, complete}, 2 * height - 1, false);
    bool kept = complete && slice_chunk.needs(slot);
    Held result =
        kept ? Held{Held::Where::Destination, number} : stage(results_, slice_chunk, slot, number);
    fold(slice_chunk, slot, operands, result);
    return result;
  }

  void fold(const SliceChunk& slice_chunk, Slot slot, const std::vector<Held>& operands,
            const Held& result) {
    for (const Held& operand : operands)
      steps_.follows(result.stage, operand.stage, operand.where == Held::Where::Staged);
    ReduceStep& step = steps_.fold(result.stage, slice_chunk.chunk, slice_chunk.commodity.op,
                                   slice_chunk.commodity.divisor);
    for (std::size_t i = 0; i < slice_chunk.parts.size(); ++i)
      for (const ChunkPart& part = slice_chunk.parts[i];
           const auto& piece : slice_chunk.pieces(part)) {
        auto [destination, lo] = at(slot, result, part, i, piece);
        step.parts.push_back({in_plan(slot), destination, lo, piece.extents,
                              static_cast<std::uint32_t>(step.operands.size()),
                              static_cast<std::uint32_t>(operands.size())});
        for (const Held& operand : operands) {
          auto [buffer, operand_lo] = at(slot, operand, part, i, piece);
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
  std::vector<StagingBuffers::StagedBox> boxes_;
};

// A hop that takes several chunks of a slice at once still takes the slice in so many messages.
constexpr std::int32_t kFewestJoined = 4;

class TreeEmitter {
 public:
  TreeEmitter(Plan& plan, const Commodities& commodities, const Symmetry& symmetry,
              const RankRoutes& routes, const Packing& packing, const Chunking& chunking)
      : plan_(plan),
        commodities_(commodities),
        symmetry_(symmetry),
        packing_(packing),
        steps_(plan, {static_cast<std::int32_t>(chunking.weights.size()), chunking.window,
                      chunking.waves, chunking.all_paced, chunking.coupled}),
        sender_(plan, commodities.demand(), routes, steps_) {
    for (std::int32_t weight : chunking.weights) chunk_ends_.push_back(chunk_ends_.back() + weight);
    if (chunking.joins_small && chunking.waves) small_bytes_ = mean_slice_bytes();
  }

  void run(const Say& say) {
    send_trees();
    steps_.add_steps([&](StepId id, const StageKey& key, std::int32_t chunk) {
      say(id, why(key));
      if (chunks() > 1) say(id, fmt::format("chunk {} of {}", chunk + 1, chunks()));
    });
  }

 private:
  std::int32_t chunks() const { return static_cast<std::int32_t>(chunk_ends_.size()) - 1; }

  // Every tree of every image of its commodity gets a slice. Copies of one tree within a commodity
  // get adjacent slices.
  void send_trees() {
    SymmetryWalk walk(symmetry_, plan_.slot_count(), commodities_.list().size());
    std::vector<std::int64_t> seen(commodities_.list().size(), 0);  // by commodity: images so far
    do {
      std::int64_t before = 0;  // granules of the commodity that earlier trees take
      for (std::size_t i = 0; i < packing_.trees.size(); ++i) {
        const PackedTree& tree = packing_.trees[i];
        std::size_t of = to_index(tree.commodity);
        if (i == 0 || packing_.trees[i - 1].commodity != tree.commodity) before = 0;
        std::size_t image = to_index(walk.commodity(tree.commodity));
        std::int64_t copies = packing_.stabilizer[of],
                     first = before * copies + seen[image] * tree.granules;
        send_slice(tree, walk, commodities_.list()[image], {first, first + tree.granules},
                   packing_.granules[of] * copies);
        before += tree.granules;
        if (before == packing_.granules[of]) ++seen[image];
      }
    } while (walk.next());
  }

  // The bytes of a tree's slice, as a mean over all hops.
  std::int64_t mean_slice_bytes() const {
    Int128 bytes = 0, all_hops = 0;
    for (const PackedTree& tree : packing_.trees) {
      std::size_t of = to_index(tree.commodity), hops = 0;
      for (const Branch& branch : tree.branches) hops += branch.in.size() + branch.out.size();
      bytes += Int128{commodities_.list()[of].bytes} * tree.granules /
               (packing_.granules[of] * packing_.stabilizer[of]) * static_cast<std::int64_t>(hops);
      all_hops += static_cast<std::int64_t>(hops);
    }
    return all_hops == 0 ? 0 : static_cast<std::int64_t>(bytes / all_hops);
  }

  // How many chunks of a slice some hops take at once: a power of two.
  std::int32_t joined_chunks(const std::vector<StringPart>& slice) const {
    std::int64_t bytes = 1;
    for (const StringPart& part : slice) bytes += part.bytes;
    std::int32_t out = 1;
    while (2 * kFewestJoined * out <= chunks() && 2 * out * bytes <= small_bytes_) out *= 2;
    return out;
  }

  // Chunks `first` to `end` - 1 of a slice.
  void take_chunks(SliceChunk& out, const std::vector<StringPart>& slice, std::int32_t first,
                   std::int32_t end) const {
    out.take(commodities_, slice, {chunk_ends_[to_index(first)], chunk_ends_[to_index(end)]},
             chunk_ends_.back(), chunks());
    out.chunk = end - 1;
  }

  void send_slice(const PackedTree& tree, const SymmetryWalk& walk, const Commodity& commodity,
                  Share granules, std::int64_t of) {
    std::vector<StringPart> slice = slice_of(commodities_, commodity, granules, of);
    if (std::int32_t joined = joined_chunks(slice); joined > 1)
      return send_joined(tree, walk, commodity, slice, joined);
    SliceChunk slice_chunk{commodity};
    for (std::int32_t chunk = 0; chunk < chunks(); ++chunk) {
      take_chunks(slice_chunk, slice, chunk, chunk + 1);
      if (slice_chunk.parts.empty()) continue;
      for (const Branch& branch : tree.branches) sender_.send(slice_chunk, branch, walk);
    }
  }

  void send_joined(const PackedTree& tree, const SymmetryWalk& walk, const Commodity& commodity,
                   const std::vector<StringPart>& slice, std::int32_t joined) {
    for (std::int32_t first = 0; first < chunks(); first += joined) {
      const std::int32_t end = std::min(first + joined, chunks());
      std::vector<SliceChunk> each;
      for (std::int32_t chunk = first; chunk < end; ++chunk) {
        take_chunks(each.emplace_back(SliceChunk{commodity}), slice, chunk, chunk + 1);
        if (each.back().parts.empty()) each.pop_back();
      }
      if (each.empty()) continue;
      SliceChunk all{commodity};
      take_chunks(all, slice, first, end);
      for (const Branch& branch : tree.branches) {
        for (const SliceChunk& own : each) sender_.send(own, branch, walk, true);
        sender_.send_joined(all, branch, walk);
      }
    }
  }

  Plan& plan_;
  const Commodities& commodities_;
  const Symmetry& symmetry_;
  const Packing& packing_;
  StagedSteps steps_;
  ChunkSender sender_;
  std::vector<std::int64_t> chunk_ends_{0};
  std::int64_t small_bytes_ = 0;  // joined chunks have no more than a chunk of such a slice
};

}  // namespace

Chunking equal_but_at_the_ends(std::int32_t chunks) {
  Chunking out;
  out.weights.assign(to_index(chunks), 10);
  for (std::int32_t i = 0; i < std::min(out.window, chunks); ++i)
    out.weights[to_index(i)] = 10 * (i + 1) / out.window;
  if (chunks <= 3) return out;
  out.weights[to_index(chunks - 2)] = 7;
  out.weights[to_index(chunks - 1)] = 4;
  return out;
}

void emit_trees(Plan& plan, const Commodities& commodities, const Symmetry& symmetry,
                const RankRoutes& routes, const Packing& packing, const Chunking& chunking,
                const Say& say) {
  keep_own(plan, commodities.demand(), say);
  TreeEmitter(plan, commodities, symmetry, routes, packing, chunking).run(say);
}

}  // namespace reshard
