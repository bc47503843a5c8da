// SPDX-License-Identifier: BSD-3-Clause
#include "core/demand/items.h"

namespace reshard {

Items::Items(const TensorKind& kind) : kind_(kind) {
  const Request& request = kind.request();
  if (kind.product() == nullptr) {
    // No axis is kept, so all ranks need all addends.
    needs_.push_back({{}, request.addends_wanted(0), {}});
    return;
  }
  const TensorKind::Product& product = *kind.product();
  const Mesh& mesh = request.destination().mesh();
  for (std::int32_t replica : product.destination.replica_offsets())
    for (std::int32_t partial : product.destination.addend_offsets()) {
      std::int64_t key = 0;
      MeshCoordinate coordinate = mesh.coordinate(replica + partial);
      for (const FoldMeaning::Axis& axis : request.fold().axes)
        if (!axis.folded) key = key * axis.size + coordinate[to_index(axis.axis)];
      for (int axis : request.fold().zero_axes)
        key = key * mesh.axis_size(axis) + coordinate[to_index(axis)];
      if (to_index(key) >= needs_.size()) needs_.resize(to_index(key) + 1);
      Need& need = needs_[to_index(key)];
      if (need.offsets.empty()) need.addends = request.addends_wanted(replica + partial);
      for (int d = 0; d < kind.dims(); ++d)
        need.shares[to_index(d)] = product.zero_axes.share_of(d, coordinate);
      need.offsets.push_back(replica + partial);
    }
}

}  // namespace reshard
