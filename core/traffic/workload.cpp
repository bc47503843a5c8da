// SPDX-License-Identifier: BSD-3-Clause
#include "core/traffic/workload.h"

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {

namespace {

std::string ranks_in_short(const std::vector<Rank>& ranks) {
  constexpr std::size_t kLongest = 40;
  if (ranks.empty()) return "no rank";
  if (std::string all = ranks_text(ranks); ranks.size() > 1 && all.size() <= kLongest)
    return "ranks " + all;
  std::string out = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size() && i < 4; ++i)
    out += fmt::format("{}{}", i == 0 ? ' ' : ',', to_int(ranks[i]));
  return ranks.size() > 4 ? fmt::format("{},.. ({} in total)", out, ranks.size()) : out;
}

}  // namespace

Workload workload_of(std::shared_ptr<const Plan> plan) {
  RESHARD_CHECK(plan != nullptr, "a workload of no plan");
  Workload workload;
  workload.operations.push_back({RunPlan{std::move(plan)}, 0, {}});
  return workload;
}

std::vector<Rank> ranks_of(const Operation& operation) {
  if (const auto* run = std::get_if<RunPlan>(&operation.body)) return run->plan->ranks;
  if (const auto* compute = std::get_if<Compute>(&operation.body)) return compute->ranks;
  if (const auto* collective = std::get_if<BareCollective>(&operation.body))
    return collective->ranks;
  if (const auto* setup = std::get_if<Setup>(&operation.body)) return setup->ranks;
  const auto& message = std::get<PointToPoint>(operation.body);
  return {message.source, message.destination};
}

bool moves_bytes(const Operation& operation) {
  return !std::holds_alternative<Compute>(operation.body) &&
         !std::holds_alternative<Setup>(operation.body);
}

std::string text(const Operation& operation) {
  std::string ranks = ranks_in_short(ranks_of(operation));
  if (const auto* run = std::get_if<RunPlan>(&operation.body))
    return fmt::format("{} plan on {}", run->plan->planner, ranks);
  if (std::holds_alternative<Compute>(operation.body)) return fmt::format("compute on {}", ranks);
  if (const auto* collective = std::get_if<BareCollective>(&operation.body))
    return collective->kind.has_root() ? fmt::format("{} {} rank {} on {}", text(collective->kind),
                                                     collective->kind.from_root() ? "from" : "to",
                                                     to_int(collective->root), ranks)
                                       : fmt::format("{} on {}", text(collective->kind), ranks);
  if (std::holds_alternative<Setup>(operation.body)) return fmt::format("setup of {}", ranks);
  const auto& message = std::get<PointToPoint>(operation.body);
  return fmt::format("message from rank {} to rank {}", to_int(message.source),
                     to_int(message.destination));
}

}  // namespace reshard
