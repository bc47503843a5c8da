// SPDX-License-Identifier: BSD-3-Clause
// The meaning of operations in host memory: the store, MPI and the C API run these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/bytes/box_copy.h"
#include "core/bytes/box_fold.h"
#include "core/schedule/lowering.h"

namespace reshard {

// `Memory` derives from this and provides, for a buffer, its first byte, its shape (which must hold
// the box) and its dtype: read(Place), write(Place), shape(Place, extents), dtype(BufferId). They
// are not virtual, because they are called at least once for every box of a plan.
template <class Memory>
class HostOperations : public Operations {
 public:
  void copy(const Place& from, const Place& to, const DimVector& extents) final {
    check_apart(from, to);
    const Shape &source = memory().shape(from, extents), &whole = memory().shape(to, extents);
    std::byte* out = memory().write(to);
    std::int64_t element_bytes = size_bytes(memory().dtype(to.buffer));
    copy_box(out, {whole, to.lo}, memory().read(from), {source, from.lo}, extents, element_bytes);
    written_bytes_ += element_count(extents) * element_bytes;
  }

  void fill(const Place& to, const DimVector& extents) final {
    const Shape& whole = memory().shape(to, extents);
    std::int64_t element_bytes = size_bytes(memory().dtype(to.buffer));
    clear_box(memory().write(to), {whole, to.lo}, extents, element_bytes);
    written_bytes_ += element_count(extents) * element_bytes;
  }

  void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands, const Place& to,
            const DimVector& extents) final {
    const Shape& whole = memory().shape(to, extents);
    BoxFold fold(memory().write(to), whole, to.lo, extents);
    for (const Place& operand : operands) {
      check_apart(operand, to);
      const Shape& shape = memory().shape(operand, extents);
      fold.add_operand(memory().read(operand), shape, operand.lo);
    }
    DType dtype = memory().dtype(to.buffer);
    fold.run(op, dtype, divisor);
    written_bytes_ += element_count(extents) * size_bytes(dtype);
  }

  std::int64_t written_bytes() const { return written_bytes_; }

 private:
  Memory& memory() { return static_cast<Memory&>(*this); }
  static void check_apart(const Place& from, const Place& to) {
    RESHARD_CHECK(from.buffer != to.buffer || from.slot != to.slot,
                  fmt::format("buffer {} is written from itself", to_index(from.buffer)));
  }

  std::int64_t written_bytes_ = 0;
};

}  // namespace reshard
