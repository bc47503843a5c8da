// SPDX-License-Identifier: BSD-3-Clause
// Places one rank's temporaries in one allocation, so that memory is reused as soon as a temporary
// has been read for the last time.
//
// First fit over the lives of the temporaries in listed order. An executor that runs steps in
// listed order can use the layout as it is. One that starts steps early must also honour `reuses`:
// in those cases a temporary takes memory that an unordered step may still be reading.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/plan/plan.h"
#include "core/schedule/rank_schedule.h"

namespace reshard {

// First write and last access of every buffer on every slot, as indices of steps in listed order.
// Index: buffer * slots + slot. -1 where no step writes it (the source) or accesses it. An executor
// can free a temporary after its last access.
struct Lives {
  std::vector<std::int32_t> begin, end;
};
Lives lives_of(const Plan& plan);

// From the first entry that writes a buffer to the last that uses it, in a list of steps of a plan
// or launches of a rank. `begin` -1: it needs no memory.
struct BufferLife {
  std::int64_t bytes = 0;
  std::int32_t begin = -1, end = -1;
};

// By buffer: the lives of a rank's temporaries, over steps or over launches.
std::vector<BufferLife> temporary_lives(const Plan& plan, const Lives& lives, Slot slot);
std::vector<BufferLife> temporary_lives(const RankSchedule& schedule);

struct TemporaryLayout {
  // Offset in bytes per buffer; -1 if it needs no memory.
  std::vector<std::int64_t> offset;
  std::int64_t total_bytes = 0;
  // Everything that writes `taker` must wait for everything that uses `taken`, which is earlier in
  // the list.
  struct Reuse {
    BufferId taken, taker;
    friend bool operator==(const Reuse&, const Reuse&) = default;
  };
  std::vector<Reuse> reuses;
};

// Offsets are multiples of `alignment` (a power of two, in bytes).
TemporaryLayout lay_out_temporaries(std::span<const BufferLife> lives, std::int64_t alignment);

// For each step or launch, those that must be done before it; ascending, each once.
using Before = std::vector<std::vector<std::int32_t>>;

// Makes entries that write reused memory wait for the entries that used it before. `accesses` calls
// use(i, buffer, is_write) for all accesses to the rank's buffers, i ascending.
using UseBuffer = std::function<void(std::int32_t i, BufferId buffer, bool is_write)>;
void wait_for_reuse(const TemporaryLayout& layout,
                    const std::function<void(const UseBuffer& use)>& accesses, Before& before);

// What a rank's launches wait for if they start as early as possible.
Before launches_before(const RankSchedule& schedule, const TemporaryLayout& layout);

}  // namespace reshard
