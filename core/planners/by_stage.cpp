// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/by_stage.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/demand/likeness.h"
#include "core/plan/carried_over.h"
#include "core/plan/join.h"
#include "core/planners/each_tensor.h"

namespace reshard {
namespace {

// With more stages, only the reasons for single steps are kept.
constexpr std::size_t kManyStages = 8;

Explanation of_steps(const Explanation& why) {
  Explanation out;
  for (const Explanation::Line& line : why.lines())
    if (line.step) out.add(*line.step, line.why);
  return out;
}

struct StagePlan {
  Plan plan;
  Explanation why;
};

// The plans of one stage, or of several with equal requests: of the planner that was asked for, and
// if it weighs others, theirs by name.
struct StagePlans {
  std::shared_ptr<const StagePlan> asked;
  std::map<std::string, std::shared_ptr<const StagePlan>, std::less<>> others;
};

// A plan of the job; no time: over the memory limits.
struct Whole {
  std::string planner;  // of the stages
  Plan plan;
  Explanation why;
  PlanFindings found;
  std::int64_t first_use_ps = 0;
  auto cost() const {
    return std::pair(found.timing->time_ps + first_use_ps, found.bytes->peak_max);
  }
};

class ByStage {
 public:
  ByStage(const PlannerRow& planner, std::span<const Request> requests, const Stages& stages,
          const PlannerInput& input)
      : planner_(planner), requests_(requests), stages_(stages), input_(input) {
    std::vector<Digest> likeness;
    for (const Stage& stage : stages)
      likeness.push_back(likeness_of(requests_of(stage), {}, *input.topology));
    std::set<Digest> different(likeness.begin(), likeness.end());
    std::map<Digest, std::shared_ptr<const StagePlans>> equal, alike;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      std::vector<Request> own = requests_of(stages[s]);
      std::shared_ptr<const StagePlans>& plans = equal[fingerprint_of(own)];
      if (!plans) {
        std::shared_ptr<const StagePlans>& known = alike[likeness[s]];
        // Reasons can name ranks.
        plans = known && input.explanation == nullptr
                    ? carried(*known, own)
                    : plans_of(own, static_cast<std::int64_t>(different.size()));
        if (!known) known = plans;
      }
      of_stage_.push_back(plans);
    }
  }

  // What the planner makes of every stage.
  Plan plan() {
    Whole own = joined(std::string(planner_.name), [](const StagePlans& of) { return of.asked; });
    if (input_.explanation != nullptr) add_shifted(own.why, 0, *input_.explanation);
    if (input_.memory.any())
      require_fit(fmt::format("planner {}", planner_.name), *own.found.needs, input_.memory);
    if (input_.found != nullptr) *input_.found = std::move(own.found);
    return std::move(own.plan);
  }

  // The best of that and of every other planner's plan of all stages.
  Plan best() {
    consider(joined(std::string(planner_.name), [](const StagePlans& of) { return of.asked; }));
    for (const PlannerRow& row : planners()) {
      auto made = [&](const StagePlans& of) {
        auto at = of.others.find(row.name);
        return at == of.others.end() ? nullptr : at->second;
      };
      auto all = [&](auto&& holds) {
        return std::all_of(of_stage_.begin(), of_stage_.end(),
                           [&](const auto& plans) { return holds(*plans); });
      };
      // Considered above.
      if (all([&](const StagePlans& of) { return made(of) == of.asked; })) continue;
      if (all([&](const StagePlans& of) { return made(of) != nullptr; }))
        consider(joined(std::string(row.name), made));
      else if (!row.weighs_others)
        say(fmt::format("{} has no plan of some stage", row.name));
    }
    return taken();
  }

 private:
  std::vector<Request> requests_of(const Stage& stage) const {
    std::vector<Request> out;
    for (TensorId tensor : stage.tensors) out.push_back(requests_[to_index(tensor)]);
    return out;
  }

  std::shared_ptr<const StagePlans> plans_of(const std::vector<Request>& requests,
                                             std::int64_t different) const {
    auto out = std::make_shared<StagePlans>();
    Explanation why;
    PlannerInput own = input_;
    own.p2p = nullptr;
    own.found = nullptr;
    own.jobs = different;
    own.explanation = input_.explanation != nullptr ? &why : nullptr;
    own.memory = {.extra_bytes = input_.memory.extra_bytes};  // the whole is fitted again
    own.on_candidate = [&](std::string_view name, const Plan& plan, const Explanation* reasons) {
      out->others.emplace(name, std::make_shared<const StagePlan>(StagePlan{
                                    plan, reasons != nullptr ? *reasons : Explanation()}));
    };
    Plan plan = made_by(planner_, Demand(requests), own);
    // Plans are large, and the one that is asked for is mostly one of the others'.
    auto same = out->others.find(plan.planner);
    if (same != out->others.end() && input_.explanation == nullptr)
      out->asked = same->second;
    else
      out->asked = std::make_shared<const StagePlan>(StagePlan{std::move(plan), std::move(why)});
    return out;
  }

