// SPDX-License-Identifier: BSD-3-Clause
#include "core/schedule/host_operations.h"

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/bytes/box_copy.h"
#include "core/bytes/box_fold.h"

namespace reshard {
namespace {

void check_apart(const Place& from, const Place& to) {
  RESHARD_CHECK(from.buffer != to.buffer || from.slot != to.slot,
                fmt::format("buffer {} is written from itself", to_index(from.buffer)));
}

}  // namespace

void HostOperations::copy(const Place& from, const Place& to, const DimVector& extents) {
  check_apart(from, to);
  Shape source = shape(from, extents), destination = shape(to, extents);
  std::byte* out = write(to);
  copy_box(out, {destination, to.lo}, read(from), {source, from.lo}, extents,
           size_bytes(dtype(to.buffer)));
  count(to, extents);
}

void HostOperations::fill(const Place& to, const DimVector& extents) {
  Shape whole = shape(to, extents);
  clear_box(write(to), {whole, to.lo}, extents, size_bytes(dtype(to.buffer)));
  count(to, extents);
}

void HostOperations::fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands,
                          const Place& to, const DimVector& extents) {
  Shape whole = shape(to, extents);
  BoxFold fold(write(to), whole, to.lo, extents);
  for (const Place& operand : operands) {
    check_apart(operand, to);
    fold.add_operand(read(operand), shape(operand, extents), operand.lo);
  }
  fold.run(op, dtype(to.buffer), divisor);
  count(to, extents);
}

void HostOperations::count(const Place& to, const DimVector& extents) {
  written_bytes_ += element_count(extents) * size_bytes(dtype(to.buffer));
}

}  // namespace reshard
