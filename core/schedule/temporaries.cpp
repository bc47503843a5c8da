// SPDX-License-Identifier: BSD-3-Clause
// Lives of buffers, and a first-fit layout of temporaries.
#include "core/schedule/temporaries.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/schedule/lowering.h"

namespace reshard {
namespace {

struct Placed {
  BufferId buffer;
  std::int64_t begin_bytes, end_bytes;
  std::int32_t last_use;
};

// The lowest aligned offset at which `bytes` do not overlap any temporary that is live at the same
// time. `live` ascends by begin_bytes.
std::int64_t first_fit(const std::vector<Placed>& live, std::int64_t bytes,
                       std::int64_t alignment) {
  std::int64_t at = 0;
  for (const Placed& other : live) {
    if (at + bytes <= other.begin_bytes) break;
    at = std::max(at, (other.end_bytes + alignment - 1) / alignment * alignment);
  }
  return at;
}

}  // namespace

Lives lives_of(const Plan& plan) {
  std::size_t slots = plan.slot_count();
  Lives lives{std::vector<std::int32_t>(plan.buffers.size() * slots, -1),
              std::vector<std::int32_t>(plan.buffers.size() * slots, -1)};
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for_each_access(plan, plan.steps[s], [&](BufferId buffer, Slot slot, bool is_write) {
      RESHARD_CHECK(to_index(buffer) < plan.buffers.size(),
                    "step " + std::to_string(s) + " names a buffer that does not exist");
      std::size_t at = to_index(buffer) * slots + to_index(slot);
      if (is_write && lives.begin[at] < 0) lives.begin[at] = static_cast<std::int32_t>(s);
      lives.end[at] = static_cast<std::int32_t>(s);
    });
  return lives;
}

std::vector<BufferLife> temporary_lives(const Plan& plan, const Lives& lives, Slot slot) {
  std::vector<BufferLife> out(plan.buffers.size());
  for (std::size_t b = 2 * plan.tensors.size(); b < out.size(); ++b) {
    std::size_t at = b * plan.slot_count() + to_index(slot);
    out[b] = {plan.buffer_bytes(BufferId{static_cast<std::int32_t>(b)}, slot), lives.begin[at],
              lives.end[at]};
  }
  return out;
}

std::vector<BufferLife> temporary_lives(const RankSchedule& schedule) {
  std::vector<BufferLife> out(schedule.buffers.size());
  for (std::size_t i = 0; i < schedule.launches.size(); ++i)
    for_each_box(schedule.launches[i], [&](const PlacedBox& box, bool is_write) {
      const LocalBuffer& buffer = schedule.buffer(box.at.buffer);
      if (!buffer.temporary) return;
      BufferLife& life = out[to_index(box.at.buffer)];
      life.bytes = buffer.bytes();
      life.end = static_cast<std::int32_t>(i);
      if (is_write && life.begin < 0) life.begin = life.end;
    });
  return out;
}

TemporaryLayout lay_out_temporaries(std::span<const BufferLife> lives, std::int64_t alignment) {
  RESHARD_CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0, "alignment");
  TemporaryLayout out;
  out.offset.assign(lives.size(), -1);
  std::vector<std::size_t> order;
  for (std::size_t b = 0; b < lives.size(); ++b)
    if (lives[b].begin >= 0) order.push_back(b);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lives[a].begin < lives[b].begin; });

  std::vector<Placed> live, dead;
  for (std::size_t b : order) {
    Placed placed{BufferId{static_cast<std::int32_t>(b)}, 0, lives[b].bytes, lives[b].end};
    auto gone = std::stable_partition(live.begin(), live.end(), [&](const Placed& other) {
      return other.last_use >= lives[b].begin;
    });
    dead.insert(dead.end(), gone, live.end());
    live.erase(gone, live.end());
    placed.begin_bytes = first_fit(live, placed.end_bytes, alignment);
    placed.end_bytes += placed.begin_bytes;
    out.offset[b] = placed.begin_bytes;
    out.total_bytes = std::max(out.total_bytes, placed.end_bytes);
    // This one takes memory of these dead temporaries.
    for (const Placed& other : dead)
      if (other.begin_bytes < placed.end_bytes && placed.begin_bytes < other.end_bytes)
        out.reuses.push_back({other.buffer, placed.buffer});
    live.insert(std::upper_bound(
                    live.begin(), live.end(), placed,
                    [](const Placed& a, const Placed& c) { return a.begin_bytes < c.begin_bytes; }),
                placed);
  }
  return out;
}

void wait_for_reuse(const TemporaryLayout& layout,
                    const std::function<void(const UseBuffer& use)>& accesses, Before& before) {
  if (layout.reuses.empty()) return;
  Before users(layout.offset.size()), writers(users.size());
  accesses([&](std::int32_t i, BufferId buffer, bool is_write) {
    for (Before* by_buffer : {&users, is_write ? &writers : nullptr}) {
      if (by_buffer == nullptr) continue;
      std::vector<std::int32_t>& list = (*by_buffer)[to_index(buffer)];
      if (list.empty() || list.back() != i) list.push_back(i);
    }
  });
  for (const TemporaryLayout::Reuse& reuse : layout.reuses)
    for (std::int32_t writer : writers[to_index(reuse.taker)]) {
      std::vector<std::int32_t>& list = before[to_index(writer)];
      const std::vector<std::int32_t>& earlier = users[to_index(reuse.taken)];
      list.insert(list.end(), earlier.begin(), earlier.end());
    }
  for (std::vector<std::int32_t>& list : before) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
}

Before launches_before(const RankSchedule& schedule, const TemporaryLayout& layout) {
  Before before;
  for (const Launch& launch : schedule.launches) before.push_back(launch.after);
  wait_for_reuse(
      layout,
      [&](const UseBuffer& use) {
        for (std::size_t i = 0; i < schedule.launches.size(); ++i)
          for_each_box(schedule.launches[i], [&](const PlacedBox& box, bool is_write) {
            use(static_cast<std::int32_t>(i), box.at.buffer, is_write);
          });
      },
      before);
  return before;
}

}  // namespace reshard
