// SPDX-License-Identifier: BSD-3-Clause
#include "sim/replay/line_plans.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/store/machine_memory.h"
#include "sim/study/tensors/job_facts.h"

namespace reshard::sim {

// make() takes these plans.
void LinePlans::plan_ahead(bool move_bytes) {
  std::vector<Studies::Wanted> wanted;
  for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
    const TraceOperation& operation = trace_.operations[i];
    const auto* job = std::get_if<TraceRedistribute>(&operation.body);
    if (job == nullptr) continue;
    try {
      if (move_bytes) require_movable(*job->requests, memory_of_machine_bytes());
    } catch (const InputError& error) {
      throw error.in(trace_.place_of(id_of<OpId>(i)));
    }
    wanted.push_back({*job->requests, operation.transport, job->stages});
  }
  studies_.plan_ahead(
      wanted, [&](std::size_t done, std::size_t total) { progress_("planning", done, total); });
}

void LinePlans::make(bool move_bytes) {
  const std::size_t count = trace_.operations.size();
  plans_.resize(count);
  different_by_op_.resize(count);
  plan_ahead(move_bytes);
  std::map<std::pair<Digest, std::optional<TransportKind>>, std::size_t> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    OpId op = id_of<OpId>(i);
    const std::optional<TransportKind> transport = trace_.operations[i].transport;
    const auto* wanted = std::get_if<TraceRedistribute>(&trace_.operations[i].body);
    if (wanted == nullptr) continue;
    progress_("planning", i, count);
    std::shared_ptr<Study> study;
    try {
      study = studies_.not_yet_proved(*wanted->requests, transport, wanted->stages);
    } catch (const InputError& error) {
      throw error.in(trace_.place_of(op));
    }
    auto [it, is_new] = numbers.try_emplace(
        {fingerprint_of(*wanted->requests, wanted->stages), transport}, different_.size());
    if (is_new)
      different_.push_back({wanted, transport, op, study, study->bytes().received_total,
                            job_text(*wanted->requests, wanted->stages)});
    peak_bytes_max_ = std::max(peak_bytes_max_, study->bytes().peak_max);
    // If the cache dropped the study and it was made again, the first copy of the plan is kept.
    different_by_op_[i] = it->second;
    plans_[i] = different_of(i).study->shared_plan_in_series();
  }
  progress_("planning", count, count);
}

void LinePlans::require_proofs() const {
  for (const DifferentLine& each : different_) try {
      each.study->require_proof();
    } catch (const InputError& error) {
      throw error.in(fmt::format("planner {}", studies_.planner().name))
          .in(trace_.place_of(each.first));
    }
}

void LinePlans::move(std::int64_t budget_bytes_each) {
  require_proofs();
  for (std::size_t i = 0; i < different_.size(); ++i) {
    progress_("moving data", i, different_.size());
    DifferentLine& each = different_[i];
    try {
      each.data = moved(studies_, each.study->shared_plan(), budget_bytes_each);
    } catch (const InputError& error) {
      throw error.in(trace_.place_of(each.first));
    }
  }
  progress_("moving data", different_.size(), different_.size());
}

}  // namespace reshard::sim
