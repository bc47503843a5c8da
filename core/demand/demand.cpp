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

}  // namespace

TensorKind::TensorKind(const Request& request, const std::vector<Rank>& ranks)
    : zero_axes(request),
      overlaps(overlaps_of(request, zero_axes)),
      source_cells(request.source()),
      destination_cells(request.destination()),
      source_slot(slots_of(request.source().mesh(), ranks)),
      destination_slot(slots_of(request.destination().mesh(), ranks)),
      request_(&request),
      standings_(ranks.size()) {
  const Layout& layout = request.source();
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
    MeshCoordinate coordinate = layout.mesh().coordinate(position);
    std::int32_t base = 0;
    for (int d = 0; d < layout.dims(); ++d)
      base += source_cells.base(d, layout.piece_of(d, coordinate));
    standings_[to_index(source_slot[to_index(position)])] =
        Standing{base, request.addend_of(position)};
  }
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
