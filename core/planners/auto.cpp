// SPDX-License-Identifier: BSD-3-Clause
// Makes every other planner's plan, times each on the actual topology, and takes the best that fits
// the memory limit. Which plan is best depends on sizes and links in ways that no rule of thumb
// captures, and timing a plan costs far less than running it.
#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/plan/join.h"
#include "core/planners/planner.h"

namespace reshard {
namespace {

struct ConsideredPlan {
  std::string planner;
  Plan plan;
  Explanation explanation;
  PlanFindings found = {};  // no time: over the memory limit
  std::int64_t first_use_ps = 0;
  // An earlier candidate with the same plan: then this one is never taken, and its plan is
  // discarded.
  const ConsideredPlan* like = nullptr;

  std::int64_t peak_bytes() const { return found.bytes->peak_max; }
  std::int64_t total_ps() const { return found.timing->time_ps + first_use_ps; }
  auto cost() const { return std::pair(total_ps(), peak_bytes()); }
  bool fits(const MemoryLimits& limits) const {
    return !limits.any() || reshard::fits(*found.needs, limits);
  }
};

// The plans that planners made, and why the others refused.
struct Refusal {
  std::string planner;
  std::string why;
};
class Candidates {
 public:
  // `most`: no more than so many are added; there are pointers to them.
  explicit Candidates(std::size_t most) { made_.reserve(most); }

  std::vector<ConsideredPlan>& made() { return made_; }
  const std::vector<ConsideredPlan>& made() const { return made_; }
  const std::vector<Refusal>& refusals() const { return refusals_; }
  const std::vector<std::string>& left_out() const { return left_out_; }

  // Adds what `make` makes, or why it refuses. Returns the plan, or that of an earlier candidate
  // with the same; null: refused.
  template <class Make>
  const Plan* add(std::string planner, const PlannerInput& input, Make&& make) {
    Explanation explanation;
    PlannerInput own = input;
    own.explanation = input.explanation != nullptr ? &explanation : nullptr;
    PlanFindings found;
    own.found = &found;
    own.p2p = p2p_;
    own.p2p_ps = p2p_ps_;
    try {
      Plan plan = make(own);
      finish(plan, input, found);
      auto like = std::find_if(made_.begin(), made_.end(), [&](const ConsideredPlan& other) {
        return other.plan.steps == plan.steps && other.plan.buffers == plan.buffers;
      });
      const ConsideredPlan* same = like == made_.end() ? nullptr : &*like;
      made_.push_back({planner, std::move(plan), std::move(explanation), std::move(found)});
      ConsideredPlan& made = made_.back();
      if (same != nullptr) {
        made.like = same;
        made.plan.steps = {};
        made.plan.buffers = {};
      }
      const Plan* out = same != nullptr ? &same->plan : &made.plan;
      if (planner == "p2p") p2p_ = out;
      return out;
    } catch (const InputError& error) {
      // This planner does not support the request; others may.
      refusals_.push_back({planner, error.what()});
      return nullptr;
    }
  }
  void leave_out(std::string what) { left_out_.push_back(std::move(what)); }
  void set_p2p_time(std::int64_t time_ps) { p2p_ps_ = time_ps; }