  // The plans of a stage as those of one that is alike.
  static std::shared_ptr<const StagePlans> carried(const StagePlans& plans,
                                                   const std::vector<Request>& requests) {
    auto carry = [&](const std::shared_ptr<const StagePlan>& of) {
      return std::make_shared<const StagePlan>(StagePlan{carried_over(of->plan, requests), {}});
    };
    auto out = std::make_shared<StagePlans>();
    for (const auto& [name, plan] : plans.others) {
      std::shared_ptr<const StagePlan> made = carry(plan);
      if (plan == plans.asked) out->asked = made;
      out->others.emplace(name, std::move(made));
    }
    if (!out->asked) out->asked = carry(plans.asked);
    return out;
  }

  template <class Choose>
  Whole joined(std::string planner, Choose&& choose) const {
    std::vector<const Plan*> plans;
    Explanation why;
    std::int32_t first = 0;
    for (std::size_t s = 0; s < of_stage_.size(); ++s) {
      std::shared_ptr<const StagePlan> own = choose(*of_stage_[s]);
      plans.push_back(&own->plan);
      if (input_.explanation == nullptr) continue;
      why.add(fmt::format("stage {} by {}", s, own->plan.planner));
      add_shifted(of_stage_.size() > kManyStages ? of_steps(own->why) : own->why, first, why);
      first += static_cast<std::int32_t>(own->plan.steps.size());
    }
    bool same = std::all_of(plans.begin(), plans.end(), [&](const Plan* plan) {
      return plan->planner == plans.front()->planner;
    });
    Plan plan = join_stages({requests_.begin(), requests_.end()}, stages_, plans,
                            same ? plans.front()->planner : std::string(kByStage));
    PlanFindings found;
    finish(plan, input_, found);
    return {std::move(planner), std::move(plan), std::move(why), std::move(found)};
  }

  void consider(Whole own) {
    own.found.bytes = count_bytes(own.plan);
    std::int64_t peak = own.found.bytes->peak_max;
    if (input_.memory.any() && (!least_ || excess_bytes(*own.found.needs, input_.memory) <
                                               excess_bytes(*least_, input_.memory)))
      least_ = own.found.needs;
    if (input_.first_use_ps) own.first_use_ps = input_.first_use_ps(own.plan);
    Explanation::Alternative& row = alternatives_.emplace_back();
    row.planner = own.planner;
    row.first_use_ps = own.first_use_ps;
    row.peak_bytes = peak;
    if (input_.memory.any() && !fits(*own.found.needs, input_.memory))
      return say(fmt::format("{} in every stage takes more memory than the limit", own.planner));
    std::int64_t limit_ps = kNoTimeLimit;
    if (best_ && input_.explanation == nullptr)
      limit_ps = std::max<std::int64_t>(1, best_->cost().first - own.first_use_ps);
    own.found.timing = input_.plan_time(own.plan, *input_.topology, limit_ps);
    row.time_ps = own.found.timing->time_ps;
    say(fmt::format("{} in every stage takes {}, peak {}", own.planner,
                    duration_text(own.found.timing->time_ps), bytes_text(peak)));
    if (!best_ || own.cost() < best_->cost()) best_ = std::move(own);
  }

  void say(std::string what) { remarks_.push_back(std::move(what)); }

  Plan taken() {
    if (!best_) require_fit(fmt::format("planner {}", planner_.name), *least_, input_.memory);
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
    add_shifted(best_->why, 0, *input_.explanation);
  }

  const PlannerRow& planner_;
  std::span<const Request> requests_;
  const Stages& stages_;
  const PlannerInput& input_;
  std::vector<std::shared_ptr<const StagePlans>> of_stage_;
  std::optional<Whole> best_;
  std::optional<MemoryNeeds> least_;  // of the plan nearest to the limits
  std::vector<std::string> remarks_;
  std::vector<Explanation::Alternative> alternatives_;
};

}  // namespace

Plan make_plan_by_stage(const PlannerRow& planner, std::span<const Request> requests,
                        const Stages& stages, const PlannerInput& input) {
  if (stages.empty()) return make_plan(planner, Demand(requests), input);
  ByStage by_stage(planner, requests, stages, input);
  return planner.weighs_others ? by_stage.best() : by_stage.plan();
}

}  // namespace reshard
