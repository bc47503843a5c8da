// SPDX-License-Identifier: BSD-3-Clause
#include "core/demand/demand.h"

#include <algorithm>
#include <map>

#include "core/base/errors.h"

namespace reshard {
namespace {

Slot slot_in(const std::vector<Rank>& ranks, Rank rank) {
  auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  RESHARD_CHECK(at != ranks.end() && *at == rank, "a rank that is not in the job");
  return static_cast<Slot>(at - ranks.begin());
}

std::vector<Slot> slots_of(const Mesh& mesh, const std::vector<Rank>& ranks) {
  std::vector<Slot> out;
  out.reserve(mesh.ranks().size());
  for (Rank rank : mesh.ranks()) out.push_back(slot_in(ranks, rank));
  return out;
}

TensorKind::Product product_of(const TensorKind& kind, std::size_t slots) {
  const Request& request = kind.request();
  const Layout& layout = request.source();
  ZeroAxes zero_axes(request);
  std::vector<DimOverlap> overlaps = overlaps_of(request, zero_axes);
  TensorKind::Product out{std::move(zero_axes),
                          std::move(overlaps),
                          CellPositions(layout),
                          CellPositions(request.destination()),
                          {}};
  out.standings.resize(slots);
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
    MeshCoordinate coordinate = layout.mesh().coordinate(position);
    std::int32_t base = 0;
    for (int d = 0; d < layout.dims(); ++d)
      base += out.source.base(d, layout.piece_of(d, coordinate));
    out.standings[to_index(kind.source_slot[to_index(position)])] = {base,
                                                                     request.addend_of(position)};
  }
  return out;
}

}  // namespace

TensorKind::TensorKind(const Request& request, const std::vector<Rank>& ranks)
    : source_slot(slots_of(request.source().mesh(), ranks)),
      destination_slot(slots_of(request.destination().mesh(), ranks)),
      request_(&request) {
  if (request.is_product()) {
    product_ = product_of(*this, ranks.size());
    return;
  }
  boxes_ = std::make_shared<const BoxItems>(
      box_items(request, source_slot, destination_slot, ranks.size()));
  for (const BoxEnds& ends : boxes_->ends)
    for (const std::vector<std::int32_t>& positions : ends.holders) sets_.push_back(&positions);
}

std::int64_t TensorKind::item_count(std::int64_t most) const {
  if (boxes_) return std::min(most + 1, static_cast<std::int64_t>(boxes_->boxes.size()));
  std::int64_t count = 1;
  for (const DimOverlap& overlap : product_->overlaps) {
    std::int64_t here = 0;
    for (std::int64_t piece = 0; piece < overlap.destination_pieces(); ++piece)
      here += static_cast<std::int64_t>(overlap.of(piece, 0).size());
    if (here * count > most) return most + 1;
    count *= here;
  }
  return count;
}

std::size_t TensorKind::fewest_holders() const {
  std::size_t fewest = source_slot.size();
  if (!boxes_) return std::min(fewest, product_->source.replica_offsets().size());
  for (const std::vector<std::int32_t>* set : sets_) fewest = std::min(fewest, set->size());
  return fewest;
}

Demand::Demand(std::span<const Request> requests)
    : requests_(requests), ranks_(ranks_of(requests)), place_of_(ranks_.size(), -1) {
  std::map<Digest, std::size_t> known;
  for (std::size_t t = 0; t < requests.size(); ++t) {
    dims_ = std::max(dims_, requests[t].shape().size());
    auto [at, is_new] = known.try_emplace(requests[t].fingerprint(), kinds_.size());
    if (is_new) kinds_.emplace_back(requests[t], ranks_);
    kinds_[at->second].tensors.push_back(static_cast<TensorId>(t));
  }
  for (const TensorKind& kind : kinds_)
    for (const std::vector<Slot>* slots : {&kind.source_slot, &kind.destination_slot})
      for (Slot slot : *slots) {
        if (place_of_[to_index(slot)] >= 0) continue;
        place_of_[to_index(slot)] = static_cast<Slot>(slot_at_.size());
        slot_at_.push_back(slot);
      }
}

Slot Demand::slot_of(Rank rank) const { return slot_in(ranks_, rank); }

bool Demand::folds() const {
  return std::any_of(kinds_.begin(), kinds_.end(),
                     [](const TensorKind& kind) { return kind.folds(); });
}

}  // namespace reshard
