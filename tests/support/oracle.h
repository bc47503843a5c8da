// SPDX-License-Identifier: BSD-3-Clause
// The oracle: what every rank holds, computed element by element from the definitions of the
// placements, slowly and obviously. It shares no code with core/layout beyond the plain data of a
// Layout (shape, mesh, placements, shard order), none with the planners, and none with the store's
// arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/layout/request.h"
#include "core/pattern/pattern.h"

namespace reshard::test {

// The global row-major indices of the elements that the rank at `position` holds, in local
// row-major order; -1 for padding. For each dim a literal list of indices is cut axis by axis:
// Shard takes the rank's chunk of the list (torch.chunk); _StridedShard chunks the list into
// split_factor pieces and joins the rank's chunk of each.
std::vector<std::int64_t> held_elements(const Layout& layout, std::int32_t position);

// The placement of an axis; of explicit boxes, which hold values, Replicate.
Placement placement_of(const Layout& layout, int axis);

// held_elements of every position.
class LayoutOracle {
 public:
  explicit LayoutOracle(const Layout& layout);
  const std::vector<std::int64_t>& elements(std::int32_t position) const {
    return elements_[static_cast<std::size_t>(position)];
  }

 private:
  std::vector<std::vector<std::int64_t>> elements_;
};

// Left fold of little-endian element bits in the given order, rounded to the dtype after every
// operation, then divided once. Floating values are computed in a wider type and rounded by hand.
std::uint64_t folded(ReduceOp op, DType dtype, std::int64_t divisor,
                     const std::vector<std::uint64_t>& operands);

// For f64, f32, f16 and bf16; false for all other dtypes.
bool is_nan(DType dtype, std::uint64_t bits);

// All bytes of one request: the source shards at the start, and the destination shards at the end.
class RequestOracle {
 public:
  // The global tensors of all addends hold the pattern's values.
  RequestOracle(const Request& request, const Pattern& pattern);

  // The shard of the rank at a position of the source or destination mesh; `elements` comes from
  // LayoutOracle.
  std::vector<std::byte> source(std::int32_t position,
                                const std::vector<std::int64_t>& elements) const;
  std::vector<std::byte> destination(std::int32_t position,
                                     const std::vector<std::int64_t>& elements) const;

  // Which addends a destination rank folds, and what divides the result: from the table in
  // core/layout/request.h, axis by axis.
  std::vector<std::int64_t> addends_of_destination(std::int32_t position) const;
  // Whether a destination rank has the value of an element. It does not if S becomes P(sum) along
  // an axis on which the element's source ranks have other coordinates.
  bool has_value(std::int32_t position, std::int64_t element) const;
  std::int64_t divisor() const { return divisor_; }

 private:
  void find_held();
  const std::vector<std::uint64_t>& fold_of(const std::vector<std::int64_t>& wanted) const;
  std::vector<std::byte> cut(const std::vector<std::uint64_t>& tensor,
                             const std::vector<std::int64_t>& elements) const;

  const Request& request_;
  ReduceOp op_ = ReduceOp::Sum;
  std::int64_t divisor_ = 1, addend_count_ = 1;
  bool axes_correspond_;
  std::vector<int> zero_axes_;  // S -> P(sum)
  // Per zero axis, the coordinate of every element's source ranks.
  std::vector<std::vector<std::int64_t>> holds_;
  std::vector<std::vector<std::uint64_t>> addends_;  // one global tensor per addend
  // Folded global tensors by the addends that they fold, computed when first needed.
  mutable std::deque<std::pair<std::vector<std::int64_t>, std::vector<std::uint64_t>>> folded_;
};

}  // namespace reshard::test
