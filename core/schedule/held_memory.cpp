// SPDX-License-Identifier: BSD-3-Clause
// For each rank with ordered steps, a sweep over them; for others, a maximum flow of memory
// between uses that cannot be held together.
#include "core/schedule/held_memory.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/plan/step_order.h"
#include "core/schedule/lowering.h"
#include "core/schedule/packed_messages.h"

namespace reshard {
namespace {

// One buffer on one rank, or what it packs of a step's messages. Steps ascend, each once.
struct Use {
  std::int64_t bytes = 0;
  std::vector<std::int32_t> writers = {}, users = {};
  bool from_start = false, to_end = false;  // held before the first step, and after the last
  auto operator<=>(const Use&) const = default;
};

using UsesBySlot = std::vector<std::vector<Use>>;

void note(std::vector<std::int32_t>& steps, std::int32_t step) {
  if (steps.empty() || steps.back() != step) steps.push_back(step);
}

// The uses of buffers for which `wanted` holds.
template <class Wanted>
UsesBySlot buffer_uses(const Plan& plan, Wanted&& wanted) {
  std::vector<std::map<BufferId, Use>> found(plan.slot_count());
  // Sources are there even if nothing reads them.
  if (wanted(BufferRole::Source))
    for (std::size_t tensor = 0; tensor < plan.tensors.size(); ++tensor)
      for (std::size_t slot = 0; slot < found.size(); ++slot)
        if (BufferId source = source_of(id_of<TensorId>(tensor));
            plan.buffer_bytes(source, static_cast<Slot>(slot)) > 0)
          found[slot].try_emplace(source);
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for_each_access(plan, plan.steps[s], [&](BufferId buffer, Slot slot, bool is_write) {
      RESHARD_CHECK(to_index(buffer) < plan.buffers.size(),
                    fmt::format("slot {} has no buffer {}", slot, to_index(buffer)));
      if (!wanted(plan.buffer(buffer).role())) return;
      Use& use = found[to_index(slot)].try_emplace(buffer).first->second;
      note(use.users, static_cast<std::int32_t>(s));
      if (is_write) note(use.writers, static_cast<std::int32_t>(s));
    });
  UsesBySlot out(plan.slot_count());
  for (std::size_t slot = 0; slot < found.size(); ++slot)
    for (auto& [buffer, use] : found[slot]) {
      use.bytes = plan.buffer_bytes(buffer, static_cast<Slot>(slot));
      BufferRole role = plan.buffer(buffer).role();
      use.from_start = role == BufferRole::Source;
      use.to_end = role == BufferRole::Destination;
      if (use.from_start || !use.writers.empty()) out[slot].push_back(std::move(use));
    }
  return out;
}

void add_packed_messages(const Plan& plan, UsesBySlot& out) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto* exchange = exchange_of(plan.steps[s]);
    if (exchange == nullptr) continue;
    std::vector<std::int64_t> packed = packed_per_slot(plan, *exchange);
    std::vector<std::int32_t> only{static_cast<std::int32_t>(s)};
    for (std::size_t slot = 0; slot < packed.size(); ++slot)
      if (packed[slot] > 0) out[slot].push_back({packed[slot], only, only});
  }
}

