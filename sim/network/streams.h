// SPDX-License-Identifier: BSD-3-Clause
// A workload's order: where its operations stand in the streams of their ranks, and who waits for
// whom. An operation has one *place* per rank with a part in it; a message to its own rank and
// stream has one.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/grouped.h"
#include "core/schedule/workload.h"

namespace reshard::sim {

struct Streams {
  struct Place {
    std::int32_t op;
    std::int32_t next = -1;  // the place after it on the stream; -1 at the end
  };

  explicit Streams(const Workload& workload);

  std::int32_t first_of(std::size_t op) const { return first_[op]; }
  std::int32_t end_of(std::size_t op) const { return first_[op + 1]; }

  std::vector<Place> places;         // operation after operation
  std::vector<Rank> ranks;           // by place
  Grouped<std::int32_t> dependents;  // by operation: those that name it in `after`

 private:
  void add_places(const Workload& workload);
  void link(const Workload& workload);

  std::vector<std::int32_t> first_;  // place, by operation; one more at the end
};

}  // namespace reshard::sim
