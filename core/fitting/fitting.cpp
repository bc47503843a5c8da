// SPDX-License-Identifier: BSD-3-Clause
#include "core/fitting/fitting.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/limits.h"
#include "core/schedule/held_memory.h"
#include "core/schedule/packed_messages.h"

namespace reshard {
namespace {

// What is left for packed messages on every rank, if nothing else can be made smaller.
std::vector<std::int64_t> left_for_messages(const Plan& plan, const MemoryLimits& limits) {
  std::vector<std::int64_t> out = held_temporaries(plan);
  for (std::size_t s = 0; s < out.size(); ++s) {
    std::int64_t tensors = tensor_bytes(plan, static_cast<Slot>(s)),
                 most = std::numeric_limits<std::int64_t>::max();
    if (limits.limit_bytes) most = std::min(most, *limits.limit_bytes - tensors);
    if (limits.extra_bytes) most = std::min(most, *limits.extra_bytes);
    out[s] = most - out[s];
  }
  return out;
}

// As many waves for each step as its packed messages need at least.
IndexVector<StepId, std::int32_t> waves_for(const Plan& plan, const std::vector<std::int64_t>& left,
                                            std::int32_t most) {
  IndexVector<StepId, std::int32_t> out(plan.steps.size(), 1);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto* exchange = exchange_of(plan.steps[s]);
    if (exchange == nullptr) continue;
    std::vector<std::int64_t> packed = packed_per_slot(plan, *exchange);
    std::int64_t waves = 1;
    for (std::size_t slot = 0; slot < packed.size(); ++slot)
      if (packed[slot] > 0)
        waves = std::max(waves, left[slot] <= 0 ? most : ceil_div(packed[slot], left[slot]));
    out[id_of<StepId>(s)] = static_cast<std::int32_t>(std::min<std::int64_t>(waves, most));
  }
  return out;
}

// A quarter more waves for every exchange, or twice as many; false if all have the most.
bool add_waves(const Plan& plan, IndexVector<StepId, std::int32_t>& waves, std::int32_t most,
               bool twice) {
  bool more = false;
  for (std::size_t s = 0; s < waves.size(); ++s) {
    std::int32_t& own = waves[id_of<StepId>(s)];
    if (exchange_of(plan.steps[s]) == nullptr || own >= most) continue;
    own = std::min(most, own + std::max(1, twice ? own : own / 4));
    more = true;
  }
  return more;
}

}  // namespace

MemoryNeeds memory_needs(const Plan& plan) {
  MemoryNeeds out;
  std::vector<std::int64_t> held = held_memory(plan);
  for (std::size_t slot = 0; slot < held.size(); ++slot) {
    out.bytes = std::max(out.bytes, held[slot]);
    out.extra_bytes =
        std::max(out.extra_bytes, held[slot] - tensor_bytes(plan, static_cast<Slot>(slot)));
  }
  return out;
}

std::int64_t excess_bytes(const MemoryNeeds& needs, const MemoryLimits& limits) {
  return std::max({std::int64_t{0}, needs.bytes - limits.limit_bytes.value_or(needs.bytes),
                   needs.extra_bytes - limits.extra_bytes.value_or(needs.extra_bytes)});
}

bool fits(const MemoryNeeds& needs, const MemoryLimits& limits) {
  return excess_bytes(needs, limits) == 0;
}

void require_fit(std::string_view who, const MemoryNeeds& needs, const MemoryLimits& limits) {
  auto require = [&](std::string_view what, std::int64_t bytes, std::optional<std::int64_t> limit) {
    if (limit && bytes > *limit)
      throw InputError(
          fmt::format("{}: expected at least {} bytes per rank, which {} needs, "
                      "found {}",
                      what, bytes, who, *limit));
  };
  require("memory limit", needs.bytes, limits.limit_bytes);
  require("extra memory", needs.extra_bytes, limits.extra_bytes);
}

namespace {

Fitted fit_by(Plan& plan, const MemoryLimits& limits, const NodeOf& node_of, bool if_possible) {
  plan.frees_sources = limits.free_sources;
  MemoryNeeds needs = memory_needs(plan);
  if (fits(needs, limits)) return {needs, false};
  std::vector<std::vector<StepId>> after;
  for (const Step& step : plan.steps) after.push_back(step.after);
  run_in_turn(plan);
  needs = memory_needs(plan);
  if (fits(needs, limits)) return {needs, true};
  split_contiguous(plan);
  needs = memory_needs(plan);
  if (fits(needs, limits)) return {needs, true};
  std::int32_t most = most_waves(plan);
  // What freed sources leave is not known before they are freed.
  std::vector<std::int64_t> left = limits.free_sources
                                       ? std::vector<std::int64_t>(plan.slot_count(), kMaxBytes)
                                       : left_for_messages(plan, limits);
  for (std::size_t s = 0; s < after.size(); ++s) plan.steps[s].after = std::move(after[s]);
  if (if_possible && std::any_of(left.begin(), left.end(), [](auto bytes) { return bytes < 0; }))
    return {needs, true};
  IndexVector<StepId, std::int32_t> waves = waves_for(plan, left, most);
  for (;;) {
    Plan cut = in_waves(plan, waves, node_of);
    needs = memory_needs(cut);
    if (fits(needs, limits) || !add_waves(plan, waves, most, limits.free_sources)) {
      plan = std::move(cut);
      return {needs, true};
    }
  }
}

}  // namespace

Fitted fit(Plan& plan, const MemoryLimits& limits, const NodeOf& node_of) {
  return fit_by(plan, limits, node_of, false);
}
Fitted fit_if_possible(Plan& plan, const MemoryLimits& limits, const NodeOf& node_of) {
  return fit_by(plan, limits, node_of, true);
}

}  // namespace reshard
