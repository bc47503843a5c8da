// SPDX-License-Identifier: BSD-3-Clause
// The digest of the elements of a view in the order of their index: it depends on their values and
// not on where they are in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/stored/view.h"
#include "sim/digest/digest64.h"

namespace reshard::sim {

class ViewDigester {
 public:
  // The XXH3-64 of the first `most_bytes` of the elements of a view, which must not be empty,
  // row-major by its index. Elements that are contiguous in that order are read in place by one
  // call.
  std::uint64_t digest(std::span<const std::byte> memory, const StridedView& view,
                       std::int64_t element_bytes,
                       std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max());
  // The digest of `bytes` bytes of zeros.
  std::uint64_t zeros(std::int64_t bytes);

 private:
  void add(std::span<const std::byte> piece);
  std::uint64_t take();

  Hasher64 hasher_;
  std::vector<std::byte> gathered_;  // short pieces that are not hashed yet
  std::vector<std::byte> across_;    // rows with distant elements
  std::int64_t left_ = 0;            // bytes left until the limit
};

}  // namespace reshard::sim
