// SPDX-License-Identifier: BSD-3-Clause
// Loads sources, moves pieces, and checks reads, single writes and destinations.
#include "core/proof/symbolic_memory.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/schedule/lowering.h"

namespace reshard {
namespace {

[[noreturn]] void refute_end(std::string what) { throw Refuted{{std::nullopt, std::move(what)}}; }

// The parts of one rank under a layout, as pairs of (local box, shift) in the plan's dims. Dims
// that the layout lacks come first.
template <class Visit>
void for_each_local_box(const Layout& layout, std::int32_t position, int dims, Visit&& visit) {
  int leading = dims - layout.dims();
  layout.for_each_part(position, [&](const Box& part, const DimVector& local_lo) {
    Box box{DimVector(leading, 0), DimVector(leading, 1)};
    DimVector shift(leading, 0);
    for (int d = 0; d < layout.dims(); ++d) {
      box.lo.push_back(local_lo[d]);
      box.hi.push_back(local_lo[d] + part.extent(d));
      shift.push_back(part.lo[d] - local_lo[d]);
    }
    visit(box, shift);
  });
}

bool meet(const Box& a, const Box& b) { return !intersect(a, b).empty(); }

// Finds the first part of a step (see Refutation) that writes into a box on a rank.
class WriterSearch : public Operations {
 public:
  WriterSearch(Slot slot, BufferId buffer, const Box& box)
      : slot_(slot), buffer_(buffer), box_(box) {}

  void copy(const Place&, const Place& to, const DimVector& extents) override { look(to, extents); }
  void fill(const Place& to, const DimVector& extents) override { look(to, extents); }
  void fold(ReduceOp, std::int64_t, std::span<const Place>, const Place& to,
            const DimVector& extents) override {
    look(to, extents);
  }
  void part(std::size_t index) override { part_ = index; }
  std::optional<std::size_t> found() const { return found_; }

 private:
  void look(const Place& to, const DimVector& extents) {
    if (!found_ && to.slot == slot_ && to.buffer == buffer_ && meet(box_at(to.lo, extents), box_))
      found_ = part_;
  }

  Slot slot_;
  BufferId buffer_;
  const Box& box_;
  std::size_t part_ = 0;
  std::optional<std::size_t> found_;
};

std::optional<std::size_t> part_that_writes(const Plan& plan, StepId step, Slot slot,
                                            BufferId buffer, const Box& box) {
  WriterSearch search(slot, buffer, box);
  lower(plan, plan.steps[step], search);
  return search.found();
}

}  // namespace

SymbolicMemory::SymbolicMemory(const Plan& plan, Order order)
    : plan_(plan),
      order_(order == Order::Listed ? std::nullopt : std::optional<StepOrder>(plan)),
      contents_(plan.buffers.size() * plan.slot_count()) {
  load_sources();
}

// Tensors of equal requests share what their sources have.
void SymbolicMemory::load_sources() {
  std::map<Digest, TensorId> known;
  for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
    TensorId tensor{static_cast<std::int32_t>(t)};
    const Request& request = plan_.request(tensor);
    TensorId like = known.try_emplace(request.fingerprint(), tensor).first->second;
    if (like != tensor && plan_.request(like).source() == request.source()) {
      for (Rank rank : request.source().mesh().ranks()) {
        Slot slot = plan_.slot_of(rank);
        contents(source_of(tensor), slot) = contents(source_of(like), slot);
      }
      continue;
    }
    std::map<std::int64_t, FoldId> fold_of;
    for (std::int32_t position = 0; position < request.source().mesh().size(); ++position) {
      Slot slot = plan_.slot_of(request.source().mesh().rank_at(position));
      std::int64_t addend = request.addend_of(position);
      auto [fold, added] = fold_of.try_emplace(addend, 0);
      if (added) fold->second = folds_.of({addend}, 1);
      FoldId id = fold->second;
      for_each_local_box(request.source(), position, plan_.dims(),
                         [&](const Box& box, const DimVector& shift) {
                           put(source_of(tensor), slot, {box, shift, id, -1});
                         });
    }
  }
}

