// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/by_stage.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/planners/each_tensor.h"

namespace reshard {
namespace {

struct StagePlan {
  Plan plan;
  Explanation explanation;
};

class ByStage {
 public:
  ByStage(std::span<const Request> requests, const Stages& stages, const PlannerInput& input)
      : requests_(requests), stages_(stages), input_(input) {
    for (const Stage& stage : stages) {
      std::vector<Request>& of = of_stage_.emplace_back();
      for (TensorId tensor : stage.tensors) of.push_back(requests[to_index(tensor)]);
    }
  }

  // The joined plan; its reasons are added to `why`.
  Plan joined(const PlannerRow& planner, Explanation& why) {
    std::map<Digest, std::unique_ptr<StagePlan>> made;
    std::vector<const Plan*> plans;
    std::vector<const StagePlan*> of_stage;
    for (const std::vector<Request>& own : of_stage_) {
      std::unique_ptr<StagePlan>& known = made[fingerprint_of(own)];
      if (!known) known = made_by_planner(planner, own);
      of_stage.push_back(known.get());
      plans.push_back(&known->plan);
    }
    bool same = std::all_of(plans.begin(), plans.end(), [&](const Plan* plan) {
      return plan->planner == plans.front()->planner;
    });
    explain(of_stage, why);
    return join_stages({requests_.begin(), requests_.end()}, stages_, plans,
                       same ? plans.front()->planner : std::string(kByStage));
  }

  // The best of what `planner` makes of every stage, and of every other planner's plan of the job.
  Plan best(const PlannerRow& planner) {
    offer(std::string(planner.name), [&](Explanation& why) { return joined(planner, why); });
    std::string why = too_large_for_each(Demand(requests_));
    for (const PlannerRow& row : planners()) {
      if (row.weighs_others) continue;
      if (row.each_tensor && !why.empty())
        say(fmt::format("{} left out: {}", row.name, why));
      else
        offer(std::string(row.name), [&](Explanation& reasons) { return joined(row, reasons); });
    }
    return taken();
  }

 private:
  // A plan of the job; no time: over the memory limit.
  struct Whole {
    std::string planner;  // of the stages
    Plan plan;
    Explanation explanation;
    PlanFindings found;
    std::int64_t first_use_ps = 0;
    auto cost() const {
      return std::pair(found.timing->time_ps + first_use_ps, found.bytes->peak_max);
    }
  };

  std::unique_ptr<StagePlan> made_by_planner(const PlannerRow& planner,
                                             const std::vector<Request>& requests) const {
    Explanation explanation;
    PlannerInput own = input_;
    own.p2p = nullptr;
    own.found = nullptr;
    own.explanation = input_.explanation != nullptr ? &explanation : nullptr;
    Plan plan = made_by(planner, Demand(requests), own);
    return std::make_unique<StagePlan>(StagePlan{std::move(plan), std::move(explanation)});
  }

  void explain(const std::vector<const StagePlan*>& plans, Explanation& out) const {
    if (input_.explanation == nullptr) return;
    std::int32_t first = 0;
    for (std::size_t s = 0; s < plans.size(); ++s) {
      out.add(fmt::format("stage {}: {}", s, plans[s]->plan.planner));
      add_shifted(plans[s]->explanation, first, out);
      first += static_cast<std::int32_t>(plans[s]->plan.steps.size());
    }
  }

  void say(std::string what) { remarks_.push_back(std::move(what)); }

  template <class Make>
  void offer(std::string planner, Make&& make) {
    try {
      Explanation why;
      Plan plan = make(why);
      PlanBytes bytes = count_bytes(plan);
      consider({std::move(planner), std::move(plan), std::move(why), {std::move(bytes), {}}});
    } catch (const InputError& error) {
      say(error.what());
      if (!refusal_) refusal_ = error;
      alternatives_.push_back({.planner = std::move(planner), .refusal = error.what()});
    }
  }

  void consider(Whole own) {
    std::int64_t peak = own.found.bytes->peak_max;
    least_peak_ = std::min(least_peak_.value_or(peak), peak);
    if (input_.first_use_ps) own.first_use_ps = input_.first_use_ps(own.plan);
    Explanation::Alternative& row = alternatives_.emplace_back();
    row.planner = own.planner;
    row.first_use_ps = own.first_use_ps;
    row.peak_bytes = peak;
    if (peak > input_.memory_limit_bytes.value_or(peak))
      return say(fmt::format("{} takes more memory than the limit", own.planner));
    std::int64_t limit_ps = kNoTimeLimit;
    if (best_ && input_.explanation == nullptr)
      limit_ps = std::max<std::int64_t>(1, best_->cost().first - own.first_use_ps);
    own.found.timing = input_.plan_time(own.plan, *input_.topology, limit_ps);
    row.time_ps = own.found.timing->time_ps;
    say(fmt::format("{} in every stage takes {}, peak {}", own.planner,
                    duration_text(own.found.timing->time_ps), bytes_text(peak)));
    if (!best_ || own.cost() < best_->cost()) best_ = std::move(own);
  }

  Plan taken() {
    if (!best_) {
      if (!least_peak_) throw *refusal_;
      require_memory("planner auto", *least_peak_, *input_.memory_limit_bytes);
    }
    explain_choice();
    if (input_.found != nullptr) *input_.found = std::move(best_->found);
    return std::move(best_->plan);
  }

  void explain_choice() {
    if (input_.explanation == nullptr) return;
    for (std::string& remark : remarks_) input_.explanation->add(std::move(remark));
    input_.explanation->add(fmt::format("{} is taken in every stage", best_->planner));
    for (Explanation::Alternative& row : alternatives_) {
      row.taken = row.planner == best_->planner;
      input_.explanation->add(std::move(row));
    }
    add_shifted(best_->explanation, 0, *input_.explanation);
  }

  std::span<const Request> requests_;
  const Stages& stages_;
  const PlannerInput& input_;
  std::vector<std::vector<Request>> of_stage_;
  std::optional<Whole> best_;
  std::vector<std::string> remarks_;
  std::vector<Explanation::Alternative> alternatives_;
  std::optional<std::int64_t> least_peak_;
  std::optional<InputError> refusal_;
};

}  // namespace

Plan make_plan_by_stage(const PlannerRow& planner, std::span<const Request> requests,
                        const Stages& stages, const PlannerInput& input) {
  if (stages.empty()) return make_plan(planner, Demand(requests), input);
  ByStage by_stage(requests, stages, input);
  if (planner.weighs_others) return by_stage.best(planner);
  Explanation why;
  Plan plan = by_stage.joined(planner, why);
  if (input.explanation != nullptr) add_shifted(why, 0, *input.explanation);
  if (input.memory_limit_bytes) {
    PlanBytes bytes = count_bytes(plan);
    require_memory(fmt::format("planner {}", planner.name), bytes.peak_max,
                   *input.memory_limit_bytes);
    if (input.found != nullptr) input.found->bytes = std::move(bytes);
  }
  return plan;
}

}  // namespace reshard
