// SPDX-License-Identifier: BSD-3-Clause
#include "core/schedule/held_temporaries.h"

#include <algorithm>
#include <map>

#include "core/base/integers.h"
#include "core/schedule/lowering.h"
#include "core/schedule/step_order.h"

namespace reshard {
namespace {

// One temporary on one rank; steps ascending, each once.
struct Use {
  std::int64_t bytes;
  std::vector<std::int32_t> writers, users;
  auto operator<=>(const Use&) const = default;
};

std::vector<std::map<BufferId, Use>> uses_by_slot(const Plan& plan) {
  std::vector<std::map<BufferId, Use>> out(plan.slot_count());
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for_each_access(plan.steps[s], [&](BufferId buffer, Slot slot, bool is_write) {
      if (plan.buffer(buffer).role() != BufferRole::Temporary) return;
      auto step = static_cast<std::int32_t>(s);
      Use& use = out[to_index(slot)]
                     .try_emplace(buffer, Use{plan.buffer_bytes(buffer, slot), {}, {}})
                     .first->second;
      if (use.users.empty() || use.users.back() != step) use.users.push_back(step);
      if (is_write && (use.writers.empty() || use.writers.back() != step))
        use.writers.push_back(step);
    });
  return out;
}

// `uses` as listed: by the first that writes them.
std::int64_t memory_of(const std::vector<Use>& uses, const StepOrder& order, Slot slot) {
  auto gone_before = [&](const Use& a, const Use& b) {
    return std::all_of(b.writers.begin(), b.writers.end(), [&](std::int32_t writer) {
      return std::all_of(a.users.rbegin(), a.users.rend(),
                         [&](std::int32_t user) { return order.ordered(slot, user, writer); });
    });
  };
  std::int64_t memory = 0;
  std::vector<std::int64_t> left(uses.size());  // of each, which nobody has taken over
  for (std::size_t b = 0; b < uses.size(); ++b) {
    std::int64_t lacks = left[b] = uses[b].bytes;
    for (std::size_t a = 0; a < b && lacks > 0; ++a) {
      if (left[a] == 0 || !gone_before(uses[a], uses[b])) continue;
      std::int64_t taken = std::min(lacks, left[a]);
      left[a] -= taken;
      lacks -= taken;
    }
    add_bytes(memory, lacks);
  }
  return memory;
}

}  // namespace

std::vector<std::int64_t> held_temporaries(const Plan& plan) {
  std::vector<std::int64_t> out(plan.slot_count(), 0);
  if (plan.buffers.size() == 2 * plan.tensors.size()) return out;
  StepOrder order(plan);
  std::map<std::pair<std::int32_t, std::vector<Use>>, std::int64_t> known;
  std::vector<std::map<BufferId, Use>> by_slot = uses_by_slot(plan);
  for (std::size_t slot = 0; slot < by_slot.size(); ++slot) {
    std::vector<Use> uses;
    for (auto& [buffer, use] : by_slot[slot])
      if (!use.writers.empty()) uses.push_back(std::move(use));
    std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
      return a.writers.front() < b.writers.front();
    });
    auto id = static_cast<Slot>(slot);
    auto [entry, is_new] = known.try_emplace({order.class_of(id), std::move(uses)}, 0);
    if (is_new) entry->second = memory_of(entry->first.second, order, id);
    out[slot] = entry->second;
  }
  return out;
}

}  // namespace reshard