void SymbolicMemory::refute(const std::string& what) const {
  throw Refuted{{StepId{step_},
                 fmt::format("step {} ({}) {}", step_, kind_text(plan_.steps[step_]), what),
                 part_}};
}

void SymbolicMemory::put(BufferId buffer, Slot slot, const KnownBox& piece) {
  if (++pieces_ > kMaxProofPieces)
    throw InputError(
        "proof: expected at most 2^25 boxes, found more (use fewer ranks or another planner)");
  ContentsRef& held = contents(buffer, slot);
  if (!held) held = std::make_shared<Contents>(plan_.dims());
  if (held.use_count() > 1) held = std::make_shared<Contents>(*held);
  held->write(piece);
}

void SymbolicMemory::move(KnownBox& piece, const DimVector& from, const DimVector& to) const {
  for (int d = 0; d < plan_.dims(); ++d) {
    std::int64_t by = to[d] - from[d];
    piece.box.lo[d] += by;
    piece.box.hi[d] += by;
    piece.shift[d] -= by;
  }
  piece.writer = step_;
}

KnownBox SymbolicMemory::moved(KnownBox piece, const DimVector& from, const DimVector& to) const {
  move(piece, from, to);
  return piece;
}

void SymbolicMemory::write(BufferId buffer, Slot slot, KnownBox piece, const DimVector& from,
                           const DimVector& to) {
  move(piece, from, to);
  put(buffer, slot, piece);
}

void SymbolicMemory::write_on_all(BufferId buffer, std::span<const Slot> group,
                                  const std::shared_ptr<Contents>& result) {
  for (Slot slot : group) {
    ContentsRef& held = contents(buffer, slot);
    if (!held)
      held = result;
    else
      for (std::size_t i = 0; i < result->size(); ++i) put(buffer, slot, result->piece(i));
  }
}

void SymbolicMemory::check_order(BufferId buffer, Slot slot, const KnownBox& piece) const {
  if (piece.writer < 0 ||
      (order_ ? order_->ordered(slot, piece.writer, step_) : piece.writer < step_ + reads_own_))
    return;
  refute(fmt::format(
      "reads buffer {} on rank {}, which step {} writes, without being ordered after it",
      static_cast<std::int32_t>(buffer), rank(slot), piece.writer));
}

void SymbolicMemory::check_covered(BufferId buffer, Slot slot, const Box& box,
                                   std::int64_t covered) const {
  if (covered >= box.volume()) return;
  refute(fmt::format("reads {} of buffer {} on rank {}, of which {} elements were never written",
                     text(box), static_cast<std::int32_t>(buffer), rank(slot),
                     box.volume() - covered));
}

void SymbolicMemory::check_single_writes() const {
  std::set<const Contents*> seen;
  for (std::size_t i = 0; i < contents_.size(); ++i) {
    if (!contents_[i] || (contents_[i].use_count() > 1 && !seen.insert(contents_[i].get()).second))
      continue;
    auto overlap = contents_[i]->first_overlap();
    if (!overlap) continue;
    KnownBox a = contents_[i]->piece(overlap->first), b = contents_[i]->piece(overlap->second);
    auto slot = static_cast<Slot>(i % plan_.slot_count());
    StepId later{std::max(a.writer, b.writer)};
    Box both = intersect(a.box, b.box);
    BufferId buffer{static_cast<std::int32_t>(i / plan_.slot_count())};
    throw Refuted{
        {later,
         fmt::format("step {} writes {} of buffer {} on rank {}, which step {} writes too",
                     to_index(later), text(both), to_index(buffer), rank(slot),
                     std::min(a.writer, b.writer)),
         part_that_writes(plan_, later, slot, buffer, both)}};
  }
}

// The fold that a destination rank must hold.
FoldId SymbolicMemory::wanted(const Request& request, std::int32_t position) {
  return folds_.of(request.addends_wanted(position), request.fold().divisor);
}

