// SPDX-License-Identifier: BSD-3-Clause
#include "core/schedule/temporaries.h"

#include <algorithm>

#include "core/base/errors.h"

namespace reshard {
namespace {

struct Placed {
  BufferId buffer;
  std::int64_t begin_bytes, end_bytes;
  std::int32_t first_step, last_step;
};

// The least aligned offset at which `bytes` are free of every temporary that lives at the same
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

TemporaryLayout lay_out_temporaries(const Plan& plan, const Lives& lives, Slot slot,
                                    std::int64_t alignment) {
  RESHARD_CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0, "alignment");
  TemporaryLayout out;
  out.offset.assign(plan.buffers.size(), -1);
  auto at = [&](std::size_t buffer) {
    return buffer * plan.slot_count() + static_cast<std::size_t>(slot);
  };
  std::vector<std::size_t> order;
  for (std::size_t b = 2 * plan.tensors.size(); b < plan.buffers.size(); ++b)
    if (lives.begin[at(b)] >= 0) order.push_back(b);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lives.begin[at(a)] < lives.begin[at(b)];
  });

  std::vector<Placed> live, dead;
  for (std::size_t b : order) {
    BufferId id{static_cast<std::int32_t>(b)};
    Placed placed{id, 0, plan.buffer_bytes(id, slot), lives.begin[at(b)], lives.end[at(b)]};
    auto gone = std::stable_partition(live.begin(), live.end(), [&](const Placed& other) {
      return other.last_step >= placed.first_step;
    });
    dead.insert(dead.end(), gone, live.end());
    live.erase(gone, live.end());
    placed.begin_bytes = first_fit(live, placed.end_bytes, alignment);
    placed.end_bytes += placed.begin_bytes;
    out.offset[b] = placed.begin_bytes;
    out.total_bytes = std::max(out.total_bytes, placed.end_bytes);
    // What lay here and is dead.
    for (const Placed& other : dead)
      if (other.begin_bytes < placed.end_bytes && placed.begin_bytes < other.end_bytes)
        out.reuses.push_back({other.buffer, id});
    live.insert(std::upper_bound(
                    live.begin(), live.end(), placed,
                    [](const Placed& a, const Placed& c) { return a.begin_bytes < c.begin_bytes; }),
                placed);
  }
  return out;
}

}  // namespace reshard
