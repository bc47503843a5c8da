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
  } else if (const auto* collective = std::get_if<BareCollective>(&operation.body)) {
    build_collective(*collective);
  } else if (const auto* message = std::get_if<Message>(&operation.body)) {
    build_message(*message);
  } else {
    duration_ps_ = std::get<Compute>(operation.body).duration_ps;
    std::vector<Slot> slots(ranks.size());
    std::iota(slots.begin(), slots.end(), 0);
    add_parts(steps_.emplace_back(), slots);
  }
  index_slots();
  if (const auto* run = std::get_if<RunPlan>(&operation.body)) count_waits(*run->plan);
}

// Call in the order of steps_, once per step.
void OperationRun::add_parts(StepRun& step, std::span<const Slot> slots) {
  RESHARD_CHECK(parts_.size() + slots.size() <=
                    static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
                "more parts than 2^31");
  step.first_part = static_cast<std::int32_t>(parts_.size());
  step.part_count = static_cast<std::int32_t>(slots.size());
  auto number = static_cast<std::int32_t>(&step - steps_.data());
  for (Slot slot : slots) {
    parts_.push_back({slot, number});
    ++parts_left_[static_cast<std::size_t>(slot)];
  }
}

void OperationRun::build_plan(const Plan& plan) {
  has_plan_ = true;
  unit_bytes_ = size_bytes(plan.request.dtype());
  steps_.resize(plan.steps.size());
  std::vector<std::int32_t> part_of_slot(plan.slot_count(), -1);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    StepRun& step = steps_[s];
    for (StepId before : plan.steps[s].after)
      steps_[to_index(before)].dependents.push_back(static_cast<std::int32_t>(s));
    if (const auto* collective = std::get_if<CollectiveStep>(&plan.steps[s].body)) {
      add_parts(step, collective->members);
      add_expansions(step, *collective, plan);
      continue;
    }
    add_parts(step, slots_of(plan.steps[s]));
    step.exchange = std::get_if<ExchangeStep>(&plan.steps[s].body);
    if (step.exchange == nullptr) continue;
    for (std::int32_t part = step.first_part; part < step.first_part + step.part_count; ++part)
      part_of_slot[static_cast<std::size_t>(slot_of(part))] = part;
    for (const ExchangeStep::Message& message : step.exchange->messages) {
      step.source_parts.push_back(part_of_slot[static_cast<std::size_t>(message.source)]);
      step.destination_parts.push_back(part_of_slot[static_cast<std::size_t>(message.destination)]);
    }
    index_messages(step);
  }
}

// Refuses what could never run, before it starts.
void OperationRun::add_expansion(StepRun& step, const Expansion& expansion) {
  step.transfers += expansion.size();
  step.transfers_at_once += expansion.size() / expansion.rounds();
  if (step.transfers > kMaxStepTransfers || step.transfers_at_once > kMaxInFlight)
    throw InputError(fmt::format(
        "operation {}: expected a collective of at most {} transfers, {} at one time, found {}, {} "
        "at one time",
        to_index(id_), kMaxStepTransfers, kMaxInFlight, step.transfers, step.transfers_at_once));
  step.expansions.push_back(expansion);
}

void OperationRun::add_expansions(StepRun& step, const CollectiveStep& collective,
                                  const Plan& plan) {
  for (std::size_t group = 0; group < collective.group_count(); ++group) {
    Slot first = collective.group(group).front();
    std::int64_t elements = plan.buffer(collective.input).elements(first);
    if (collective.kind == CollectiveKind::ReduceScatter)
      elements = plan.buffer(collective.output).elements(first);
    if (collective.kind == CollectiveKind::AllToAll) elements /= collective.group_size;
    add_expansion(step, Expansion(collective.kind, default_algorithm(collective.kind),
                                  collective.group_size, elements));
  }
}

void OperationRun::build_message(const Message& message) {
  StepRun& step = steps_.emplace_back();
  single_bytes_ = message.bytes;
  // A rank's message to itself on one stream has one end and nothing to wait for.
  if (ranks_.size() == 1) {
    add_parts(step, std::vector<Slot>{0});
    return;
  }
  add_parts(step, std::vector<Slot>{0, 1});
  step.source_parts = {0};
  step.destination_parts = {1};
  index_messages(step);
}

void OperationRun::build_collective(const BareCollective& collective) {
  std::vector<Rank> sorted = collective.ranks;
  std::sort(sorted.begin(), sorted.end());
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    throw InputError(
        fmt::format("operation {}: {} over a group: expected each rank once, found rank {} twice",
                    to_index(id_), text(collective.kind), to_int(*twice)));
  StepRun& step = steps_.emplace_back();
  std::vector<Slot> slots(collective.ranks.size());
  std::iota(slots.begin(), slots.end(), 0);
  add_parts(step, slots);
  if (slots.size() < 2) return;
  add_expansion(step, Expansion(collective.kind, collective.algorithm,
                                static_cast<std::int32_t>(slots.size()), collective.bytes));
}

// Sends and receives of every part of an exchange; its messages ascend by source part.
void OperationRun::index_messages(StepRun& step) {
  auto parts = static_cast<std::size_t>(step.part_count);
  auto local = [&step](std::int32_t part) {
    return static_cast<std::size_t>(part - step.first_part);
  };
  step.first_send.assign(parts + 1, 0);
  step.first_receive.assign(parts + 1, 0);
  for (std::int32_t part : step.source_parts) ++step.first_send[local(part) + 1];
  for (std::int32_t part : step.destination_parts) ++step.first_receive[local(part) + 1];
  std::partial_sum(step.first_send.begin(), step.first_send.end(), step.first_send.begin());
  std::partial_sum(step.first_receive.begin(), step.first_receive.end(),
                   step.first_receive.begin());
  std::vector<std::uint32_t> next = step.first_receive;
  step.receives.resize(step.destination_parts.size());
  for (std::size_t message = 0; message < step.destination_parts.size(); ++message)
    step.receives[next[local(step.destination_parts[message])]++] =
        static_cast<std::uint32_t>(message);
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