void SymbolicMemory::check_destinations() {
  for (std::size_t t = 0; t < plan_.tensors.size(); ++t)
    check_destination(TensorId{static_cast<std::int32_t>(t)});
}

void SymbolicMemory::check_destination(TensorId tensor) {
  const Request& request = plan_.request(tensor);
  const Layout& layout = request.destination();
  BufferId buffer = destination_of(tensor);
  ZeroAxes zero_axes(request);
  // Ranks that agree on the kept Partial axes want the same fold.
  std::map<std::int64_t, FoldId> wanted_of;
  // Ranks with the same contents that want the same index set and zeros are checked once.
  std::set<std::pair<const Contents*, std::array<std::int64_t, 3>>> seen;
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
    Slot slot = plan_.slot_of(layout.mesh().rank_at(position));
    ContentsRef held = contents(buffer, slot);
    // Nothing overlaps by now, so equal volumes mean that every element is there.
    std::int64_t missing = plan_.buffer(buffer).elements(slot) - (held ? held->volume() : 0);
    if (missing != 0)
      refute_end(fmt::format("{} elements of the destination on rank {} are never written", missing,
                             rank(slot)));
    if (!held) continue;
    MeshCoordinate coordinate = layout.mesh().coordinate(position);
    std::int64_t kept = 0;
    for (const FoldMeaning::Axis& axis : request.fold().axes)
      if (!axis.folded) kept = kept * axis.size + coordinate[to_index(axis.axis)];
    auto [want, added] = wanted_of.try_emplace(kept, 0);
    if (added) want->second = wanted(request, position);
    FoldId fold = want->second;
    if (held.use_count() > 2) {
      std::array<std::int64_t, 3> key{fold, request.zero_coordinate(position),
                                      layout.cell_of(position)};
      if (!seen.emplace(held.get(), key).second) continue;
    }
    for_each_local_box(layout, position, plan_.dims(), [&](const Box& box, const DimVector& shift) {
      check_box(*held, tensor, slot, box, shift, {fold, zero_axes, coordinate});
    });
    check_padding(*held, tensor, slot, position);
  }
}

void SymbolicMemory::check_padding(const Contents& held, TensorId tensor, Slot slot,
                                   std::int32_t position) const {
  for (const Box& padding : plan_.request(tensor).destination().padding(position)) {
    held.read(plan_box(padding, plan_.dims()), [&](const KnownBox& piece) {
      if (piece.fold == kPadding) return;
      StepId writer{piece.writer};
      throw Refuted{{writer,
                     fmt::format("{} of the destination on rank {} is padding, and not zero",
                                 text(piece.box), rank(slot)),
                     part_that_writes(plan_, writer, slot, destination_of(tensor), piece.box)}};
    });
  }
}

void SymbolicMemory::check_box(const Contents& held, TensorId tensor, Slot slot, const Box& box,
                               const DimVector& shift, const Want& want) const {
  held.read(box, [&](const KnownBox& piece) {
    // A wrong value is reported for the step that wrote it.
    auto wrong = [&](std::string what) {
      StepId writer{piece.writer};
      throw Refuted{{writer, std::move(what),
                     part_that_writes(plan_, writer, slot, destination_of(tensor), piece.box)}};
    };
    auto here = [&] {
      return fmt::format("{} of the destination on rank {}", text(piece.box), rank(slot));
    };
    std::int64_t volume = piece.box.volume(), values = volume;
    if (!want.zero_axes.none())
      values = want.zero_axes.values_in(shifted(piece.box, shift), want.coordinate);
    if (piece.fold == kPadding && values == 0) return;
    if (piece.fold < 0) wrong("padding reaches " + here());
    if (values < volume) wrong(here() + " is not zero everywhere that S->P(sum) requires");
    if (piece.shift != shift)
      wrong(fmt::format("{} holds the elements at {} instead of {}", here(),
                        text(shifted(piece.box, piece.shift)), text(shifted(piece.box, shift))));
    if (piece.fold != want.fold)
      wrong(here() + " is not the complete fold that the request defines");
  });
}

}  // namespace reshard
