// SPDX-License-Identifier: BSD-3-Clause
// Bit sets of ancestors, one table per set of steps that ranks take part in.
#include "core/plan/step_order.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "core/base/errors.h"
#include "core/base/limits.h"

namespace reshard {
namespace {

std::optional<std::size_t> place_of(const std::vector<std::int32_t>& steps, std::int32_t step) {
  auto it = std::lower_bound(steps.begin(), steps.end(), step);
  if (it == steps.end() || *it != step) return std::nullopt;
  return to_index(it - steps.begin());
}

}  // namespace

StepOrder::StepOrder(const Plan& plan) : class_of_(plan.slot_count()) {
  std::vector<std::vector<std::int32_t>> steps_of(plan.slot_count());
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for_each_slot(plan.steps[s], [&](Slot slot) {
      std::vector<std::int32_t>& steps = steps_of[to_index(slot)];
      if (steps.empty() || steps.back() != static_cast<std::int32_t>(s))
        steps.push_back(static_cast<std::int32_t>(s));
    });

  std::map<std::vector<std::int32_t>, std::int32_t> classes;
  std::size_t bits = 0;
  for (std::size_t slot = 0; slot < steps_of.size(); ++slot) {
    auto [it, added] =
        classes.try_emplace(steps_of[slot], static_cast<std::int32_t>(tables_.size()));
    class_of_[slot] = it->second;
    if (!added) continue;
    bits += it->first.size() * it->first.size();
    if (bits > kMaxOrderBits)
      throw InputError(
          "plan: expected few enough steps for a proof in 1 GiB, found too many on one rank");
    tables_.push_back(table_of(plan, it->first));
  }
}

StepOrder::Table StepOrder::table_of(const Plan& plan, const std::vector<std::int32_t>& steps) {
  Table table{steps, std::vector<Bits>(steps.size(), Bits((steps.size() + 63) / 64, 0))};
  for (std::size_t place = 0; place < steps.size(); ++place)
    for (StepId id : plan.steps[steps[place]].after) {
      std::optional<std::size_t> before = place_of(steps, static_cast<std::int32_t>(id));
      if (!before) continue;
      table.ancestors[place][*before / 64] |= std::uint64_t{1} << *before % 64;
      for (std::size_t w = 0; w < table.ancestors[place].size(); ++w)
        table.ancestors[place][w] |= table.ancestors[*before][w];
    }
  for (std::size_t place = 1; place < steps.size(); ++place)
    table.in_turn &= (table.ancestors[place][(place - 1) / 64] >> (place - 1) % 64 & 1) != 0;
  return table;
}

bool StepOrder::ordered(Slot slot, std::int32_t earlier, std::int32_t step) const {
  return class_ordered(class_of(slot), earlier, step);
}

bool StepOrder::class_ordered(std::int32_t rank_class, std::int32_t earlier,
                              std::int32_t step) const {
  const Table& table = tables_[to_index(rank_class)];
  std::optional<std::size_t> from = place_of(table.steps, earlier),
                             to = place_of(table.steps, step);
  return from && to && (table.ancestors[*to][*from / 64] >> *from % 64 & 1) != 0;
}

bool StepOrder::waits_for_as_much(std::int32_t rank_class, std::int32_t one, std::int32_t step,
                                  const std::vector<bool>& counted) const {
  const Table& table = tables_[to_index(rank_class)];
  const Bits &wanted = table.ancestors[*place_of(table.steps, one)],
             &held = table.ancestors[*place_of(table.steps, step)];
  for (std::size_t w = 0; w < wanted.size(); ++w)
    for (std::uint64_t missing = wanted[w] & ~held[w]; missing != 0; missing &= missing - 1)
      if (counted[to_index(table.steps[64 * w + to_index(std::countr_zero(missing))])])
        return false;
  return true;
}

std::optional<StepOrder::OutOfTurn> StepOrder::out_of_turn(
    const Plan& plan, const Table& table, const IndexVector<StepId, std::int32_t>& stage_of) {
  std::size_t words = (table.steps.size() + 63) / 64;
  std::vector<Bits> of(plan.stages.size(), Bits(words, 0)), before = of;
  for (std::size_t place = 0; place < table.steps.size(); ++place)
    of[to_index(stage_of[table.steps[place]])][place / 64] |= std::uint64_t{1} << place % 64;
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage)
    for (std::int32_t other : plan.stages[stage].after)
      for (std::size_t w = 0; w < words; ++w)
        before[stage][w] |= of[to_index(other)][w] | before[to_index(other)][w];
  for (std::size_t place = 0; place < table.steps.size(); ++place) {
    const Bits& wanted = before[to_index(stage_of[table.steps[place]])];
    for (std::size_t w = 0; w < words; ++w)
      if (std::uint64_t missing = wanted[w] & ~table.ancestors[place][w])
        return OutOfTurn{0, table.steps[64 * w + to_index(std::countr_zero(missing))],
                         table.steps[place]};
  }
  return std::nullopt;
}

std::optional<StepOrder::OutOfTurn> StepOrder::out_of_turn(const Plan& plan) const {
  if (plan.stages.empty()) return std::nullopt;
  IndexVector<StepId, std::int32_t> stage_of = stage_of_steps(plan);
  for (std::size_t c = 0; c < tables_.size(); ++c)
    if (std::optional<OutOfTurn> found = out_of_turn(plan, tables_[c], stage_of)) {
      found->slot = static_cast<Slot>(
          std::find(class_of_.begin(), class_of_.end(), static_cast<std::int32_t>(c)) -
          class_of_.begin());
      return found;
    }
  return std::nullopt;
}

}  // namespace reshard
