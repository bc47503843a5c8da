// SPDX-License-Identifier: BSD-3-Clause
// A tensor's values on all ranks of its mesh, cut from a whole tensor and put together again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/call.h"
#include "core/plan/plan.h"
#include "sim/operators/array.h"

namespace reshard::sim {

struct Sharded {
  TensorSpec spec;
  MeshRef mesh;
  std::vector<Array> shards;  // by position in the mesh
};

Layout layout_of(const TensorSpec& spec, const MeshRef& mesh);

// Each rank's part of what `whole` gives for the coordinates along partial axes, in row-major
// order of these.
Sharded cut(const TensorSpec& spec, const MeshRef& mesh,
            const std::function<Array(std::int64_t addend)>& whole);

// The whole tensor: addends folded, parts in their places. `differ` is set where copies of one part
// are not the same: which rank has another.
struct Whole {
  Array array;
  std::optional<Rank> differ;
};
Whole assemble(const Sharded& sharded);

// Coordinates of an element of a whole tensor, which is counted row-major; the first rank that has
// a part of it.
Shape index_of(std::int64_t element, const Shape& shape);
Rank holder_of(const Sharded& sharded, std::int64_t element);

using PlanOf = std::function<std::shared_ptr<const Plan>(const Request& request)>;
// The values as they lie after a redistribution, moved by a plan through the store. Indices that a
// look-up wants masked stay whole.
Sharded moved(const Sharded& from, const OpPlacements& to, const PlanOf& plan_of);

}  // namespace reshard::sim
