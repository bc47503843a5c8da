// SPDX-License-Identifier: BSD-3-Clause
// Every box that a destination cell needs is cut by all boxes of both sides that meet it. A part
// that several destination cells need is kept where the first of them is cut. Cutting along one dim
// also cuts boxes that end in another; those are joined again.
#include "core/demand/box_items.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/layout/box_index.h"

namespace reshard {
namespace {

// The boxes of all cells of a layout, each cell once.
struct CellBoxes {
  explicit CellBoxes(const Layout& layout) : positions(to_index(layout.cell_count())) {
    for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
      std::vector<std::int32_t>& of_cell = positions[to_index(layout.cell_of(position))];
      of_cell.push_back(position);
      if (of_cell.size() > 1) continue;
      layout.for_each_part(position, [&](const Box& box, const DimVector& local_lo) {
        boxes.push_back(box);
        cells.push_back(layout.cell_of(position));
        DimVector& shift = shifts.emplace_back(box.dims());
        for (int d = 0; d < box.dims(); ++d) shift[d] = local_lo[d] - box.lo[d];
      });
    }
  }

  std::vector<std::vector<std::int32_t>> positions;  // by cell
  std::vector<Box> boxes;
  std::vector<std::int64_t> cells;  // by box
  std::vector<DimVector> shifts;    // by box: from global to local indices
};

// Numbers of boxes: first those of the source, then those of the destination.
using Meeting = std::vector<std::size_t>;

class Refinement {
 public:
  Refinement(const Request& request, const std::vector<Slot>& source_slot,
             const std::vector<Slot>& destination_slot)
      : request_(request),
        source_slot_(source_slot),
        destination_slot_(destination_slot),
        source_(request.source()),
        destination_(request.destination()),
        sources_(source_.boxes),
        destinations_(destination_.boxes) {}

  BoxItems take() {
    for (first_ = 0; first_ < destination_.boxes.size(); ++first_) {
      Meeting meeting;
      const Box& box = destination_.boxes[first_];
      sources_.for_each_meeting(box, [&](std::size_t i) { meeting.push_back(i); });
      destinations_.for_each_meeting(
          box, [&](std::size_t i) { meeting.push_back(source_.boxes.size() + i); });
      std::sort(meeting.begin(), meeting.end());
      found_.clear();
      cut(box, 0, meeting);
      join_found();
    }
    std::sort(out_.boxes.begin(), out_.boxes.end(),
              [](const EndedBox& a, const EndedBox& b) { return a.box < b.box; });
    number_by_first_box();
    return std::move(out_);
  }

 private:
  const Box& box_of_number(std::size_t i) const {
    std::size_t sources = source_.boxes.size();
    return i < sources ? source_.boxes[i] : destination_.boxes[i - sources];
  }

