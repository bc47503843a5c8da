// SPDX-License-Identifier: BSD-3-Clause
// The values of a trace's tensors on every rank, and the calls that are worked out on them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/layout/mesh.h"
#include "core/ops/call.h"
#include "core/plan/plan.h"
#include "sim/dispatch/dispatch.h"
#include "sim/operators/array.h"
#include "sim/trace/operator_line.h"

namespace reshard::sim {

// A tensor's values on all ranks of its mesh, cut from a whole tensor and put together again.

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

// By element of the whole tensor whether none of its addends is finite; empty where none are
// summed.
std::vector<bool> endless_addends(const Sharded& sharded);

using PlanOf = std::function<std::shared_ptr<const Plan>(const Request& request)>;
// The values as they lie after a redistribution, moved by a plan through the store. Indices that a
// look-up wants masked stay whole.
Sharded moved(const Sharded& from, const OpPlacements& to, const PlanOf& plan_of);

// What `from` holds, whose elements lie in shared memory as `written` says, into those of `to` that
// lie there too, as `view` says; both on every rank. Throws InputError for tensors of two dtypes.
void write_through(const Sharded& from, const MemoryView& written, Sharded& to,
                   const MemoryView& view);

// What the tensors that a trace declares hold on every rank. Of floating dtypes numbers from -2 to
// 2 in odd multiples of 1/64, which bf16 holds, so that nothing is divided by zero; integers from
// -8 to 8, or what `below` says; or `value` everywhere. Addends of a partial tensor differ: of a
// sum one is odd, so that the sum is not zero; of a `value` that is summed each has its share; of
// what has a `below` the first has all.
Sharded declared(const OperatorLine& line);

// Look-ups in a tensor that is cut along the dim looked up in: each rank knows its own indices.

// Which indices of a look-up a rank has: those of its part of the dim that is cut.
struct Mask {
  std::int64_t lo = 0, hi = 0;
  std::vector<bool> others;  // by element of the index
};

// Null where nothing is masked.
const OpPlacement* mask_of(const OpPlacements& placements);
// Of a position in the mesh the part of the looked-up dim, where the index is masked.
Mask mask_at(const OpPlacements& index, const MeshRef& mesh, std::int32_t position);
// Indices into the rank's part; those of others point to its first, and are noted in the mask.
Array shifted(const Array& index, Mask& mask);
// What came of others' indices is theirs to say: the index's dims lead those of the output.
void clear_others(const Mask& mask, Array& output);

// The values of a trace's calls: every tensor on every rank, redistributed by plans through the
// store, worked on by each rank with the operator on its own shards; and each call's outputs, put
// together, beside the operator on the whole tensors.
//
// Two results agree where they are equal, or for floating dtypes differ by no more than
//
//   eps * (16 + L) * (|expected| + largest |expected| of the tensor)
//
// with eps that of the coarsest floating dtype among output and inputs (2^-23 of f32) and L as many
// elements of the largest input as stand behind one of the output: sums in another order. NaN
// equals NaN. A linear operator on addends is right though infinite ones cancel, as where a sum is
// multiplied by infinity: NaN for an infinity agrees where all addends are infinite or NaN.

// What that takes, roughly in operations; and as much as people wait for, about a minute.
std::int64_t values_effort(const DispatchReport& report);
inline constexpr std::int64_t kMostValuesEffort = 200'000'000'000;

// `done` calls of `total`.
using OnCall = std::function<void(std::int64_t done, std::int64_t total)>;

// A call's output, put together.
using OnOutput =
    std::function<void(const DispatchedCall& call, std::size_t output, const Array& whole)>;

// Counts what is compared; what is wrong becomes a finding that names the operator, the rank and
// the element. A value is held until the last line that names it. Throws InputError for what cannot
// be computed.
void check_values(const Trace& trace, DispatchReport& report, const PlanOf& plan_of,
                  const OnCall& on_call = {}, const OnOutput& on_output = {});

}  // namespace reshard::sim
