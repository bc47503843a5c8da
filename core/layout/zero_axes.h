// SPDX-License-Identifier: BSD-3-Clause
// Which elements S(d) -> P(sum) leaves with values and which it makes zero (request.h).
//
// Per dim, the source pieces with the same coordinates along the zero axes form a *share*. A
// destination rank's coordinates give one share per dim; it has the values of their product and
// zeros for all other elements. A dim that no zero axis cuts is one share.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout/request.h"

namespace reshard {

class ZeroAxes {
 public:
  explicit ZeroAxes(const Request& request);

  // No zero axis: every element has its value.
  bool none() const { return none_; }
  // The share of `dim` that gives a rank at this coordinate of either mesh its values. A 0-d tensor
  // has one dim with one share.
  std::int64_t share_of(int dim, const MeshCoordinate& coordinate) const;
  // The share that a source piece of `dim` belongs to.
  std::int64_t share_of_piece(int dim, std::int64_t piece) const {
    const std::vector<std::int64_t>& shares = dims_[to_index(dim)].of_piece;
    return shares.empty() ? 0 : shares[to_index(piece)];
  }
  std::int64_t share_count(int dim) const { return dims_[to_index(dim)].runs.count(); }
  // The global indices of `dim` that the share holds.
  Runs runs(int dim, std::int64_t share) const { return dims_[to_index(dim)].runs.runs(share); }
  // The number of elements of a box, in global indices, that have values at this coordinate. The
  // box can have dims of extent 1 before those of the tensor.
  std::int64_t values_in(const Box& box, const MeshCoordinate& coordinate) const;

 private:
  struct Axis {
    int axis;
    std::int32_t size;
  };
  struct Dim {
    std::vector<Axis> axes;              // zero axes that cut it, outermost first
    PieceTable runs;                     // by share
    std::vector<std::int64_t> of_piece;  // empty if no zero axis cuts it
  };
  static Dim one_share(std::int64_t length);
  static Dim shares_of(const Layout& source, int dim, const std::vector<int>& zero_axes);

  std::vector<Dim> dims_;
  bool none_;
};

}  // namespace reshard
