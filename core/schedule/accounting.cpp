// SPDX-License-Identifier: BSD-3-Clause
#include "core/schedule/accounting.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/schedule/lowering.h"
#include "core/schedule/transfers.h"

namespace reshard {

PlanBytes count_bytes(const Plan& plan) {
  std::size_t slots = plan.slot_count();
  PlanBytes out;
  out.received_per_step.assign(plan.steps.size(), 0);
  out.received_per_slot.assign(slots, 0);
  out.peak_per_slot.assign(slots, 0);
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for_each_receipt(plan, plan.steps[s], [&](Slot slot, std::int64_t bytes) {
      out.received_per_step[s] += bytes;
      out.received_per_slot[static_cast<std::size_t>(slot)] += bytes;
    });
  for (std::int64_t received : out.received_per_slot) {
    out.received_max = std::max(out.received_max, received);
    out.received_total += received;
  }

  Lives lives = lives_of(plan);
  std::vector<std::int64_t> change(plan.steps.size() + 1);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    auto id = static_cast<Slot>(slot);
    std::fill(change.begin(), change.end(), 0);
    std::int64_t kept = 0;
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      std::int64_t bytes = plan.buffer_bytes(BufferId{static_cast<std::int32_t>(b)}, id);
      std::int32_t begin = lives.begin[b * slots + slot], end = lives.end[b * slots + slot];
      if (plan.buffers[b].role() != BufferRole::Temporary) kept += bytes;
      if (plan.buffers[b].role() != BufferRole::Temporary || begin < 0) continue;
      change[static_cast<std::size_t>(begin)] += bytes;
      change[static_cast<std::size_t>(end) + 1] -= bytes;
    }
    std::int64_t live = 0, most = 0;
    for (std::int64_t by : change) most = std::max(most, live += by);
    out.peak_per_slot[slot] = kept + most;
    out.peak_max = std::max(out.peak_max, out.peak_per_slot[slot]);
  }
  return out;
}

Lives lives_of(const Plan& plan) {
  std::size_t slots = plan.slot_count();
  Lives lives{std::vector<std::int32_t>(plan.buffers.size() * slots, -1),
              std::vector<std::int32_t>(plan.buffers.size() * slots, -1)};
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for_each_access(plan.steps[s], [&](BufferId buffer, Slot slot, bool is_write) {
      RESHARD_CHECK(to_index(buffer) < plan.buffers.size(),
                    "step " + std::to_string(s) + " names a buffer that is not there");
      std::size_t at = to_index(buffer) * slots + static_cast<std::size_t>(slot);
      if (is_write && lives.begin[at] < 0) lives.begin[at] = static_cast<std::int32_t>(s);
      lives.end[at] = static_cast<std::int32_t>(s);
    });
  return lives;
}

}  // namespace reshard
