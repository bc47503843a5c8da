// SPDX-License-Identifier: BSD-3-Clause
// Flat buffers: tensors flattened one after another, and cut evenly among the ranks of a mesh.
#include <limits>

#include "core/base/errors.h"
#include "core/stored/generators.h"

namespace reshard {

void add_flat(Stored& to, const FlatBuffer& buffer) {
  if (buffer.tensors.empty()) throw InputError("flat: expected at least one tensor, found none");
  const ModelTensors& tensors = to.tensors();
  DType dtype = buffer.dtype.value_or(tensors[buffer.tensors.front()].dtype);
  std::vector<std::int64_t> begins;
  std::int64_t total = 0;
  auto round_up = [&](std::int64_t multiple) {
    total = ceil_div(total, multiple) * multiple;
    if (total > kMaxBytes / 2) throw InputError("flat: expected at most 2^61 elements, found more");
  };
  for (ModelTensorId id : buffer.tensors) {
    round_up(buffer.align);
    begins.push_back(total);
    total += element_count(tensors[id].shape);
  }
  round_up(buffer.pad);
  round_up(buffer.mesh->size());
  const std::int64_t share = total / buffer.mesh->size();
  for (std::int32_t position = 0; position < buffer.mesh->size(); ++position) {
    StoredBuffer out{buffer.mesh->rank_at(position), buffer.name, {share}, dtype, {}};
    out.converts = buffer.dtype.has_value();
    out.mesh = buffer.mesh;
    StridedView own{position * share, {share}, {1}};
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const Shape& shape = tensors[buffer.tensors[i]].shape;
      std::vector<Meeting> meetings;
      std::int64_t budget = std::numeric_limits<std::int64_t>::max();  // an interval is one run
      find_meetings(own, {begins[i], shape, row_major(shape)}, budget, meetings);
      for (const Meeting& meeting : meetings)
        out.parts.push_back({buffer.tensors[i], meeting.box, meeting.position, meeting.weights});
    }
    if (share > 0) to.add(std::move(out));
  }
}

}  // namespace reshard
