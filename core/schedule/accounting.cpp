// SPDX-License-Identifier: BSD-3-Clause
#include "core/schedule/accounting.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/schedule/accesses.h"
#include "core/schedule/expansion.h"

namespace reshard {
namespace {

void count_received(const Step& step, std::size_t s, const Plan& plan, std::int64_t size,
                    PlanBytes& out) {
  auto add = [&](Slot slot, std::int64_t elements) {
    out.received_per_step[s] += elements * size;
    out.received_per_slot[static_cast<std::size_t>(slot)] += elements * size;
  };
  if (const auto* exchange = std::get_if<ExchangeStep>(&step.body)) {
    for (const ExchangeStep::Message& message : exchange->messages)
      for (std::uint32_t i = message.moves.first; i < message.moves.first + message.moves.count;
           ++i)
        add(message.destination, exchange->moves.elements(i));
  } else if (const auto* collective = std::get_if<CollectiveStep>(&step.body)) {
    for (std::size_t g = 0; g < collective->group_count(); ++g) {
      std::span<const Slot> group = collective->group(g);
      Expansion expansion(collective->kind, default_algorithm(collective->kind),
                          collective->group_size, expansion_elements(*collective, plan, group[0]));
      for (std::int32_t m = 0; m < collective->group_size; ++m)
        add(group[static_cast<std::size_t>(m)], expansion.received(m));
    }
  }
}

}  // namespace

std::int64_t expansion_elements(const CollectiveStep& step, const Plan& plan, Slot member) {
  std::int64_t input = plan.buffer(step.input).elements(member),
               output = plan.buffer(step.output).elements(member);
  switch (step.kind) {
    case CollectiveKind::AllGather:
    case CollectiveKind::AllReduce:
      return input;
    case CollectiveKind::ReduceScatter:
      return output;
    case CollectiveKind::AllToAll:
      return input / step.group_size;
  }
  return 0;
}

PlanBytes count_bytes(const Plan& plan) {
  std::size_t slots = plan.slot_count();
  std::int64_t size = size_bytes(plan.request.dtype());
  PlanBytes out;
  out.received_per_step.assign(plan.steps.size(), 0);
  out.received_per_slot.assign(slots, 0);
  out.peak_per_slot.assign(slots, 0);
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    count_received(plan.steps[s], s, plan, size, out);
  for (std::int64_t received : out.received_per_slot) {
    out.received_max = std::max(out.received_max, received);
    out.received_total += received;
  }

  Lives lives = lives_of(plan);
  std::vector<std::int64_t> change(plan.steps.size() + 1);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    auto id = static_cast<Slot>(slot);
    std::fill(change.begin(), change.end(), 0);
    for (std::size_t b = 2; b < plan.buffers.size(); ++b) {
      std::int32_t begin = lives.begin[b * slots + slot], end = lives.end[b * slots + slot];
      if (begin < 0) continue;
      change[static_cast<std::size_t>(begin)] += plan.buffers[b].elements(id) * size;
      change[static_cast<std::size_t>(end) + 1] -= plan.buffers[b].elements(id) * size;
    }
    std::int64_t live = 0, most = 0;
    for (std::int64_t by : change) most = std::max(most, live += by);
    out.peak_per_slot[slot] =
        (plan.buffer(kSourceBuffer).elements(id) + plan.buffer(kDestinationBuffer).elements(id)) *
            size +
        most;
    out.peak_max = std::max(out.peak_max, out.peak_per_slot[slot]);
  }
  return out;
}

Lives lives_of(const Plan& plan) {
  std::size_t slots = plan.slot_count();
  Lives lives{std::vector<std::int32_t>(plan.buffers.size() * slots, -1),
              std::vector<std::int32_t>(plan.buffers.size() * slots, -1)};
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for_each_access(plan.steps[s], [&](BufferId buffer, Slot slot, bool is_write) {
      RESHARD_CHECK(to_index(buffer) < plan.buffers.size(),
                    "step " + std::to_string(s) + " names a buffer that is not there");
      std::size_t at = to_index(buffer) * slots + static_cast<std::size_t>(slot);
      if (is_write && lives.begin[at] < 0) lives.begin[at] = static_cast<std::int32_t>(s);
      lives.end[at] = static_cast<std::int32_t>(s);
    });
  return lives;
}

}  // namespace reshard
