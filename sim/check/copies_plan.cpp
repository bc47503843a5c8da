// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/copies_plan.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/demand/demand.h"
#include "core/layout/box_index.h"
#include "core/moves/messages.h"
#include "core/moves/zeros.h"
#include "core/stored/stored_requests.h"

namespace reshard::sim {
namespace {

// Where a shard has boxes of the tensor.
class ShardIndex {
 public:
  ShardIndex(const Layout& layout, std::int32_t position)
      : parts_(parts_of(layout, position)), index_(boxes_of(parts_)) {}

  // Calls visit(box, where it begins in the shard) for what the shard has of a box.
  template <class Visit>
  void for_each(const Box& box, Visit&& visit) const {
    index_.for_each_meeting(box, [&](std::size_t i) {
      Box common = intersect(parts_[i].box, box);
      DimVector local_lo = parts_[i].local_lo;
      for (int d = 0; d < box.dims(); ++d) local_lo[d] += common.lo[d] - parts_[i].box.lo[d];
      visit(common, local_lo);
    });
  }

 private:
  static std::vector<Part> parts_of(const Layout& layout, std::int32_t position) {
    std::vector<Part> out;
    layout.for_each_part(position, [&](const Box& box, const DimVector& local_lo) {
      out.push_back({box, local_lo});
    });
    return out;
  }
  static std::vector<Box> boxes_of(const std::vector<Part>& parts) {
    std::vector<Box> out;
    for (const Part& part : parts) out.push_back(part.box);
    return out;
  }

  std::vector<Part> parts_;
  BoxIndex index_;
};

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

  const ShardIndex& shard(TensorId tensor, bool source, Rank rank) {
    auto [found, is_new] = shards_.try_emplace({{tensor, source}, rank});
    if (is_new) {
      const Request& request = plan_.request(tensor);
      const Layout& layout = source ? request.source() : request.destination();
      found->second.emplace(layout, layout.mesh().position_of(rank).value());
    }
    return *found->second;
  }

  const CheckedCopies& copies_;
  StoredRequests stored_;
  Plan plan_;
  MessageSorter remote_;
  LocalMoves local_;
  std::map<std::pair<std::pair<TensorId, bool>, Rank>, std::optional<ShardIndex>> shards_;
};

}  // namespace

Plan plan_of(const CheckedCopies& copies) {
  RESHARD_CHECK(copies.proved(), "copies that are right");
  if (!copies.judge->relays().empty())
    throw InputError("expected copies straight from source to destination, found relays");
  return CopiesPlanner(copies).run();
}

}  // namespace reshard::sim
