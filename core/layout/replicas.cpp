// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/replicas.h"

namespace reshard {

std::vector<std::int32_t> first_replicas(const Request& request) {
  const Layout& layout = request.source();
  const Mesh& mesh = layout.mesh();
  // A shard is named by its piece of every dim and its addend. Their product counts no axis twice,
  // so it is at most the number of ranks.
  IndexVector<std::int64_t, std::int32_t> first(to_index(mesh.size()), -1), out;
  out.reserve(first.size());
  for (std::int32_t position = 0; position < mesh.size(); ++position) {
    MeshCoordinate coordinate = mesh.coordinate(position);
    std::int64_t name = request.addend_of(position);
    for (int dim = 0; dim < layout.dims(); ++dim)
      name = name * layout.pieces(dim).count() + layout.piece_of(dim, coordinate);
    std::int32_t& holder = first[name];
    if (holder < 0) holder = position;
    out.push_back(holder);
  }
  return out;
}

}  // namespace reshard
