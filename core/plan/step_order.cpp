// SPDX-License-Identifier: BSD-3-Clause
#include "core/plan/step_order.h"

#include <map>

namespace reshard {

StepOrder::StepOrder(const Plan& plan) : words_((plan.steps.size() + 63) / 64), class_of_(plan.slot_count()) {
  std::vector<Bits> part(plan.slot_count(), Bits(words_, 0));
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for_each_slot(plan.steps[s], [&](Slot slot) { part[static_cast<std::size_t>(slot)][s / 64] |= std::uint64_t{1} << s % 64; });

  std::map<Bits, std::int32_t> classes;
  for (std::size_t slot = 0; slot < part.size(); ++slot) {
    auto [it, added] = classes.try_emplace(part[slot], static_cast<std::int32_t>(ancestors_.size()));
    class_of_[slot] = it->second;
    if (!added) continue;
    std::vector<Bits>& table = ancestors_.emplace_back(plan.steps.size());
    auto takes_part = [&](std::size_t s) { return (part[slot][s / 64] >> s % 64 & 1) != 0; };
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      if (!takes_part(s)) continue;
      table[s].assign(words_, 0);
      for (StepId id : plan.steps[s].after) {
        std::size_t before = to_index(id);
        if (!takes_part(before)) continue;
        table[s][before / 64] |= std::uint64_t{1} << before % 64;
        for (std::size_t w = 0; w < words_; ++w) table[s][w] |= table[before][w];
      }
    }
  }
}

bool StepOrder::ordered(Slot slot, std::int32_t earlier, std::int32_t step) const {
  const Bits& bits = ancestors_[static_cast<std::size_t>(class_of_[static_cast<std::size_t>(slot)])][static_cast<std::size_t>(step)];
  auto e = static_cast<std::size_t>(earlier);
  return !bits.empty() && (bits[e / 64] >> e % 64 & 1) != 0;
}

}  // namespace reshard
