// SPDX-License-Identifier: BSD-3-Clause
#include "core/bytes/box_fold.h"

#include "core/bytes/box_copy.h"
#include "core/bytes/fold_row.h"

namespace reshard {

void BoxFold::run(ReduceOp op, DType dtype, std::int64_t divisor) const {
  using Offsets = std::vector<std::int64_t>;
  std::vector<BoxPlace> places;
  places.reserve(places_.size());
  for (const Place& place : places_) places.push_back({place.shape, place.lo});
  BoxRows<Offsets> rows(Offsets(places.size()), places, extents_, size_bytes(dtype));
  std::vector<const std::byte*> row(operands_.size());
  rows.for_each(0, [&](const Offsets& at) {
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = operands_[k] + at[k + 1];
    fold_row(op, dtype, divisor, row, destination_ + at[0], rows.row_bytes / size_bytes(dtype));
  });
}

}  // namespace reshard
