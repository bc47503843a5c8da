// SPDX-License-Identifier: BSD-3-Clause
// Where one rank's temporaries lie in one allocation, so that memory is used again as soon as a
// temporary has been read for the last time.
//
// First fit over the lives of the temporaries in listed order. An executor that runs steps in
// listed order may use the layout as it is. One that starts a step early must also honour `reuses`:
// there a temporary takes over memory of one that an unordered step may still read.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/schedule/accounting.h"

namespace reshard {

struct TemporaryLayout {
  // Offset in bytes per buffer; -1 where the rank does not have it, no step touches it, or it is no
  // temporary.
  std::vector<std::int64_t> offset;
  std::int64_t total_bytes = 0;
  // Every step that writes `taker` must wait for all steps that use `taken`; those come earlier in
  // the list.
  struct Reuse {
    BufferId taken, taker;
    friend bool operator==(const Reuse&, const Reuse&) = default;
  };
  std::vector<Reuse> reuses;
};

// `lives` as lives_of gives them for the plan. Offsets are multiples of `alignment` (a power of
// two, in bytes).
TemporaryLayout lay_out_temporaries(const Plan& plan, const Lives& lives, Slot slot,
                                    std::int64_t alignment);

}  // namespace reshard
