// SPDX-License-Identifier: BSD-3-Clause
// How an operation becomes parts: the half of OperationRun that runs once, when the first rank
// starts it.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/network/operation_run.h"

namespace reshard::sim {

OperationRun::OperationRun(OpId id, const Operation& operation, std::span<const Rank> ranks)
    : id_(id), ranks_(ranks), parts_left_(ranks.size(), 0) {
  if (const auto* run = std::get_if<RunPlan>(&operation.body)) {
    build_plan(*run->plan);
    index_slots();
    count_waits(*run->plan);
    return;
  }
  if (const auto* compute = std::get_if<Compute>(&operation.body))
    duration_ps_ = compute->duration_ps;
  add_parts(steps_.emplace_back(), transfers_of(operation));
  index_slots();
}

// Refuses what could never run, before it starts.
void OperationRun::add_parts(StepRun& step, Transfers transfers) {
  if (transfers.count() > kMaxStepTransfers || transfers.at_once() > kMaxInFlight)
    throw InputError(fmt::format(
        "operation {}: expected a collective of at most {} transfers, {} at one time, found {}, {} "
        "at one time",
        to_index(id_), kMaxStepTransfers, kMaxInFlight, transfers.count(), transfers.at_once()));
  std::span<const Slot> slots = transfers.slots();
  RESHARD_CHECK(parts_.size() + slots.size() <=
                    static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
                "more parts than 2^31");
  step.first_part = static_cast<std::int32_t>(parts_.size());
  auto number = static_cast<std::int32_t>(&step - steps_.data());
  for (Slot slot : slots) {
    parts_.push_back({slot, number});
    ++parts_left_[static_cast<std::size_t>(slot)];
  }
  step.transfers = std::move(transfers);
}

void OperationRun::build_plan(const Plan& plan) {
  has_plan_ = true;
  steps_.resize(plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    for (StepId before : plan.steps[s].after)
      steps_[to_index(before)].dependents.push_back(static_cast<std::int32_t>(s));
    add_parts(steps_[s], Transfers(plan, plan.steps[s]));
  }
}

// Of an operation that is no plan.
Transfers OperationRun::transfers_of(const Operation& operation) const {
  auto parts = static_cast<std::int32_t>(ranks_.size());
  // A rank's message to itself on one stream has one end and nothing to wait for.
  if (const auto* message = std::get_if<Message>(&operation.body); message != nullptr && parts == 2)
    return Transfers::message(message->bytes);
  const auto* collective = std::get_if<BareCollective>(&operation.body);
  if (collective == nullptr) return Transfers::none(parts);
  std::vector<Rank> sorted = collective->ranks;
  std::sort(sorted.begin(), sorted.end());
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    throw InputError(
        fmt::format("operation {}: {} over a group: expected each rank once, found rank {} twice",
                    to_index(id_), text(collective->kind), to_int(*twice)));
  if (parts < 2) return Transfers::none(parts);
  return Transfers::collective(collective->kind, collective->algorithm, parts, collective->bytes);
}

void OperationRun::index_slots() {
  first_of_slot_.assign(parts_left_.size() + 1, 0);
  for (const Part& part : parts_) ++first_of_slot_[static_cast<std::size_t>(part.slot) + 1];
  std::partial_sum(first_of_slot_.begin(), first_of_slot_.end(), first_of_slot_.begin());
  std::vector<std::size_t> next = first_of_slot_;
  of_slot_.resize(parts_.size());
  for (std::size_t part = 0; part < parts_.size(); ++part)
    of_slot_[next[static_cast<std::size_t>(parts_[part].slot)]++] = static_cast<std::int32_t>(part);
}

std::int32_t OperationRun::part_at(Slot slot, std::int32_t step) const {
  auto at = static_cast<std::size_t>(slot);
  auto first = of_slot_.begin() + static_cast<std::ptrdiff_t>(first_of_slot_[at]),
       last = of_slot_.begin() + static_cast<std::ptrdiff_t>(first_of_slot_[at + 1]);
  auto it = std::lower_bound(first, last, step, [this](std::int32_t part, std::int32_t wanted) {
    return parts_[static_cast<std::size_t>(part)].step < wanted;
  });
  return it != last && parts_[static_cast<std::size_t>(*it)].step == step ? *it : -1;
}

void OperationRun::count_waits(const Plan& plan) {
  for (Part& part : parts_)
    for (StepId before : plan.steps[static_cast<std::size_t>(part.step)].after)
      if (part_at(part.slot, static_cast<std::int32_t>(to_index(before))) >= 0) ++part.waits;
}

}  // namespace reshard::sim
