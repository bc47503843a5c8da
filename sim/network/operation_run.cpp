// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/operation_run.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/network/engine.h"

namespace reshard::sim {

// ---- how an operation becomes parts: once, when the first rank starts it

OperationRun::OperationRun(OpId id, const Operation& operation, std::span<const Rank> ranks,
                           Carrier* carrier, const WaitLog* waits)
    : id_(id), ranks_(ranks), parts_left_(ranks.size(), 0) {
  if (waits != nullptr) recording_.reset(new Recording{*waits, {}});
  if (const auto* run = std::get_if<RunPlan>(&operation.body)) {
    build_plan(*run->plan, carrier);
    index_parts(run->plan.get());
    if (carrier != nullptr && carrier->in_turn()) put_in_turn(*run->plan, *carrier);
    return;
  }
  if (const auto* compute = std::get_if<Compute>(&operation.body))
    duration_ps_ = compute->duration_ps;
  if (const auto* setup = std::get_if<Setup>(&operation.body)) duration_ps_ = setup->duration_ps;
  add_parts(steps_.emplace_back(), transfers_of(operation, carrier));
  index_parts(nullptr);
}

// Refuses what could never run, before it starts.
void OperationRun::add_parts(StepRun& step, Transfers transfers) {
  if (transfers.count() > kMaxStepTransfers || transfers.at_once() > kMaxInFlight)
    throw OperationRefused(
        id_, fmt::format("expected a collective of at most {} transfers, {} at the same time, "
                         "found {}, {} at the same time",
                         kMaxStepTransfers, kMaxInFlight, transfers.count(), transfers.at_once()));
  std::span<const Slot> slots = transfers.slots();
  RESHARD_CHECK(parts_.size() + slots.size() <= to_index(std::numeric_limits<std::int32_t>::max()),
                "more parts than 2^31");
  step.first_part = static_cast<std::int32_t>(parts_.size());
  auto number = static_cast<std::int32_t>(&step - steps_.data());
  if (parts_.empty()) parts_.reserve(slots.size());  // enough for most operations
  for (Slot slot : slots) {
    parts_.push_back({slot, number});
    ++parts_left_[slot];
  }
  step.transfers = std::move(transfers);
  if (std::int32_t group = step.transfers.gathers(); group > 1)
    step.missing.assign(slots.size() / to_index(group), group);
}

void OperationRun::build_plan(const Plan& plan, Carrier* carrier) {
  has_plan_ = true;
  steps_.resize(plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    for (StepId before : plan.steps[s].after)
      steps_[to_index(before)].dependents.push_back(static_cast<std::int32_t>(s));
    add_parts(steps_[s],
              carrier ? carrier->step(plan, plan.steps[s]) : Transfers(plan, plan.steps[s]));
  }
}

// For an operation that is not a plan.
Transfers OperationRun::transfers_of(const Operation& operation, Carrier* carrier) const {
  auto parts = static_cast<std::int32_t>(ranks_.size());
  // A rank's message to itself on one stream has one end and nothing to wait for.
  if (const auto* message = std::get_if<PointToPoint>(&operation.body);
      message != nullptr && parts == 2)
    return carrier ? carrier->message(*message) : Transfers::message(message->bytes);
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
  if (carrier) return carrier->collective(*collective);
  return Transfers::collective(*collective);
}

// Called after the last part is added: the parts of each slot, and what they wait for.
void OperationRun::index_parts(const Plan* plan) {
  of_slot_ = Grouped<std::int32_t>(parts_left_.size(), [this](auto put) {
    for (std::int32_t part = 0; part < static_cast<std::int32_t>(parts_.size()); ++part)
      put(parts_[part].slot, part);
  });
  if (recording_) recording_->waited.resize(parts_.size());
  if (plan == nullptr) return;
  for (SlotStep& part : parts_)
    for (StepId before : plan->steps[part.step].after)
      if (part_at(part.slot, static_cast<std::int32_t>(before)) >= 0) ++part.waits;
}

OperationRun::LinksOf OperationRun::links_of(std::int32_t part, const Carrier& carrier) const {
  const StepRun& step = steps_[parts_[part].step];
  LinksOf out;
  for (std::int32_t round = 0; round < step.transfers.rounds(); ++round)
    step.transfers.for_each(
        part - step.first_part, round,
        [&](std::int32_t from, std::int32_t to, std::int64_t, const Terms*) {
          auto node = [&](std::int32_t at) {
            return carrier.node_of(ranks_[to_index(step.transfers.slots()[to_index(at)])]);
          };
          (node(from) == node(to) ? out.within : out.between) = true;
        });
  return out;
}

void OperationRun::put_in_turn(const Plan& plan, const Carrier& carrier) {
  bool one_stream = stream_count(plan) == 1;
  next_in_turn_.resize(parts_.size(), {-1, -1, -1});
  for (std::size_t slot = 0; slot < parts_left_.size(); ++slot) {
    std::array<std::int32_t, kMaxStreams> on_stream;
    on_stream.fill(-1);
    std::int32_t within = -1, between = -1;
    for (std::int32_t part : of_slot_[slot]) {
      std::int32_t step = parts_[part].step;
      if (steps_[step].transfers.rounds() == 0) continue;
      auto follow = [&](std::int32_t& last, std::size_t kind) {
        if (last >= 0) {
          next_in_turn_[last][kind] = part;
          ++parts_[part].waits;
        }
        last = part;
      };
      follow(on_stream[to_index(plan.steps[to_index(step)].stream)], 0);
      if (one_stream) continue;
      LinksOf links = links_of(part, carrier);
      if (links.within) follow(within, 1);
      if (links.between) follow(between, 2);
    }
  }
}

std::int32_t OperationRun::part_at(Slot slot, std::int32_t step) const {
  std::span<const std::int32_t> own = of_slot_[slot];
  auto it = std::lower_bound(
      own.begin(), own.end(), step,
      [this](std::int32_t part, std::int32_t wanted) { return parts_[part].step < wanted; });
  return it != own.end() && parts_[*it].step == step ? *it : -1;
}

// ---- while it runs

void OperationRun::start_slot(Slot slot, std::int32_t waited, std::vector<std::int32_t>& ready) {
  for (std::int32_t part : of_slot_[slot]) {
    if (parts_[part].waits > 0) continue;
    note(part, waited);
    ready.push_back(part);
  }
}

OperationRun::Parts OperationRun::neighbouring_parts(std::int32_t part) const {
  std::int32_t step = parts_[part].step, first = steps_[step].first_part;
  return {step, first, static_cast<std::int32_t>(steps_[step].transfers.slots().size())};
}

std::int64_t OperationRun::parts_left() const {
  return std::accumulate(parts_left_.begin(), parts_left_.end(), std::int64_t{0});
}

void OperationRun::pass_over(std::int32_t part, std::int64_t now_ps) {
  if (!parts_[part].gathered) parts_[part].start_ps = now_ps;
  parts_[part].round = steps_[parts_[part].step].transfers.rounds() - 1;
}

// The last part of a group releases all of them.
void OperationRun::gather(std::int32_t part, std::vector<std::int32_t>& ready) {
  StepRun& step = steps_[parts_[part].step];
  std::int32_t group = step.transfers.gathers(), number = (part - step.first_part) / group,
               first = step.first_part + number * group;
  parts_[part].gathered = true;
  if (--step.missing[to_index(number)] > 0) return;
  for (std::int32_t each = first; each < first + group; ++each) {
    note(each, waited(part));
    ready.push_back(each);
  }
}

OperationRun::Progress OperationRun::go_on(std::int32_t part, std::int64_t now_ps,
                                           std::vector<Transit>& transits,
                                           std::vector<std::int32_t>& ready) {
  SlotStep& at = parts_[part];
  const StepRun& step = steps_[at.step];
  if (at.round < 0 && !at.gathered) at.start_ps = now_ps;
  if (recording_) recording_->waited[part].last = recording_->waited[part].next;
  if (duration_ps_ > 0 && at.round < 0) {
    at.round = 0;
    return Progress::Sleeps;
  }
  if (!step.missing.empty() && !at.gathered) {
    gather(part, ready);
    return Progress::Waits;
  }
  // A round in which the part has nothing to do is skipped.
  while (++at.round < step.transfers.rounds()) {
    step.transfers.for_each(
        part - step.first_part, at.round,
        [&](std::int32_t source, std::int32_t destination, std::int64_t bytes, const Terms* terms) {
          source += step.first_part;
          destination += step.first_part;
          ++at.pending;
          // A transfer starts when the later of its two ends reaches its round.
          if (parts_[source == part ? destination : source].round != at.round) return;
          transits.push_back({id_, step_of(part), rank_of(source), rank_of(destination), source,
                              destination, bytes, terms});
        });
    check_at_once(transits);
    if (at.pending > 0) return Progress::Waits;
  }
  return Progress::Done;
}

void OperationRun::check_at_once(const std::vector<Transit>& transits) const {
  if (transits.size() > to_index(kMaxInFlight))
    throw OperationRefused(
        id_,
        fmt::format("expected at most {} transfers at the same time, found more", kMaxInFlight));
}

void OperationRun::finish(std::int32_t part, std::vector<std::int32_t>& ready) {
  const SlotStep& at = parts_[part];
  --parts_left_[at.slot];
  if (!next_in_turn_.empty())
    for (std::int32_t next : next_in_turn_[part]) {
      if (next < 0) continue;
      note(next, waited(part));
      if (--parts_[next].waits == 0) ready.push_back(next);
    }
  for (std::int32_t dependent : steps_[at.step].dependents) {
    std::int32_t next = part_at(at.slot, dependent);
    if (next < 0) continue;
    note(next, waited(part));
    if (--parts_[next].waits == 0) ready.push_back(next);
  }
}

}  // namespace reshard::sim