 private:
  std::vector<ConsideredPlan> made_;
  std::vector<Refusal> refusals_;
  std::vector<std::string> left_out_;
  const Plan* p2p_ = nullptr;
  std::optional<std::int64_t> p2p_ps_;
};

// ---- jobs of many tensors: in addition to the planners' plans of all of them, plans that treat
// tensors differently

// Names of plans that are no planner's: every tensor's own best plan, and collectives for some
// tensors while a planner plans the rest together.
constexpr std::string_view kSeparate = "separate", kMixed = "mixed-";

bool is_job(const Demand& demand) { return demand.tensor_count() > 1; }

std::string too_large(const Demand& demand) {
  return too_large_for_each_tensor(to_index(demand.tensor_count()), demand.ranks().size(),
                                   demand.kinds().size());
}

// The best plan of every kind of tensor alone.
std::vector<Plan> own_plans(const Demand& demand, const PlannerInput& input) {
  std::vector<Plan> out;
  for (const TensorKind& kind : demand.kinds()) {
    PlannerInput own = input;
    own.p2p = nullptr;
    own.p2p_ps.reset();
    own.found = nullptr;
    own.explanation = nullptr;
    own.memory = {};  // the whole is fitted
    own.on_candidate = {};
    out.push_back(plan_auto(kind.request(), own));
  }
  return out;
}

// In the order of the tensors, as plans that are made one by one are joined.
std::vector<PlanOfTensors> parts_of(const Demand& demand, const std::vector<Plan>& plans,
                                    const std::function<bool(std::size_t kind)>& takes) {
  std::vector<PlanOfTensors> out;
  for (std::size_t kind = 0; kind < plans.size(); ++kind)
    for (TensorId tensor : demand.kinds()[kind].tensors)
      if (takes(kind)) out.push_back({&plans[kind], {tensor}});
  std::sort(out.begin(), out.end(), [](const PlanOfTensors& a, const PlanOfTensors& b) {
    return a.tensors.front() < b.tensors.front();
  });
  return out;
}

std::vector<Request> requests_of(const Demand& demand) {
  return {demand.requests().begin(), demand.requests().end()};
}

// Tensors that are best off with collectives of their own get these; all others are planned
// together.
void add_mixed(Candidates& out, const Demand& demand, const PlannerInput& input,
               const std::vector<Plan>& plans) {
  auto alone = [&](std::size_t kind) { return find_planner(plans[kind].planner).each_tensor; };
  std::vector<PlanOfTensors> parts = parts_of(demand, plans, alone);
  std::vector<Request> rest;
  PlanOfTensors together{nullptr, {}};
  for (std::size_t kind = 0; kind < plans.size(); ++kind)
    if (!alone(kind))
      for (TensorId tensor : demand.kinds()[kind].tensors) together.tensors.push_back(tensor);
  if (parts.empty() || together.tensors.empty()) return;
  std::sort(together.tensors.begin(), together.tensors.end());
  for (TensorId tensor : together.tensors) rest.push_back(demand.requests()[to_index(tensor)]);
  for (const PlannerRow& row : planners()) {
    if (row.weighs_others || row.each_tensor) continue;
    std::string name = fmt::format("{}{}", kMixed, row.name);
    out.add(name, input, [&](const PlannerInput& own) {
      PlannerInput plain = own;
      plain.p2p = nullptr;
      plain.p2p_ps.reset();
      plain.found = nullptr;
      plain.explanation = nullptr;
      plain.memory = {};
      Plan of_rest = row.make(Demand(rest), plain);
      std::vector<PlanOfTensors> all = parts;
      together.plan = &of_rest;
      all.push_back(together);
      return join(requests_of(demand), all, name);
    });
  }
}

void add_own(Candidates& out, const Demand& demand, const PlannerInput& input) {
  std::vector<Plan> plans = own_plans(demand, input);
  out.add(std::string(kSeparate), input, [&](const PlannerInput&) {
    return join(requests_of(demand), parts_of(demand, plans, [](std::size_t) { return true; }),
                std::string(kSeparate));
  });
  add_mixed(out, demand, input, plans);
}

// A plan that is slower than the best so far need not be timed to its end, unless its time is to be
// explained.
void find_out(ConsideredPlan& own, std::span<ConsideredPlan* const> before,
              const PlannerInput& input) {
  std::int64_t limit_ps = kNoTimeLimit;
  if (input.first_use_ps) own.first_use_ps = input.first_use_ps(own.plan);
  for (const ConsideredPlan* other : before) {
    if (other->found.timing && input.explanation == nullptr)
      limit_ps =
          std::min(limit_ps, std::max<std::int64_t>(1, other->total_ps() - own.first_use_ps));
  }
  if (!own.found.bytes) own.found.bytes = count_bytes(own.plan);
  if (own.found.timing) return;
  if (own.fits(input.memory))
    own.found.timing = input.plan_time(own.plan, *input.topology, limit_ps);
}

// Times p2p's plan, which was added last, for planners that need not make a slower one. If all
// plans are to be seen, or time is not all that counts, they make theirs.
void time_p2p(Candidates& candidates, const PlannerInput& input) {
  const bool all_count = input.explanation != nullptr || input.on_candidate || input.first_use_ps ||
                         input.memory.any();
  if (all_count || candidates.made().empty()) return;
  ConsideredPlan& last = candidates.made().back();
  if (last.planner != "p2p" || last.like != nullptr) return;
  find_out(last, {}, input);
  candidates.set_p2p_time(last.found.timing->time_ps);
}

Candidates candidates_of(const Demand& demand, const PlannerInput& input) {
  Candidates out(2 * planners().size() + 1);
  std::string why = is_job(demand) ? too_large(demand) : std::string();
  for (const PlannerRow& row : planners()) {
    if (row.weighs_others) continue;
    if (row.each_tensor && !why.empty())
      out.leave_out(fmt::format("{} left out: {}", row.name, why));
    else
      out.add(std::string(row.name), input, [&](const PlannerInput& own) {
        Plan plan = made_by(row, demand, own);
        if (input.on_candidate) input.on_candidate(row.name, plan, own.explanation);
        return plan;
      });
    if (row.name == "p2p") time_p2p(out, input);
  }
  if (is_job(demand) && why.empty()) try {
      add_own(out, demand, input);
    } catch (const InputError&) {
      // Some tensor has no plan of its own.
    }
  if (out.made().empty()) {
    std::vector<std::string> reasons = out.left_out();
    for (const Refusal& refusal : out.refusals()) reasons.push_back(refusal.why);
    throw InputError(fmt::format("expected a planner that supports the request, found none: {}",
                                 fmt::join(reasons, "; ")));
  }
  return out;
}

// A plan that several planners make is counted and timed once. p2p's comes first: it is often the
// fastest, and never slow to time.
void find_out_all(std::vector<ConsideredPlan>& candidates, const PlannerInput& input) {
  std::vector<ConsideredPlan*> order;
  const ConsideredPlan* first = nullptr;
  for (ConsideredPlan& candidate : candidates) {
    if (candidate.like == nullptr) order.push_back(&candidate);
    if (candidate.planner == "p2p") first = candidate.like != nullptr ? candidate.like : &candidate;
  }
  std::stable_partition(order.begin(), order.end(),
                        [&](const ConsideredPlan* candidate) { return candidate == first; });
  for (std::size_t i = 0; i < order.size(); ++i)
    find_out(*order[i], std::span(order).first(i), input);
  for (ConsideredPlan& candidate : candidates) {
    if (candidate.like == nullptr) continue;
    candidate.found = candidate.like->found;
    candidate.first_use_ps = candidate.like->first_use_ps;
  }
}

// Adds all planners, those that made a plan and those that refused, in the order of the registry;
// then the plans that are no planner's.
void add_alternatives(const Candidates& candidates, const ConsideredPlan& best, Explanation& out) {
  auto add_made = [&](const ConsideredPlan& own) {
    out.add(Explanation::Alternative{
        .planner = own.planner,
        .time_ps = own.found.timing ? std::optional(own.found.timing->time_ps) : std::nullopt,
        .first_use_ps = own.first_use_ps,
        .peak_bytes = own.peak_bytes(),
        .taken = &own == &best});
  };
  std::size_t of_planners = 0;  // candidates that planners made come first
  for (const PlannerRow& row : planners()) {
    for (const ConsideredPlan& own : candidates.made())
      if (own.planner == row.name) {
        add_made(own);
        ++of_planners;
      }
    for (const Refusal& refusal : candidates.refusals())
      if (refusal.planner == row.name)
        out.add(Explanation::Alternative{.planner = refusal.planner, .refusal = refusal.why});
  }
  for (std::size_t i = of_planners; i < candidates.made().size(); ++i)
    add_made(candidates.made()[i]);
}

void explain(const Candidates& candidates, const ConsideredPlan& best, Explanation& out) {
  for (const ConsideredPlan& candidate : candidates.made())
    out.add(fmt::format(
        "auto: {} takes {}{}, peak {}", candidate.planner,
        candidate.found.timing ? duration_text(candidate.found.timing->time_ps)
                               : std::string("more memory than the limit"),
        candidate.first_use_ps > 0
            ? fmt::format(" and {} for its first use", duration_text(candidate.first_use_ps))
            : std::string(),
        bytes_text(candidate.peak_bytes())));
  for (const Refusal& refusal : candidates.refusals()) out.add("auto: " + refusal.why);
  for (const std::string& what : candidates.left_out()) out.add("auto: " + what);
  out.add(fmt::format("auto takes {}", best.planner));
  add_alternatives(candidates, best, out);
  for (const Explanation::Line& line : best.explanation.lines()) {
    if (line.step)
      out.add(*line.step, line.why);
    else
      out.add(line.why);
  }
}

}  // namespace

Plan plan_auto(const Demand& demand, const PlannerInput& input) {
  RESHARD_CHECK(input.plan_time != nullptr && input.topology != nullptr,
                "auto needs a topology and a way to time plans on it");
  Candidates found = candidates_of(demand, input);
  std::vector<ConsideredPlan>& candidates = found.made();
  find_out_all(candidates, input);
  ConsideredPlan* best = nullptr;
  // If plans are equal, the first in the registry is taken.
  for (ConsideredPlan& candidate : candidates)
    if (candidate.found.timing && (best == nullptr || candidate.cost() < best->cost()))
      best = &candidate;
  if (best == nullptr) {
    auto excess = [&](const ConsideredPlan& own) {
      return excess_bytes(*own.found.needs, input.memory);
    };
    auto least = std::min_element(
        candidates.begin(), candidates.end(),
        [&](const ConsideredPlan& a, const ConsideredPlan& b) { return excess(a) < excess(b); });
    require_fit(fmt::format("planner {}", least->planner), *least->found.needs, input.memory);
  }
  if (input.explanation != nullptr) explain(found, *best, *input.explanation);
  if (input.found != nullptr) *input.found = std::move(best->found);
  return std::move(best->plan);
}

}  // namespace reshard
