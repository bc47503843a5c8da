// SPDX-License-Identifier: BSD-3-Clause
#include "sim/exports/direct_moves.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard::sim {
namespace {

bool is_direct(const Move& move) {
  TensorId tensor{static_cast<std::int32_t>(to_index(move.source) / 2)};
  return move.source == source_of(tensor) && move.destination == destination_of(tensor);
}

template <class Body>
bool all_direct(const Plan& plan, const Body& body) {
  for (std::size_t i = 0; i < body.moves.size(); ++i) {
    Move move = body.moves[i];
    if (to_index(move.source) >= 2 * plan.tensors.size() || !is_direct(move)) return false;
  }
  return true;
}

// Whether the step only writes padding, in shards that represent stored parts.
bool fills_padding(const Plan& plan, const FillStep& fill) {
  return std::all_of(fill.parts.begin(), fill.parts.end(), [&](const FillStep::SlotFill& part) {
    return plan.buffer(part.buffer).role() == BufferRole::Destination &&
           !plan.request(part.buffer).is_product();
  });
}

bool has_partial(const Layout& layout) {
  const std::vector<Placement>& placements = layout.placements();
  return std::any_of(placements.begin(), placements.end(),
                     [](const Placement& placement) { return placement.is_partial(); });
}

// A box in the dims of a plan, without the leading ones.
Box without_leading(const Box& box, int dims) {
  Box out;
  for (int d = box.dims() - dims; d < box.dims(); ++d) {
    out.lo.push_back(box.lo[d]);
    out.hi.push_back(box.hi[d]);
  }
  return out;
}

StridedView cut(StridedView view, const Box& of, const Box& to) {
  for (int d = 0; d < view.dims(); ++d) view.offset += (to.lo[d] - of.lo[d]) * view.strides[d];
  view.extents = to.extents();
  return view;
}

}  // namespace

void check_direct(const Plan& plan, std::string_view format) {
  for (const Request& request : plan.tensors)
    if (has_partial(request.source()) || has_partial(request.destination()))
      throw InputError(fmt::format("--emit {}: expected tensors without Partial, found {}", format,
                                   request.text()));
  for (const Step& step : plan.steps) {
    const FillStep* fill = fill_of(step);
    bool direct = fill != nullptr ? fills_padding(plan, *fill)
                  : copy_of(step) ? all_direct(plan, *copy_of(step))
                                  : exchange_of(step) && all_direct(plan, *exchange_of(step));
    if (!direct)
      throw InputError(fmt::format(
          "--emit {}: expected a plan that copies every element once, from source to destination, "
          "found a step that is none (by {}; --planner p2p makes one where nothing is folded)",
          format, plan.planner));
  }
}

std::string_view BufferPlaces::name_of(TensorId tensor) {
  auto [found, is_new] = names_.try_emplace(tensor);
  if (is_new) found->second = export_name(input_.plan, tensor);
  return found->second;
}

// What a place has lies in parts of the tensor's layout.
void BufferPlaces::add_place(Shard& shard, const Layout& layout, std::int32_t position,
                             StoredPlace place, std::string_view name) {
  layout.for_each_part(position, [&](const Box& box, const DimVector& local_lo) {
    Box local = intersect(box_at(local_lo, box.extents()), place.local);
    if (local.empty()) return;
    DimVector lo = box.lo;
    for (int d = 0; d < lo.size(); ++d) lo[d] += local.lo[d] - local_lo[d];
    shard.places.push_back({local, place.buffer, cut(place.view, place.local, local)});
    shard.names.push_back(name);
    shard.parts.push_back({box_at(lo, local.extents()), local.lo});
  });
}

const BufferPlaces::Shard& BufferPlaces::shard(BufferId buffer, Rank rank) {
  auto [found, is_new] = shards_.try_emplace({buffer, rank});
  Shard& out = found->second;
  if (!is_new) return out;
  const Plan& plan = input_.plan;
  TensorId tensor = plan.buffer(buffer).tensor();
  bool source = plan.buffer(buffer).role() == BufferRole::Source;
  const Request& request = plan.request(tensor);
  const Layout& layout = source ? request.source() : request.destination();
  std::int32_t position = layout.mesh().position_of(rank).value();
  if (input_.stored != nullptr) {
    const Stored& side = source ? input_.stored->source() : input_.stored->destination();
    for (StoredPlace& place : source ? input_.stored->source_places(tensor, rank)
                                     : input_.stored->destination_places(tensor, rank))
      add_place(out, layout, position, place, side.buffers()[place.buffer].name);
  } else {
    Box all = box_of(layout.local_shape(position));
    add_place(out, layout, position, {all, {}, view_of(all, all.hi)}, name_of(tensor));
  }
  std::vector<Box> boxes;
  for (const StoredPlace& place : out.places) boxes.push_back(place.local);
  out.index.emplace(std::move(boxes));
  return out;
}

std::vector<MovePiece> BufferPlaces::pieces_of(Rank from, Rank to, const Move& move) {
  const Shard &source = shard(move.source, from), &destination = shard(move.destination, to);
  const Request& request = input_.plan.request(move.source);
  int dims = request.shape().size();
  Box read = without_leading(box_at(move.source_lo, move.extents), dims),
      written = without_leading(box_at(move.destination_lo, move.extents), dims);
  std::vector<MovePiece> out;
  source.index->for_each_meeting(read, [&](std::size_t i) {
    Box held = intersect(source.places[i].local, read);
    Box wanted = held;
    for (int d = 0; d < dims; ++d) {
      wanted.lo[d] += written.lo[d] - read.lo[d];
      wanted.hi[d] += written.lo[d] - read.lo[d];
    }
    destination.index->for_each_meeting(wanted, [&](std::size_t k) {
      Box to_box = intersect(destination.places[k].local, wanted), from_box = to_box;
      Box global = to_box;
      for (int d = 0; d < dims; ++d) {
        from_box.lo[d] += read.lo[d] - written.lo[d];
        from_box.hi[d] += read.lo[d] - written.lo[d];
        std::int64_t shift = destination.parts[k].box.lo[d] - destination.parts[k].local_lo[d];
        global.lo[d] += shift;
        global.hi[d] += shift;
      }
      out.push_back({source.names[i], destination.names[k],
                     cut(source.places[i].view, source.places[i].local, from_box),
                     cut(destination.places[k].view, destination.places[k].local, to_box), global,
                     input_.plan.element_bytes(move.source)});
    });
  });
  return out;
}

}  // namespace reshard::sim
