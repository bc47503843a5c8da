// SPDX-License-Identifier: BSD-3-Clause
// The values of a trace's tensors on every rank, and the calls computed on them.
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

// A tensor's values on all ranks of its mesh, cut from a whole tensor and assembled again.

struct Sharded {
  TensorSpec spec;
  MeshRef mesh;
  std::vector<Array> shards;  // by position in the mesh
};

Layout layout_of(const TensorSpec& spec, const MeshRef& mesh);

// Each rank's part of the array that `whole` returns for the coordinates along partial axes, which
// are numbered in row-major order.
Sharded cut(const TensorSpec& spec, const MeshRef& mesh,
            const std::function<Array(std::int64_t addend)>& whole);

// The whole tensor: addends folded, parts in their places. If copies of a part are not equal,
// `differ` is a rank with a different one.
struct Whole {
  Array array;
  std::optional<Rank> differ;
};
Whole assemble(const Sharded& sharded);

// Coordinates of an element of a whole tensor, numbered row-major; and the first rank that has a
// part of it.
Shape index_of(std::int64_t element, const Shape& shape);
Rank holder_of(const Sharded& sharded, std::int64_t element);

// By element of the whole tensor: whether none of its addends is finite; empty if nothing is
// summed.
std::vector<bool> endless_addends(const Sharded& sharded);

using PlanOf = std::function<std::shared_ptr<const Plan>(const Request& request)>;
// The values after a redistribution, moved by a plan through the store. Indices that a look-up
// wants masked stay whole.
Sharded moved(const Sharded& from, const OpPlacements& to, const PlanOf& plan_of);

// Writes the elements of `from`, at the places in shared memory given by `written`, to those
// elements of `to` that have the same places by `view`; on every rank. Throws InputError if the
// dtypes differ.
void write_through(const Sharded& from, const MemoryView& written, Sharded& to,
                   const MemoryView& view);

// Values of a tensor that a trace declares, on every rank. Floating dtypes get numbers from -2 to 2
// in odd multiples of 1/64, which bf16 represents exactly, so that nothing is divided by zero;
// integers are from -8 to 8, or in the range given by `below`; or all get `value`. The addends of a
// partial tensor differ: in a sum exactly one is odd, so that the sum is not zero; each has its
// share of a `value` that is summed; with `below` the first has everything.
Sharded declared(const OperatorLine& line);

// Look-ups in a tensor sharded along the looked-up dim: each rank has its own range of indices.

// The indices of a look-up that a rank has: those of its part of the sharded dim.
struct Mask {
  std::int64_t lo = 0, hi = 0;
  std::vector<bool> others;  // by element of the index: another rank has it
};

// Null if nothing is masked.
const OpPlacement* mask_of(const OpPlacements& placements);
// The part of the looked-up dim at a position of the mesh, if the index is masked.
Mask mask_at(const OpPlacements& index, const MeshRef& mesh, std::int32_t position);
// Indices into the rank's part; those of other ranks point to its first element and are noted in
// the mask.
Array shifted(const Array& index, Mask& mask);
// Clears the results of other ranks' indices; the dims of the index are the first dims of the
// output.
void clear_others(const Mask& mask, Array& output);

// Checks the values of a trace's calls: every tensor on every rank, redistributed by plans through
// the store, with each rank running the operator on its own shards; each call's outputs are
// assembled and compared with the operator on the whole tensors.
//
// Two results agree if they are equal or, for floating dtypes, differ by no more than
//
//   eps * (16 + L) * (|expected| + largest |expected| of the tensor)
//
// where eps is that of the coarsest floating dtype among output and inputs (2^-23 for f32) and L is
// the number of elements of the largest input per element of the output: sums in another order. NaN
// equals NaN. A linear operator on addends is right even if infinite ones cancel, as when a sum is
// multiplied by infinity: NaN in place of infinity agrees if all addends are infinite or NaN.

// The effort of check_values, roughly in operations, and the limit above which it is left out:
// about a minute.
std::int64_t values_effort(const DispatchReport& report);
inline constexpr std::int64_t kMostValuesEffort = 200'000'000'000;

// Progress: `done` calls of `total`.
using OnCall = std::function<void(std::int64_t done, std::int64_t total)>;

// A call's assembled output.
using OnOutput =
    std::function<void(const DispatchedCall& call, std::size_t output, const Array& whole)>;

// Counts what is compared; a mismatch becomes a finding that names the operator, the rank and the
// element. A value is kept until the last line that names it. Throws InputError for what cannot be
// computed.
void check_values(const Trace& trace, DispatchReport& report, const PlanOf& plan_of,
                  const OnCall& on_call = {}, const OnOutput& on_output = {});

}  // namespace reshard::sim
