// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/steps/staging_buffers.h"

namespace reshard {

StagingBuffers::StagedBox StagingBuffers::take(TensorId tensor, std::int64_t first, Slot slot,
                                               std::int32_t stage, std::int32_t chunk, int dim,
                                               const DimVector& extents) {
  Form form{static_cast<std::int64_t>(tensor), first, stage, chunk, dim};
  for (int d = 0; d < extents.size(); ++d)
    if (d != dim) form.push_back(extents[d]);
  auto [at, is_new] = buffers_.try_emplace(std::move(form), BufferId{});
  if (is_new) at->second = plan_.add_temporary(tensor, first);
  Buffer& buffer = plan_.buffer(at->second);
  StagedBox place{at->second, DimVector(extents.size())};
  Shape shape = extents;
  if (buffer.exists(slot)) {
    place.lo[dim] = buffer.extent(slot, dim);
    shape[dim] += place.lo[dim];
  }
  buffer.set_shape(slot, shape);
  return place;
}

}  // namespace reshard
