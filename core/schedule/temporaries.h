// SPDX-License-Identifier: BSD-3-Clause
// Where one rank's temporaries lie in one allocation, so that memory is used again as soon as a
// temporary has been read for the last time.
//
// First fit over the lives of the temporaries in listed order. An executor that runs steps in
// listed order may use the layout as it is. One that starts a step early must also honour `reuses`:
// there a temporary takes over memory of one that an unordered step may still read.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/plan/plan.h"
#include "core/schedule/rank_schedule.h"

namespace reshard {

// First write and last access of every buffer on every slot, as steps in listed order: index buffer
// * slots + slot; -1 where no step writes it (the source) or touches it. After its last access an
// executor may free a temporary.
struct Lives {
  std::vector<std::int32_t> begin, end;
};
Lives lives_of(const Plan& plan);

// From the first that writes a buffer to the last that uses it, of whatever runs in listed order:
// steps of a plan or launches of a rank. `begin` -1: it needs no room.
struct BufferLife {
  std::int64_t bytes = 0;
  std::int32_t begin = -1, end = -1;
};

// By buffer: of a rank's temporaries over steps or launches.
std::vector<BufferLife> temporary_lives(const Plan& plan, const Lives& lives, Slot slot);
std::vector<BufferLife> temporary_lives(const RankSchedule& schedule);

struct TemporaryLayout {
  // Offset in bytes per buffer; -1 where it needs no room.
  std::vector<std::int64_t> offset;
  std::int64_t total_bytes = 0;
  // Whatever writes `taker` must wait for all that uses `taken`, which comes earlier in the list.
  struct Reuse {
    BufferId taken, taker;
    friend bool operator==(const Reuse&, const Reuse&) = default;
  };
  std::vector<Reuse> reuses;
};

// Offsets are multiples of `alignment` (a power of two, in bytes).
TemporaryLayout lay_out_temporaries(std::span<const BufferLife> lives, std::int64_t alignment);

// By step or launch, what must be done before it; ascending, each once.
using Before = std::vector<std::vector<std::int32_t>>;

// Makes those that write memory that others have used wait for them. `accesses` hands
// use(i, buffer, is_write) all accesses to the rank's buffers, i ascending.
using UseBuffer = std::function<void(std::int32_t i, BufferId buffer, bool is_write)>;
void wait_for_reuse(const TemporaryLayout& layout,
                    const std::function<void(const UseBuffer& use)>& accesses, Before& before);

// What a rank's launches wait for where they start as early as they may.
Before launches_before(const RankSchedule& schedule, const TemporaryLayout& layout);

}  // namespace reshard
