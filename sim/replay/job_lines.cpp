// SPDX-License-Identifier: BSD-3-Clause
#include "sim/replay/job_lines.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace reshard::sim {

std::optional<JobFacts> job_facts_of(const Trace& trace,
                                     std::span<const std::shared_ptr<Study>> studies,
                                     std::span<const std::shared_ptr<const Carriage>> transports,
                                     const Timeline& timeline, const Topology& topology) {
  std::vector<const Request*> tensors;
  std::vector<TensorUse> uses;
  std::vector<Rank> ranks;
  // The bound holds for all of them if it holds for those with switches that do most.
  Switches use = Switches::Forward;
  for (std::size_t op = 0; op < studies.size(); ++op) {
    if (!studies[op] || studies[op]->tensors().size() == 1) continue;
    // Names are those of the line: equal jobs share a plan, whatever their names.
    for (const Request& request : *std::get<TraceRedistribute>(trace.operations[op].body).requests)
      tensors.push_back(&request);
    auto of_line = studies[op]->tensor_uses(timeline, id_of<OpId>(op));
    uses.insert(uses.end(), of_line.begin(), of_line.end());
    const std::vector<Rank>& own = studies[op]->plan_in_series().ranks;
    ranks.insert(ranks.end(), own.begin(), own.end());
    if (switches_of(transports[op]->kind()) == Switches::Reduce) use = Switches::Reduce;
  }
  if (tensors.empty()) return std::nullopt;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return job_facts(tensors, uses, timeline, CutSets(topology, std::move(ranks), use));
}

}  // namespace reshard::sim
