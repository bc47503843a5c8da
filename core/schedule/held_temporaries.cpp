// SPDX-License-Identifier: BSD-3-Clause
// For each rank, a maximum flow of memory between temporaries that cannot be held together.
#include "core/schedule/held_temporaries.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/schedule/lowering.h"
#include "core/schedule/step_order.h"

namespace reshard {
namespace {

// One temporary on one rank. Steps ascend, each once.
struct Use {
  std::int64_t bytes;
  std::vector<std::int32_t> writers, users;
  auto operator<=>(const Use&) const = default;
};

std::vector<std::map<BufferId, Use>> uses_by_slot(const Plan& plan) {
  std::vector<std::map<BufferId, Use>> out(plan.slot_count());
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for_each_access(plan, plan.steps[s], [&](BufferId buffer, Slot slot, bool is_write) {
      RESHARD_CHECK(to_index(buffer) < plan.buffers.size(),
                    fmt::format("slot {} has no buffer {}", slot, to_index(buffer)));
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

// How temporaries take over memory from others on one rank: as much as possible, so a maximum flow
// from those that are gone to those that come later. Each first takes what is free, then what
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
    if (is_new) entry->second = Handover(entry->first.second, order, id).memory();
    out[slot] = entry->second;
  }
  return out;
}

}  // namespace reshard