// Where every step is ordered before the next.
std::int64_t held_in_turn(const std::vector<Use>& uses) {
  std::vector<std::pair<std::int32_t, std::int64_t>> changes;  // by step; what ends comes first
  for (const Use& use : uses) {
    changes.emplace_back(use.from_start ? -1 : use.writers.front(), use.bytes);
    if (!use.to_end) changes.emplace_back(use.users.empty() ? 0 : use.users.back() + 1, -use.bytes);
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t held = 0, most = 0;
  for (auto [step, bytes] : changes) {
    add_bytes(held, bytes);
    most = std::max(most, held);
  }
  return most;
}

// How uses take over memory from others on one rank: as much as possible, so a maximum flow from
// those that are gone to those that come later. Each first takes what is free, then what
// another has taken and can get elsewhere, in rounds of shortest augmenting paths (Dinic, 1970).
class Handover {
 public:
  // `uses` are ordered by the first step that writes them.
  Handover(const std::vector<Use>& uses, const StepOrder& order, Slot slot)
      : uses_(uses), order_(order), slot_(slot), earlier_(uses.size()), given_(uses.size()) {
    for (const Use& use : uses) left_.push_back(use.bytes);
    lacks_ = left_;
  }

  // Bytes of memory needed in all: what no temporary takes over.
  std::int64_t memory() {
    for (std::size_t taker = 0; taker < uses_.size(); ++taker)
      for (std::size_t earlier = 0; earlier < taker && lacks_[taker] > 0; ++earlier)
        if (left_[earlier] > 0 && gone_before(uses_[earlier], uses_[taker]))
          lacks_[taker] -= hand_over(earlier, taker, std::min(lacks_[taker], left_[earlier]));
    while (find_paths()) {
      tried_.assign(uses_.size(), 0);
      for (std::size_t taker = 0; taker < uses_.size(); ++taker)
        while (std::int64_t more = obtain(taker, lacks_[taker])) lacks_[taker] -= more;
    }
    std::int64_t memory = 0;
    for (std::int64_t lacks : lacks_) add_bytes(memory, lacks);
    return memory;
  }

 private:
  static constexpr int kNowhere = -1;

  bool gone_before(const Use& a, const Use& b) const {
    if (a.to_end || b.from_start) return false;
    return std::all_of(b.writers.begin(), b.writers.end(), [&](std::int32_t writer) {
      return std::all_of(a.users.rbegin(), a.users.rend(),
                         [&](std::int32_t user) { return order_.ordered(slot_, user, writer); });
    });
  }

  const std::vector<std::size_t>& earlier_of(std::size_t taker) {
    std::optional<std::vector<std::size_t>>& out = earlier_[taker];
    if (!out) {
      out.emplace();
      for (std::size_t earlier = 0; earlier < taker; ++earlier)
        if (gone_before(uses_[earlier], uses_[taker])) out->push_back(earlier);
    }
    return *out;
  }

  std::int64_t hand_over(std::size_t earlier, std::size_t taker, std::int64_t bytes) {
    left_[earlier] -= bytes;
    given_[earlier][taker] += bytes;
    return bytes;
  }

  // Computes the distance of each temporary from one that lacks memory. False if none of those
  // reached has memory left.
  bool find_paths() {
    earlier_at_.assign(uses_.size(), kNowhere);
    taker_at_.assign(uses_.size(), kNowhere);
    std::vector<std::size_t> takers;
    auto reach = [&](std::size_t taker, int at) {
      if (taker_at_[taker] != kNowhere) return;
      taker_at_[taker] = at;
      takers.push_back(taker);
    };
    for (std::size_t taker = 0; taker < uses_.size(); ++taker)
      if (lacks_[taker] > 0) reach(taker, 0);
    bool found = false;
    for (std::size_t i = 0; i < takers.size(); ++i)
      for (std::size_t earlier : earlier_of(takers[i])) {
        if (earlier_at_[earlier] != kNowhere) continue;
        earlier_at_[earlier] = taker_at_[takers[i]] + 1;
        found = found || left_[earlier] > 0;
        for (const auto& [other, has] : given_[earlier])
          if (has > 0) reach(other, earlier_at_[earlier]);
      }
    return found;
  }

  // Gets `taker` at most `bytes`: from what an earlier temporary has left, or from one of its
  // takers that gets them elsewhere.
  std::int64_t obtain(std::size_t taker, std::int64_t bytes) {
    if (bytes == 0) return 0;
    const std::vector<std::size_t>& earlier_uses = earlier_of(taker);
    for (; tried_[taker] < earlier_uses.size(); ++tried_[taker]) {
      std::size_t earlier = earlier_uses[tried_[taker]];
      if (earlier_at_[earlier] != taker_at_[taker] + 1) continue;
      if (left_[earlier] > 0) return hand_over(earlier, taker, std::min(bytes, left_[earlier]));
      for (auto& [other, has] : given_[earlier]) {
        if (taker_at_[other] != earlier_at_[earlier]) continue;
        std::int64_t freed = obtain(other, std::min(bytes, has));
        if (freed == 0) continue;
        has -= freed;
        left_[earlier] += freed;
        return hand_over(earlier, taker, freed);
      }
    }
    return 0;
  }

  const std::vector<Use>& uses_;
  const StepOrder& order_;
  Slot slot_;
  std::vector<std::optional<std::vector<std::size_t>>> earlier_;  // by taker, computed on demand
  std::vector<std::map<std::size_t, std::int64_t>> given_;        // by earlier, then taker
  std::vector<std::int64_t> left_, lacks_;                        // by earlier, by taker
  std::vector<int> earlier_at_, taker_at_;  // distance from one that lacks memory
  std::vector<std::size_t> tried_;          // index into earlier_ of each taker, this round
};

std::vector<std::int64_t> most_held(const Plan& plan, UsesBySlot by_slot) {
  std::vector<std::int64_t> out(plan.slot_count(), 0);
  StepOrder order(plan);
  std::map<std::pair<std::int32_t, std::vector<Use>>, std::int64_t> known;
  for (std::size_t s = 0; s < by_slot.size(); ++s) {
    std::vector<Use>& uses = by_slot[s];
    auto slot = static_cast<Slot>(s);
    if (order.in_turn(slot)) {
      out[s] = held_in_turn(uses);
      continue;
    }
    std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
      auto first = [](const Use& use) { return use.from_start ? -1 : use.writers.front(); };
      return first(a) < first(b);
    });
    auto [entry, is_new] = known.try_emplace({order.class_of(slot), std::move(uses)}, 0);
    if (is_new) entry->second = Handover(entry->first.second, order, slot).memory();
    out[s] = entry->second;
  }
  return out;
}

}  // namespace

std::int64_t tensor_bytes(const Plan& plan, Slot slot) {
  std::int64_t out = 0;
  for (std::size_t b = 0; b < 2 * plan.tensors.size(); ++b)
    add_bytes(out, plan.buffer_bytes(id_of<BufferId>(b), slot));
  return out;
}

std::vector<std::int64_t> held_temporaries(const Plan& plan) {
  if (plan.buffers.size() == 2 * plan.tensors.size())
    return std::vector<std::int64_t>(plan.slot_count(), 0);
  return most_held(
      plan, buffer_uses(plan, [](BufferRole role) { return role == BufferRole::Temporary; }));
}

namespace {

std::vector<std::int64_t> held_with(const Plan& plan, bool packed_messages) {
  bool any = packed_messages || plan.frees_sources || plan.buffers.size() > 2 * plan.tensors.size();
  std::vector<std::int64_t> out(plan.slot_count(), 0);
  if (any) {
    UsesBySlot uses = buffer_uses(
        plan, [&](BufferRole role) { return role == BufferRole::Temporary || plan.frees_sources; });
    if (packed_messages) add_packed_messages(plan, uses);
    out = most_held(plan, std::move(uses));
  }
  if (!plan.frees_sources)
    for (std::size_t slot = 0; slot < out.size(); ++slot)
      add_bytes(out[slot], tensor_bytes(plan, static_cast<Slot>(slot)));
  return out;
}

}  // namespace

std::vector<std::int64_t> held_buffers(const Plan& plan) { return held_with(plan, false); }
std::vector<std::int64_t> held_memory(const Plan& plan) { return held_with(plan, true); }

}  // namespace reshard
