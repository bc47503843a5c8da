// SPDX-License-Identifier: BSD-3-Clause
// Transfers of steps and of bare collectives, and their sums.
#include "core/traffic/transfers.h"

#include <algorithm>
#include <numeric>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/schedule/lowering.h"

namespace reshard {
namespace {

Expansion expansion_of(const Plan& plan, const CollectiveStep& step, std::size_t group) {
  return Expansion(step.kind, default_algorithm(step.kind), step.group_size,
                   expansion_elements(plan, step, group));
}

// -1: the slot has no part.
std::vector<std::int32_t> parts_by_slot(const Plan& plan, std::span<const Slot> slots) {
  std::vector<std::int32_t> out(plan.slot_count(), -1);
  for (std::size_t part = 0; part < slots.size(); ++part)
    out[to_index(slots[part])] = static_cast<std::int32_t>(part);
  return out;
}

}  // namespace

std::int64_t expansion_elements(const Plan& plan, const CollectiveStep& step, std::size_t group) {
  bool scatters = step.kind == CollectiveKind::ReduceScatter;
  Box operand = scatters ? output_of(plan, step, group) : input_of(plan, step, group);
  return operand.volume() / (step.kind == CollectiveKind::AllToAll ? step.group_size : 1);
}

Transfers::Transfers(const Plan& plan, const Step& step) {
  Index index;
  if (const CollectiveStep* collective = collective_of(step)) {
    index.slots = collective->members;
    unit_bytes_ = plan.element_bytes(collective->input);
    for (std::size_t g = 0; g < collective->group_count(); ++g)
      add_expansion(expansion_of(plan, *collective, g));
  } else {
    index.slots = slots_of(step);
    std::vector<std::int32_t> part_of_slot = parts_by_slot(plan, index.slots);
    reshard::for_each_message(
        plan, step, [&](Slot source, Slot destination, std::int64_t bytes, std::int64_t) {
          index.source_parts.push_back(part_of_slot[to_index(source)]);
          index.destination_parts.push_back(part_of_slot[to_index(destination)]);
          index.bytes.push_back(bytes);
        });
    if (!index.source_parts.empty()) index.add_sends_and_receives();
  }
  index_ = std::make_shared<const Index>(std::move(index));
}

Transfers Transfers::none(std::int32_t parts) {
  static const auto kNobody = std::make_shared<const Index>();
  if (parts == 0) return Transfers(kNobody);
  Index index;
  index.slots.resize(to_index(parts));
  std::iota(index.slots.begin(), index.slots.end(), 0);
  return Transfers(std::make_shared<const Index>(std::move(index)));
}

Transfers Transfers::message(std::int64_t bytes, std::optional<Terms> terms) {
  static const auto kOneMessage = [] {
    Index index;
    index.slots = {0, 1};
    index.source_parts = {0};
    index.destination_parts = {1};
    index.add_sends_and_receives();
    return std::make_shared<const Index>(std::move(index));
  }();
  Transfers out(kOneMessage);
  out.single_bytes_ = bytes;
  out.single_terms_ = terms;
  return out;
}

Transfers Transfers::collective(CollectiveKind kind, Algorithm algorithm, std::int32_t n,
                                std::int64_t bytes) {
  Transfers out = none(n);
  out.add_expansion(Expansion(kind, algorithm, n, bytes));
  return out;
}

Transfers Transfers::collective(const BareCollective& collective) {
  auto n = static_cast<std::int32_t>(collective.ranks.size());
  if (!collective.kind.has_root()) {
    BareCollective carried = as_carried(collective);
    return Transfers::collective(*carried.kind.of_plans(), carried.algorithm, n, carried.bytes);
  }
  Index index;
  index.slots.resize(to_index(n));
  std::iota(index.slots.begin(), index.slots.end(), 0);
  for (const RootedTransfer& transfer : rooted_transfers(collective)) {
    index.source_parts.push_back(transfer.source);
    index.destination_parts.push_back(transfer.destination);
    index.bytes.push_back(transfer.bytes);
  }
  index.add_sends_and_receives();
  return Transfers(std::make_shared<const Index>(std::move(index)));
}

Transfers Transfers::flows(std::span<const Slot> slots, std::span<const Flow> flows) {
  Index index;
  index.slots.assign(slots.begin(), slots.end());
  for (const Flow& flow : flows) {
    index.source_parts.push_back(flow.source);
    index.destination_parts.push_back(flow.destination);
    index.bytes.push_back(flow.bytes);
    index.terms.push_back(flow.terms);
  }
  index.add_sends_and_receives();
  return Transfers(std::make_shared<const Index>(std::move(index)));
}

void Transfers::add_expansion(const Expansion& expansion) {
  count_ += expansion.size();
  at_once_ += expansion.size() / expansion.rounds();
  expansions_.push_back(expansion);
}

bool Transfers::is_ring() const { return !expansions_.empty() && expansions_.front().is_ring(); }

void Transfers::lay_rings(std::vector<RingPlace> places) {
  RESHARD_CHECK(is_ring() && places.size() == slots().size(), "a ring position for each part");
  places_ = std::move(places);
  at_once_ = 0;
  for (const RingPlace& place : places_) at_once_ += (place.next >= 0) + (place.next_out >= 0);
  count_ = at_once_ * rounds();
}

void Transfers::Index::add_sends_and_receives() {
  first_send.assign(slots.size() + 1, 0);
  first_receive = first_send;
  for (std::int32_t part : source_parts) ++first_send[to_index(part) + 1];
  for (std::int32_t part : destination_parts) ++first_receive[to_index(part) + 1];
  std::partial_sum(first_send.begin(), first_send.end(), first_send.begin());
  std::partial_sum(first_receive.begin(), first_receive.end(), first_receive.begin());
  std::vector<std::uint32_t> next = first_receive;
  receives.resize(destination_parts.size());
  for (std::uint32_t message = 0; message < destination_parts.size(); ++message)
    receives[next[to_index(destination_parts[message])]++] = message;
}

bool Transfers::equal_rounds() const {
  return std::all_of(expansions_.begin(), expansions_.end(),
                     [](const Expansion& expansion) { return expansion.equal_rounds(); });
}

std::optional<StepTraffic> step_traffic(const Plan& plan, const Step& step) {
  StepTraffic out;
  if (const CollectiveStep* collective = collective_of(step)) {
    if (collective->group_size < 2) return std::nullopt;
    out.slots = collective->members;
    out.kind = collective->kind;
    out.group_size = collective->group_size;
    for (std::size_t g = 0; g < collective->group_count(); ++g)
      out.group_bytes.push_back(expansion_elements(plan, *collective, g) *
                                plan.element_bytes(collective->input));
    return out;
  }
  out.slots = slots_of(step);
  std::vector<std::int32_t> part_of = parts_by_slot(plan, out.slots);
  for_each_message(
      plan, step, [&](Slot source, Slot destination, std::int64_t bytes, std::int64_t boxes) {
        out.flows.push_back(
            {part_of[to_index(source)], part_of[to_index(destination)], bytes, {}, boxes});
      });
  if (out.flows.empty()) return std::nullopt;
  return out;
}

void for_each_receipt(const Plan& plan, const Step& step,
                      const std::function<void(Slot, std::int64_t)>& visit) {
  const CollectiveStep* collective = collective_of(step);
  if (collective == nullptr)
    return for_each_message(plan, step,
                            [&](Slot, Slot destination, std::int64_t bytes, std::int64_t) {
                              visit(destination, bytes);
                            });
  std::int64_t size = plan.element_bytes(collective->input);
  for (std::size_t g = 0; g < collective->group_count(); ++g) {
    Expansion expansion = expansion_of(plan, *collective, g);
    for (std::int32_t m = 0; m < collective->group_size; ++m)
      visit(collective->group(g)[to_index(m)], expansion.received(m) * size);
  }
}

void for_each_pair(const Plan& plan, const Step& step,
                   const std::function<void(Slot, Slot, std::int64_t)>& visit) {
  const CollectiveStep* collective = collective_of(step);
  if (collective == nullptr)
    return for_each_message(plan, step,
                            [&](Slot source, Slot destination, std::int64_t bytes, std::int64_t) {
                              visit(source, destination, bytes);
                            });
  std::int64_t size = plan.element_bytes(collective->input);
  for (std::size_t g = 0; g < collective->group_count(); ++g) {
    Expansion expansion = expansion_of(plan, *collective, g);
    auto slot = [&](std::int32_t m) { return collective->group(g)[to_index(m)]; };
    std::int32_t n = collective->group_size;
    // A member of a ring receives everything from the member before it.
    if (default_algorithm(collective->kind) == Algorithm::Ring) {
      for (std::int32_t m = 0; m < n; ++m)
        visit(slot(m == 0 ? n - 1 : m - 1), slot(m), expansion.received(m) * size);
      continue;
    }
    for (std::int64_t i = 0; i < expansion.size(); ++i) {
      Transfer transfer = expansion.transfer(i);
      visit(slot(transfer.source), slot(transfer.destination), expansion.elements(transfer) * size);
    }
  }
}

}  // namespace reshard
