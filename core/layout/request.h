// SPDX-License-Identifier: BSD-3-Clause
// A request: a tensor has the layout `source` and is to have the layout `destination`; and what
// that means element by element.
//
// Without Partial, destination element i is source element i. Along a Partial(op) axis of the
// source each coordinate holds one *addend* of every element; the addend index of a rank is its
// row-major coordinate over all Partial axes of the source, 0 .. addend_count-1, and ranks that
// differ only along other axes hold the same addends. If both meshes have the same shape, their
// axes correspond one to one, and per axis:
//
//   P(op) -> R or S    the addends along the axis are folded
//   P(op) -> P(op)     the addend stays at its coordinate
//   R     -> P(sum)    the value is divided by the axis size; avg, min, max: the value is kept
//   S(d)  -> P(sum)    a *zero axis*: the shards are the addends. An element is zero except on
//                      ranks with the coordinate that the element's holders have in the source
//
// Axes of meshes of different shape do not correspond: every source Partial is folded, and every
// destination Partial is made from the folded value. avg folds like sum and divides once by the
// axis size. All divisions of a request are combined into one divisor. The operator that one side
// folds with can differ from the one of the other side: for minima and maxima dividing before is
// the same as dividing after; for a product it is not, and a product is never divided.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/digest.h"
#include "core/layout/layout.h"

namespace reshard {

// Which axes of a request are folded, kept or zero, and what the result is divided by.
struct FoldMeaning {
  // Operator of every fold; Sum for avg. If nothing is folded, that of the destination's Partial
  // axes, if there are any.
  ReduceOp op = ReduceOp::Sum;
  // Product of the sizes of the source's Partial axes; 1 if there are none.
  std::int64_t addend_count = 1;
  // Every destination element is its fold divided by this: the sizes of folded avg axes and of
  // R->P(sum) axes, multiplied. 1: no division.
  std::int64_t divisor = 1;
  // The Partial axes of the source, ascending, and whether each is folded (otherwise it is kept).
  struct Axis {
    int axis;
    std::int32_t size;
    bool folded;
  };
  std::vector<Axis> axes;
  // Product of the sizes of the folded axes: the number of addends of one destination element.
  std::int64_t fold_count = 1;
  // Axes of more than one rank that go from S(d) to P(sum), ascending.
  std::vector<int> zero_axes;
};

class Request {
 public:
  // Throws InputError with the reason if shapes or dtypes differ, the source lacks elements
  // that the destination needs, or a transition is forbidden: S->P except S(d)->P(sum), P(a)->P(b),
  // R->P of product or a bitwise op, R->P(sum) of integers or of a folded product, mixed ops other
  // than sum with avg on one side, an op that the dtype does not have. On an axis of size 1 all
  // placements mean the same, and every transition is allowed.
  Request(Layout source, Layout destination, std::string name = {});

  const Layout& source() const { return source_; }
  const Layout& destination() const { return destination_; }
  const std::string& name() const { return name_; }  // for reports; not part of the identity
  Request named(std::string name) const {
    Request out = *this;
    out.name_ = std::move(name);
    return out;
  }
  // How many tensors it moves. More than one if it is the request of a series
  // (core/plan/series.h); the first dim of the shape then counts them.
  std::int64_t tensors() const { return tensors_; }
  // The request of a series of `count` tensors with this request, at least two. Nothing may be
  // folded, divided or made Partial. Throws InputError as Layout::stacked does.
  Request as_series(std::int64_t count) const;
  const Shape& shape() const { return source_.shape(); }
  DType dtype() const { return source_.dtype(); }
  // Both layouts have placements.
  bool is_product() const { return source_.is_product() && destination_.is_product(); }
  bool same_mesh() const { return source_.mesh() == destination_.mesh(); }
  const FoldMeaning& fold() const { return fold_; }

  // Addend index held by the rank at this position of the source mesh.
  std::int64_t addend_of(std::int32_t source_position) const;
  // The indices, ascending, of the addends that must be folded for the rank at this position of the
  // destination mesh.
  std::vector<std::int64_t> addends_wanted(std::int32_t destination_position) const;
  // Row-major coordinate over the zero axes, for a position of either mesh; 0 if there are none. A
  // destination rank has the values that source ranks of its zero coordinate hold.
  std::int64_t zero_coordinate(std::int32_t position) const;

  // Ranks of either mesh, ascending.
  const std::vector<Rank>& ranks() const { return ranks_; }
  // Identity: equal for equal layouts (names are ignored). Serves as the key of caches.
  const Digest& fingerprint() const { return fingerprint_; }
  // "f32[8,8] S(0)R on 2x2 -> RS(0)"; the destination mesh is named if it differs.
  std::string text() const;

 private:
  Layout source_, destination_;
  std::string name_;
  std::int64_t tensors_ = 1;
  FoldMeaning fold_;
  std::vector<Rank> ranks_;
  Digest fingerprint_;
};

// ---- Several requests that are moved together: a job

// The number of tensors of all requests; the tensors of a series are counted one by one.
std::int64_t tensor_count(std::span<const Request> requests);
// Ranks of any of them, ascending.
std::vector<Rank> ranks_of(std::span<const Request> requests);
// For a single request, its own; equal for lists of equal requests.
Digest fingerprint_of(std::span<const Request> requests);
// Request::text of each, with "; " between them; if there are many, only of the first few.
std::string text_of(std::span<const Request> requests);

// ---- Equal source shards, which share one allocation if all ranks' memory is in one process.

// Per position of the source mesh, the smallest position that holds the same elements of the same
// addend.
std::vector<std::int32_t> first_replicas(const Request& request);

// ---- A request from the texts that users write, on the command line and in the C API.

struct RequestTexts {
  // If empty: ranks 0..n-1, the destination's mesh is the source's, f32, a scalar shape.
  std::string mesh, ranks, to_mesh, to_ranks, shape, dtype, from, to;
};

// Throws InputError naming the field at fault, with `prefix` before its name ("--" makes it an
// option's).
Request parse_request(const RequestTexts& texts, std::string_view prefix = {});

}  // namespace reshard
