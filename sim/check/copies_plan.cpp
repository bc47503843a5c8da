// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/copies_plan.h"

#include <map>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/demand/demand.h"
#include "core/moves/messages.h"
#include "core/moves/zeros.h"
#include "core/stored/shard_boxes.h"
#include "core/stored/stored_requests.h"

namespace reshard::sim {
namespace {

class CopiesPlanner {
 public:
  explicit CopiesPlanner(const CheckedCopies& copies)
      : copies_(copies),
        stored_(*copies.source, *copies.destination),
        plan_(stored_.requests(), "given"),
        remote_(plan_.dims(), plan_.slot_count()),
        local_(plan_.dims(), plan_.slot_count()) {}

  Plan run() {
    copies_.judge->for_each_written([&](Stored::PartId part, const Box& box, Rank from,
                                        std::int64_t) { add(part, box, from); });
    if (FillStep zeros = zeros_of(Demand(stored_.requests())); !zeros.is_empty())
      plan_.add_step(std::move(zeros), {});
    if (!local_.empty()) plan_.add_step(local_.take(), {});
    if (!remote_.empty()) plan_.add_step(remote_.take(), {});
    return std::move(plan_);
  }

 private:
  void add(Stored::PartId part, const Box& written, Rank from) {
    TensorId tensor = stored_.written_by(part);
    Rank to = copies_.destination->buffers()[part.buffer].rank;
    Slot source = plan_.slot_of(from), destination = plan_.slot_of(to);
    Box box = written.dims() == 0 ? Box{{0}, {1}} : written;
    shard(tensor, true, from).for_each(box, [&](const Box& held, const DimVector& source_lo) {
      shard(tensor, false, to).for_each(held, [&](const Box& wanted, const DimVector& to_lo) {
        DimVector from_lo = source_lo;
        for (int d = 0; d < held.dims(); ++d) from_lo[d] += wanted.lo[d] - held.lo[d];
        Box read = plan_box(box_at(from_lo, wanted.extents()), plan_.dims());
        Move move{source_of(tensor), destination_of(tensor), read.lo,
                  plan_box(box_at(to_lo, wanted.extents()), plan_.dims()).lo, read.extents()};
        if (source == destination)
          local_.add(source, move);
        else
          remote_.add(source, destination, move);
      });
    });
  }

  const ShardBoxes& shard(TensorId tensor, bool source, Rank rank) {
    const Request& request = plan_.request(tensor);
    const Layout& layout = source ? request.source() : request.destination();
    return shards_.try_emplace({{tensor, source}, rank}, layout, rank).first->second;
  }

  const CheckedCopies& copies_;
  StoredRequests stored_;
  Plan plan_;
  MessageSorter remote_;
  LocalMoves local_;
  std::map<std::pair<std::pair<TensorId, bool>, Rank>, ShardBoxes> shards_;
};

}  // namespace

Plan plan_of(const CheckedCopies& copies) {
  RESHARD_CHECK(copies.proved(), "copies that are right");
  if (!copies.judge->relays().empty())
    throw InputError("expected copies straight from source to destination, found relays");
  return CopiesPlanner(copies).run();
}

}  // namespace reshard::sim
