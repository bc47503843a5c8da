// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/random_offsets.h"

#include <algorithm>
#include <array>

#include "core/base/integers.h"

namespace reshard::sim {
namespace {

// The generator produces numbers in blocks of four.
std::int64_t whole_blocks(std::int64_t count) { return ceil_div(count, 4) * 4; }

// Number of elements of the first shard. For a dim that several axes shard, only the last of them
// counts, as in PyTorch's tracker: shards then leave gaps, but still do not overlap.
std::int64_t first_shard(const TensorSpec& spec, const Mesh& mesh) {
  Shape local = spec.meta.shape;
  for (std::size_t axis = 0; axis < spec.placements.size(); ++axis)
    if (spec.placements[axis].is_shard_like()) {
      int dim = spec.placements[axis].dim;
      local[dim] = ceil_div(spec.meta.shape[dim], mesh.shape()[axis]);
    }
  return element_count(local);
}

// The shard number of a position, row-major over the tensor's dims; axes that shard the same dim
// count in their order.
std::int64_t shard_of(const TensorSpec& spec, const Mesh& mesh, std::int32_t position) {
  MeshCoordinate at = mesh.coordinate(position);
  std::int64_t out = 0;
  for (int dim = 0; dim < spec.meta.shape.size(); ++dim)
    for (std::size_t axis = 0; axis < spec.placements.size(); ++axis)
      if (spec.placements[axis].is_shard_like() && spec.placements[axis].dim == dim)
        out = out * mesh.shape()[axis] + at[axis];
  return out;
}

}  // namespace

bool is_random(std::string_view name) {
  constexpr std::array<std::string_view, 10> kStarts{
      "bernoulli",      "exponential_", "geometric_", "log_normal_",      "multinomial",
      "native_dropout", "normal_",      "rand",       "rrelu_with_noise", "uniform_"};
  return !name.starts_with("native_dropout_backward") &&
         !name.starts_with("rrelu_with_noise_backward") &&
         std::any_of(kStarts.begin(), kStarts.end(),
                     [&](std::string_view start) { return name.starts_with(start); });
}

RandomOffsets random_offsets(const TensorSpec& spec, const Mesh& mesh) {
  RandomOffsets out;
  std::int64_t each = first_shard(spec, mesh);
  for (std::int32_t position = 0; position < mesh.size(); ++position)
    out.starts.push_back(whole_blocks(shard_of(spec, mesh, position) * each));
  out.after = whole_blocks(element_count(spec.meta.shape));
  return out;
}

}  // namespace reshard::sim
