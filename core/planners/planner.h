// SPDX-License-Identifier: BSD-3-Clause
// Planners by name. A new strategy is one file with one function, declared below, and one row in
// registry.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/demand/demand.h"
#include "core/fitting/fitting.h"
#include "core/plan/executor.h"
#include "core/plan/plan.h"
#include "core/topology/topology.h"
#include "core/traffic/accounting.h"

namespace reshard {

// Why each step is there, recorded for `plan --explain`; planners write to it if they get one.
// Lines about the plan as a whole have no step.
class Explanation {
 public:
  struct Line {
    std::optional<StepId> step;
    std::string why;
  };
  void add(std::string why) { lines_.push_back({std::nullopt, std::move(why)}); }
  void add(StepId step, std::string why) { lines_.push_back({step, std::move(why)}); }
  const std::vector<Line>& lines() const { return lines_; }

  // What `auto` compared, in the order of the registry.
  struct Alternative {
    std::string planner;
    std::optional<std::int64_t> time_ps = {};  // none: refused, or over the memory limit
    std::int64_t first_use_ps = 0, peak_bytes = 0;
    std::string refusal = {};
    bool taken = false;
  };
  void add(Alternative alternative) { alternatives_.push_back(std::move(alternative)); }
  const std::vector<Alternative>& alternatives() const { return alternatives_; }

 private:
  std::vector<Line> lines_;
  std::vector<Alternative> alternatives_;
};

// How long a plan takes on a topology, and its timeline if that was recorded.
struct PlanTiming {
  std::int64_t time_ps;
  std::shared_ptr<const Timeline> timeline;
  PlanTiming(std::int64_t time, std::shared_ptr<const Timeline> recorded = nullptr)
      : time_ps(time), timeline(std::move(recorded)) {}
};

// Given by the owner of an engine. May stop once past `limit_ps`; any larger time is then a valid
// answer.
using PlanTime =
    std::function<PlanTiming(const Plan& plan, const Topology& topology, std::int64_t limit_ps)>;
inline constexpr std::int64_t kNoTimeLimit = std::numeric_limits<std::int64_t>::max();

// What a planner has already computed about the plan that it returns.
struct PlanFindings {
  std::optional<PlanBytes> bytes;
  std::optional<MemoryNeeds> needs;  // if there are limits
  std::optional<PlanTiming> timing;
  bool finished = false;  // `finish` has seen the plan
};

// What a planner can use in addition to the demand.
struct PlannerInput {
  const Topology* topology = nullptr;  // never null when a planner runs
  MemoryLimits memory = {};            // of every rank; made_by fits plans into them
  PlanTime plan_time;                  // set for `auto`; `packed` uses it if set
  bool steps_in_turn = false;          // the transport runs the steps of a stream in turn
  std::int64_t jobs = 1;               // jobs joined into one plan, this included: its stages
  // What the first use of a plan takes in addition to its time; empty: nothing is counted.
  std::function<std::int64_t(const Plan&)> first_use_ps = {};
  const Plan* p2p = nullptr;  // p2p's plan, if it is already made
  // How long that takes, if only a faster plan is of use.
  std::optional<std::int64_t> p2p_ps = {};
  Explanation* explanation = nullptr;  // optional
  // If set, a planner that weighs others calls it with their plans for the demand, and with the
  // reasons for them if it explains.
  std::function<void(std::string_view planner, const Plan& plan, const Explanation* why)>
      on_candidate = {};
  PlanFindings* found = nullptr;  // optional
};

struct PlannerRow {
  std::string_view name;
  std::string_view purpose;  // one line for --help and `doctor`
  Plan (*make)(const Demand& demand, const PlannerInput& input);
  bool weighs_others = false;     // picks a plan of another planner, by plan_time
  bool each_tensor = false;       // plans each tensor of a job by itself
  bool needs_placements = false;  // made_by refuses requests with other layouts
};

// Every planner, in the order in which they are listed; one that weighs others comes after those.
std::span<const PlannerRow> planners();
// Throws an InputError that names `field` and lists the planners.
const PlannerRow& find_planner(std::string_view name, std::string_view field = "planner");

// Derived from the input's topology; empty without one.
NodeOf nodes_of(const PlannerInput& input);

// Fits a plan into the memory limits and puts its steps on streams (core/plan/streams.h), unless
// `found` states that this was done; drops what was found of the plan if that changes it.
void finish(Plan& plan, const PlannerInput& input, PlanFindings& found);

// Makes and finishes the planner's plan, as small as the memory limits require or, if that is not
// possible, as small as possible. InputErrors name the planner.
Plan made_by(const PlannerRow& planner, const Demand& demand, const PlannerInput& input);

// The same, but throws InputError, with the least limit that the planner can keep, if the plan does
// not fit. Does not prove the plan.
Plan make_plan(const PlannerRow& planner, const Demand& demand, const PlannerInput& input);

// Whether the planner plans the tensors of the job, or of each of its stages, only together.
// Tensors with equal layouts can then be planned as series (core/plan/series.h), and are if the job
// is large.
bool plans_only_together(const PlannerRow& planner, std::span<const Request> requests,
                         const Stages& stages);

// The reason why planning tensor by tensor would take too long; empty if it would not.
std::string too_large_for_each_tensor(std::size_t tensors, std::size_t ranks, std::size_t kinds);

// The strategies, one file each.
Plan plan_rule(const Demand& demand, const PlannerInput& input);    // rule.cpp
Plan plan_graph(const Demand& demand, const PlannerInput& input);   // graph.cpp
Plan plan_p2p(const Demand& demand, const PlannerInput& input);     // p2p.cpp
Plan plan_hybrid(const Demand& demand, const PlannerInput& input);  // hybrid.cpp
Plan plan_packed(const Demand& demand, const PlannerInput& input);  // packed.cpp
Plan plan_auto(const Demand& demand, const PlannerInput& input);    // auto.cpp

}  // namespace reshard
