// SPDX-License-Identifier: BSD-3-Clause
// What operations mean in host memory: the store, MPI and the C API run these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/schedule/lowering.h"

namespace reshard {

class HostOperations : public Operations {
 public:
  void copy(const Place& from, const Place& to, const DimVector& extents) final;
  void fill(const Place& to, const DimVector& extents) final;
  void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands, const Place& to,
            const DimVector& extents) final;

  std::int64_t written_bytes() const { return written_bytes_; }

 private:
  // Of the buffer: where it begins, its shape, which holds the box, and its dtype.
  virtual const std::byte* read(const Place& from) const = 0;
  virtual std::byte* write(const Place& to) = 0;
  virtual Shape shape(const Place& place, const DimVector& extents) const = 0;
  virtual DType dtype(BufferId buffer) const = 0;
  void count(const Place& to, const DimVector& extents);

  std::int64_t written_bytes_ = 0;
};

}  // namespace reshard