  // All of `meeting` contain `box` in the dims before `dim`.
  void cut(const Box& box, int dim, const Meeting& meeting) {
    if (dim == box.dims()) return keep(box, meeting);
    std::vector<std::int64_t> cuts{box.lo[dim], box.hi[dim]};
    for (std::size_t i : meeting)
      for (std::int64_t at : {box_of_number(i).lo[dim], box_of_number(i).hi[dim]})
        if (box.lo[dim] < at && at < box.hi[dim]) cuts.push_back(at);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    Meeting waiting = meeting, inside;  // those that begin later, last first; those that contain
    std::sort(waiting.begin(), waiting.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(box_of_number(a).lo[dim], a) > std::pair(box_of_number(b).lo[dim], b);
    });
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
      std::erase_if(inside, [&](std::size_t i) { return box_of_number(i).hi[dim] <= cuts[k]; });
      for (; !waiting.empty() && box_of_number(waiting.back()).lo[dim] <= cuts[k];
           waiting.pop_back())
        inside.insert(std::upper_bound(inside.begin(), inside.end(), waiting.back()),
                      waiting.back());
      Box slab = box;
      slab.lo[dim] = cuts[k];
      slab.hi[dim] = cuts[k + 1];
      cut(slab, dim + 1, inside);
    }
  }

  void keep(const Box& box, const Meeting& meeting) {
    auto needed = std::partition_point(meeting.begin(), meeting.end(),
                                       [&](std::size_t i) { return i < source_.boxes.size(); });
    // Otherwise it has been kept.
    if (*needed - source_.boxes.size() == first_) found_.push_back({box, ends_of(meeting)});
  }

  std::int32_t ends_of(const Meeting& meeting) {
    auto [at, is_new] = numbers_.try_emplace(meeting, static_cast<std::int32_t>(out_.ends.size()));
    if (!is_new) return at->second;
    BoxEnds ends;
    ends.holders.resize(to_index(request_.fold().addend_count));
    for (std::size_t i : meeting) {
      bool source = i < source_.boxes.size();
      const CellBoxes& side = source ? source_ : destination_;
      std::size_t box = source ? i : i - source_.boxes.size();
      for (std::int32_t position : side.positions[to_index(side.cells[box])]) {
        if (!source) {
          ends.destinations.push_back({destination_slot_[to_index(position)], side.shifts[box]});
          continue;
        }
        std::int64_t addend = request_.addend_of(position);
        ends.sources.push_back({source_slot_[to_index(position)], side.shifts[box], addend});
        ends.holders[to_index(addend)].push_back(position);
      }
    }
    for (std::vector<std::int32_t>& positions : ends.holders)
      std::sort(positions.begin(), positions.end());
    for (std::vector<ShardPlace>* places : {&ends.sources, &ends.destinations})
      std::sort(places->begin(), places->end(),
                [](const ShardPlace& a, const ShardPlace& b) { return a.slot < b.slot; });
    for (const ShardPlace& place : ends.destinations) ends.needing.push_back(place.slot);
    out_.ends.push_back(std::move(ends));
    return at->second;
  }

  // Joins boxes with the same ends that follow each other along a dim.
  void join_found() {
    int dims = request_.shape().size();
    for (int d = 0; d < dims && found_.size() > 1; ++d) {
      auto others = [d](const EndedBox& of) {
        Box out = of.box;
        out.lo[d] = out.hi[d] = 0;
        return out;
      };
      auto key = [&](const EndedBox& of) { return std::tuple(of.ends, others(of), of.box.lo[d]); };
      std::sort(found_.begin(), found_.end(),
                [&](const EndedBox& a, const EndedBox& b) { return key(a) < key(b); });
      std::vector<EndedBox> joined;
      for (EndedBox& each : found_) {
        bool follows = !joined.empty() && joined.back().ends == each.ends &&
                       others(joined.back()) == others(each) &&
                       joined.back().box.hi[d] == each.box.lo[d];
        if (follows)
          joined.back().box.hi[d] = each.box.hi[d];
        else
          joined.push_back(each);
      }
      found_ = std::move(joined);
    }
    out_.boxes.insert(out_.boxes.end(), found_.begin(), found_.end());
  }

  void number_by_first_box() {
    std::vector<std::int32_t> number(out_.ends.size(), -1);
    std::vector<BoxEnds> ordered;
    for (EndedBox& box : out_.boxes) {
      std::int32_t& to = number[to_index(box.ends)];
      if (to < 0) {
        to = static_cast<std::int32_t>(ordered.size());
        ordered.push_back(std::move(out_.ends[to_index(box.ends)]));
      }
      box.ends = to;
    }
    out_.ends = std::move(ordered);
  }

  const Request& request_;
  const std::vector<Slot>&source_slot_, &destination_slot_;
  CellBoxes source_, destination_;
  BoxIndex sources_, destinations_;
  std::size_t first_ = 0;  // the destination's box that is being cut
  std::vector<EndedBox> found_;
  std::map<Meeting, std::int32_t> numbers_;
  BoxItems out_;
};

}  // namespace

const ShardPlace* place_of(const std::vector<ShardPlace>& places, Slot slot) {
  auto at = std::lower_bound(places.begin(), places.end(), slot,
                             [](const ShardPlace& place, Slot of) { return place.slot < of; });
  return at != places.end() && at->slot == slot ? &*at : nullptr;
}

DimVector local_index(const std::vector<ShardPlace>& places, Slot slot, DimVector lo) {
  const ShardPlace* place = place_of(places, slot);
  RESHARD_CHECK(place != nullptr, "a rank that does not have the box");
  int leading = lo.size() - place->shift.size();
  for (int d = 0; d < place->shift.size(); ++d) lo[leading + d] += place->shift[d];
  return lo;
}

BoxItems box_items(const Request& request, const std::vector<Slot>& source_slot,
                   const std::vector<Slot>& destination_slot, std::size_t slots) {
  BoxItems out = Refinement(request, source_slot, destination_slot).take();
  out.needed.resize(slots);
  for (std::size_t i = 0; i < out.boxes.size(); ++i)
    for (Slot slot : out.ends[to_index(out.boxes[i].ends)].needing)
      out.needed[to_index(slot)].push_back(static_cast<std::int32_t>(i));
  return out;
}

}  // namespace reshard
