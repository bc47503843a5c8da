// SPDX-License-Identifier: BSD-3-Clause
// Records what everything in a run waited for.
//
// Time passes only in *waits*: a transfer, from the instant at which both its ends are ready to its
// last byte, and a compute. Everything else happens at the instant at which a wait ends. So every
// wait begins at 0 or when another one ends, namely the last one that its parts, places and
// operation waited for, and from the last end of a run a chain without gaps leads back to 0: the
// critical path. If several waits ended together, the lowest by (operation, step, source,
// destination) counts, so the result does not depend on the order of processing within an instant.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/ids.h"

namespace reshard::sim {

struct Sleep;
struct Transit;

struct Wait {
  OpId op;
  std::int32_t step;         // of the plan; -1 if there is none
  Rank source, destination;  // both are the rank of a compute
  std::int32_t after;        // the wait that ended when it began; -1: at 0
  std::int32_t transfer;     // number in the order of transfers' beginnings; -1: compute
  std::int64_t start_ps, moving_ps = 0;  // moving_ps: when a transfer's latency is over
  std::int64_t end_ps = 0;
  std::int64_t cap_bytes_per_s =
      std::numeric_limits<std::int64_t>::max();  // of the transit's terms
};

class WaitLog {
 public:
  // Beyond this many waits (about 1 GB) nothing more is recorded and there is no chain.
  static constexpr std::size_t kMaxWaits = std::size_t{1} << 24;
  static constexpr std::int32_t kNone = -1;

  // Return the wait's number. `after`: what the transfer waited for; `flow`: identifies it in
  // end().
  std::int32_t begin(const Transit& transit, std::int32_t after, std::int32_t flow,
                     std::int64_t now_ps, std::int64_t latency_ps);
  std::int32_t begin(const Sleep& sleep, std::int64_t now_ps);
  // The end of a compute has moved.
  void move_end(std::int32_t wait, std::int64_t end_ps) {
    if (wait != kNone) waits_[to_index(wait)].end_ps = end_ps;
  }
  // The flow has arrived; returns its wait.
  std::int32_t end(std::int32_t flow, std::int64_t now_ps);

  // Sets `last` to the later of `last` and `ended`, which have both ended.
  void keep_later(std::int32_t& last, std::int32_t ended) const;

  // The waits from 0 to the last end, each beginning when the previous one ends; empty if there are
  // none or the log was full.
  std::vector<Wait> chain() const;
  bool full() const { return full_; }

 private:
  std::int32_t add(const Wait& wait);
  bool before(const Wait& a, const Wait& b) const;

  std::vector<Wait> waits_;
  IndexVector<std::int32_t, std::int32_t> of_flow_;
  std::int32_t transfers_ = 0;
  bool full_ = false;
};

}  // namespace reshard::sim
