// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/locations.h"

namespace reshard {

std::optional<Location> location_of(const Stored& side, Rank rank, ModelTensorId tensor,
                                    const DimVector& index) {
  for (Stored::PartId id : side.parts_of(rank, tensor)) {
    const StoredPart& part = side[id];
    Location out{id.buffer, part.offset};
    bool inside = true;
    for (int d = 0; d < index.size(); ++d) {
      inside = inside && part.box.lo[d] <= index[d] && index[d] < part.box.hi[d];
      out.offset += (index[d] - part.box.lo[d]) * part.strides[d];
    }
    if (inside) return out;
  }
  return std::nullopt;
}

}  // namespace reshard
