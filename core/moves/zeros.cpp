// SPDX-License-Identifier: BSD-3-Clause
#include "core/moves/zeros.h"

#include <algorithm>

#include "core/moves/linked_runs.h"
#include "core/moves/located.h"
#include "core/moves/messages.h"

namespace reshard {
namespace {

// The zeros of the rank at a position of the destination's mesh.
std::vector<Box> zeros_at(const TensorKind& kind, std::int32_t position, int plan_dims) {
  const Layout& layout = kind.request().destination();
  std::vector<Box> out;
  if (kind.product() == nullptr) {
    for (const Box& box : layout.padding(position)) out.push_back(plan_box(box, plan_dims));
    return out;
  }
  const ZeroAxes& zero_axes = kind.product()->zero_axes;
  if (zero_axes.none()) return out;
  MeshCoordinate coordinate = layout.mesh().coordinate(position);
  LinkedRuns values(kind.dims());
  for (int d = 0; d < kind.dims(); ++d)
    each_shared(zero_axes.runs(d, zero_axes.share_of(d, coordinate)), layout.runs(d, position),
                [&](std::int64_t share_lo, std::int64_t own_lo, std::int64_t size) {
                  values.add(d, share_lo, own_lo, size);
                });
  values.push_rest(layout.local_shape(position), 0, out);
  for (Box& box : out) box = plan_box(box, plan_dims);
  return out;
}

}  // namespace

FillStep zeros_of(const Demand& demand) {
  FillStep out;
  for (const TensorKind& kind : demand.kinds()) {
    if (kind.product() != nullptr && kind.product()->zero_axes.none()) continue;
    for (std::size_t position = 0; position < kind.destination_slot.size(); ++position) {
      std::vector<Box> zeros = zeros_at(kind, static_cast<std::int32_t>(position), demand.dims());
      for (TensorId tensor : kind.tensors)
        add_fills(out, kind.destination_slot[position], destination_of(tensor), zeros);
    }
  }
  std::stable_sort(out.parts.begin(), out.parts.end(),
                   [](const auto& a, const auto& b) { return a.slot < b.slot; });
  return out;
}

const char* zeros_text(const Demand& demand) {
  for (const TensorKind& kind : demand.kinds())
    if (kind.product() != nullptr && !kind.product()->zero_axes.none())
      return "S -> P(sum): zeros for elements that other ranks hold";
  return "zeros in the padding of shards";
}

}  // namespace reshard
