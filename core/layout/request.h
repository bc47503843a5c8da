// SPDX-License-Identifier: BSD-3-Clause
// A request: this tensor lies like `source`, I want it like `destination`. And what that means
// element by element.
//
// Meaning. Without Partial, destination element i is source element i. A Partial(op) axis of the
// source holds one *addend* of every element per coordinate; the addend index of a rank is its
// row-major coordinate over all Partial axes of the source, 0 .. addend_count-1, and ranks that
// differ only along other axes hold the same addends. Where both meshes have the same shape their
// axes correspond one to one and per axis:
//
//   P(op) -> R or S    the addends along the axis are folded
//   P(op) -> P(op)     the addend stays with its coordinate
//   R     -> P(sum)    the value is divided by the axis size; avg, min, max: the value is kept
//   S(d)  -> P(sum)    a *zero axis*: the shards are the addends. An element is zero but where the
//                      rank stands on the axis as the element's holders do in the source
//
// Between meshes of different shape axes do not correspond: every source Partial is folded, every
// destination Partial is made from the folded value. avg folds like sum and divides once by the
// axis size. All divisions of one request are known here as one divisor. What one side folds and
// what the other makes may be of different operators: minima and maxima are not changed by dividing
// before instead of after; a product is, and is not divided.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest.h"
#include "core/layout/layout.h"

namespace reshard {

// What of a request is folded, kept, divided and zero.
struct FoldMeaning {
  // Operator of every fold; Sum for avg. Where nothing is folded that of the destination's Partial
  // axes, if it has any.
  ReduceOp op = ReduceOp::Sum;
  // Product of the sizes of the source's Partial axes; 1 without any.
  std::int64_t addend_count = 1;
  // Every destination element is its fold divided by this: folded avg axes and R->P(sum) axes. 1:
  // no division.
  std::int64_t divisor = 1;
  // Axes of the source that are Partial, ascending, and whether each is folded (else kept).
  struct Axis {
    int axis;
    std::int32_t size;
    bool folded;
  };
  std::vector<Axis> axes;
  // Product of the sizes of the folded axes: how many addends one destination element is the fold
  // of.
  std::int64_t fold_count = 1;
  // Axes of more than one rank that go from S(d) to P(sum), ascending.
  std::vector<int> zero_axes;
};

class Request {
 public:
  // Throws InputError where shape or dtype differ or a transition is forbidden, saying what and
  // why: S->P but S(d)->P(sum), P(a)->P(b), R->P of product or a bitwise op, R->P(sum) of integers
  // or of a folded product, mixed ops other than sum with avg on one side, an op the dtype does not
  // have. On an axis of size 1 all placements mean the same and every transition is allowed.
  Request(Layout source, Layout destination, std::string name = {});

  const Layout& source() const { return source_; }
  const Layout& destination() const { return destination_; }
  const std::string& name() const { return name_; }  // for reports; no part of the identity
  const Shape& shape() const { return source_.shape(); }
  DType dtype() const { return source_.dtype(); }
  bool same_mesh() const { return source_.mesh() == destination_.mesh(); }
  const FoldMeaning& fold() const { return fold_; }

  // Addend index held by the rank at this position of the source mesh.
  std::int64_t addend_of(std::int32_t source_position) const;
  // The addend indices, ascending, whose fold the rank at this position of the destination mesh
  // must end with.
  std::vector<std::int64_t> addends_wanted(std::int32_t destination_position) const;
  // Row-major coordinate over the zero axes, of a position of either mesh; 0 without zero axes. A
  // destination rank has the values of what source ranks of its zero coordinate hold.
  std::int64_t zero_coordinate(std::int32_t position) const;

  // Ranks of either mesh, ascending.
  const std::vector<Rank>& ranks() const { return ranks_; }
  // Identity: equal for equal layouts (not names). The key of caches.
  const Digest& fingerprint() const { return fingerprint_; }
  // "f32[8,8] S(0)R on 2x2 -> RS(0)"; the destination mesh is named where it differs.
  std::string text() const;

 private:
  Layout source_, destination_;
  std::string name_;
  FoldMeaning fold_;
  std::vector<Rank> ranks_;
  Digest fingerprint_;
};

// ---- Source shards that are the same: where all ranks' memory is in one place they share one
// allocation.

// Per position of the source mesh, the least position that holds the same elements of the same
// addend.
std::vector<std::int32_t> first_replicas(const Request& request);

// ---- A request from the texts that users write, on the command line and in the C API.

struct RequestTexts {
  // Empty: ranks 0..n-1, the destination's mesh is the source's, f32; an empty shape is a scalar.
  std::string mesh, ranks, to_mesh, to_ranks, shape, dtype, from, to;
};

// Throws InputError naming the field at fault, `prefix` before its name ("--" makes it the
// option's).
Request parse_request(const RequestTexts& texts, std::string_view prefix = {});

}  // namespace reshard
