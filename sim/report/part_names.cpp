// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/part_names.h"

namespace reshard::sim {

std::string_view part_kind(const Workload& workload, OpId op, std::int32_t step) {
  const auto& body = workload.operations[to_index(op)].body;
  if (const auto* run = std::get_if<RunPlan>(&body)) return kind_text(run->plan->steps[step]);
  if (const auto* collective = std::get_if<BareCollective>(&body)) return text(collective->kind);
  if (std::holds_alternative<Setup>(body)) return "setup";
  return std::holds_alternative<Compute>(body) ? "compute" : "message";
}

std::string part_name(const Workload& workload, const std::vector<std::string>& labels, OpId op,
                      std::int32_t step) {
  std::size_t index = to_index(op);
  std::string label = index < labels.size() ? labels[index] : std::string{};
  if (step < 0) return label.empty() ? "operation " + std::to_string(index) : label;
  std::string kind{part_kind(workload, op, step)};
  return label.empty() ? kind : label + ": " + kind;
}

}  // namespace reshard::sim
