// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/lost_ranks.h"

#include <map>

#include "core/base/errors.h"
#include "core/demand/demand.h"

namespace reshard::sim {
namespace {

// Calls visit(request, box that some rank needs, source positions that hold it). Equal requests
// have the boxes in common.
template <class Visit>
void for_each_needed_box(std::span<const Request> requests, Visit&& visit) {
  Demand demand(requests);
  for (const TensorKind& kind : demand.kinds()) {
    RESHARD_CHECK(kind.boxes() != nullptr, "requests of explicit boxes");
    for (const EndedBox& box : kind.boxes()->boxes)
      for (TensorId tensor : kind.tensors)
        visit(to_index(tensor), box.box, kind.boxes()->ends[to_index(box.ends)].holders.front());
  }
}

void add_lost(std::vector<LostTensor>& to, const Request& request, const Box& box) {
  if (to.empty() || to.back().name != request.name()) to.push_back({request.name(), 0, box});
  to.back().elements += box.volume();
}

}  // namespace

std::vector<LostRank> lost_without_each(std::span<const Request> requests) {
  std::map<Rank, std::map<std::size_t, std::vector<LostTensor>>> lost;
  for_each_needed_box(
      requests, [&](std::size_t r, const Box& box, const std::vector<std::int32_t>& holders) {
        if (holders.size() == 1)
          add_lost(lost[requests[r].source().mesh().rank_at(holders.front())][r], requests[r], box);
      });
  std::vector<LostRank> out;
  for (auto& [rank, by_request] : lost) {
    LostRank& own = out.emplace_back(LostRank{rank, {}, 0});
    for (auto& [request, tensors] : by_request)
      for (LostTensor& tensor : tensors) {
        own.bytes += tensor.elements * size_bytes(requests[request].dtype());
        own.tensors.push_back(std::move(tensor));
      }
  }
  return out;
}

}  // namespace reshard::sim
