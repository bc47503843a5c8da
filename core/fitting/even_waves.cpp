// SPDX-License-Identifier: BSD-3-Clause
// Divides a number of waves among a plan's exchanges, in proportion to their bytes.
#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/integers.h"
#include "core/fitting/waves.h"

namespace reshard {
namespace {

// The bytes that the busiest rank of an exchange sends and receives; 0 for other steps.
std::int64_t most_exchanged(const Plan& plan, const Step& step) {
  const auto* exchange = exchange_of(step);
  if (exchange == nullptr) return 0;
  std::vector<std::int64_t> bytes(plan.slot_count(), 0);
  for (const ExchangeStep::Message& message : exchange->messages)
    for (std::size_t i = message.moves.first;
         i < std::size_t{message.moves.first} + message.moves.count; ++i) {
      std::int64_t own =
          exchange->moves.elements(i) * plan.element_bytes(exchange->moves.source(i));
      bytes[to_index(message.source)] += own;
      bytes[to_index(message.destination)] += own;
    }
  return *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace

Plan in_even_waves(const Plan& plan, std::int64_t waves, const NodeOf& node_of) {
  std::vector<std::int64_t> bytes;  // by step: what its busiest rank sends and receives
  for (const Step& step : plan.steps) bytes.push_back(most_exchanged(plan, step));
  Int128 all = std::accumulate(bytes.begin(), bytes.end(), Int128{0});
  IndexVector<StepId, std::int32_t> of_step(plan.steps.size(), 1);
  for (std::size_t s = 0; s < bytes.size(); ++s)
    if (bytes[s] > 0)
      of_step[id_of<StepId>(s)] = static_cast<std::int32_t>(
          std::clamp<Int128>(Int128{bytes[s]} * waves / all, 1, most_waves(plan)));
  return in_waves(plan, of_step, node_of);
}

}  // namespace reshard
