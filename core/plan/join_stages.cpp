// SPDX-License-Identifier: BSD-3-Clause
// Joins the plans of a job's stages, and makes their steps wait for each other.
//
// A dependency holds on the ranks that have a part in both of its steps. So each rank is looked at
// by itself: its *first* steps of a stage are those that wait for no other of its steps there, its
// *last* ones those for which none of these waits. Its first steps come after its last ones of the
// stages before; of a stage in which it has no part, those of the stages before that one. On other
// ranks with a part in both steps, the same order is wanted.
#include <algorithm>
#include <iterator>
#include <set>

#include "core/base/errors.h"
#include "core/base/grouped.h"
#include "core/plan/join.h"

namespace reshard {
namespace {

using Steps = std::vector<StepId>;

class InTurn {
 public:
  explicit InTurn(Plan& plan)
      : plan_(plan),
        stage_of_(stage_of_steps(plan)),
        of_slot_(plan.slot_count(),
                 [&](auto put) {
                   for (std::size_t s = 0; s < plan.steps.size(); ++s)
                     for (Slot slot : slots_of(plan.steps[s])) put(slot, id_of<StepId>(s));
                 }),
        after_(plan.steps.size()),
        seen_on_(plan.steps.size(), -1),
        waited_for_on_(plan.steps.size(), -1),
        first_(plan.stages.size()),
        last_(plan.stages.size()) {}

  void run() {
    // Ranks with the same steps have the same order.
    std::set<std::vector<StepId>> known;
    for (std::size_t s = 0; s < plan_.slot_count(); ++s) {
      auto slot = static_cast<Slot>(s);
      if (known.emplace(of_slot_[slot].begin(), of_slot_[slot].end()).second) put_in_turn(slot);
    }
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      Steps both;
      std::merge(plan_.steps[s].after.begin(), plan_.steps[s].after.end(), after_[s].begin(),
                 after_[s].end(), std::back_inserter(both));
      plan_.steps[s].after = std::move(both);
    }
  }

 private:
  void put_in_turn(Slot slot) {
    for (Steps& steps : first_) steps.clear();
    for (Steps& steps : last_) steps.clear();
    find_ends(slot);
    for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage) {
      Steps before;
      for (std::int32_t other : plan_.stages[stage].after) add(before, last_[to_index(other)]);
      for (StepId step : first_[stage]) add(after_[step], before);
      // Who comes after a stage in which the rank has no part comes after those before it.
      if (last_[stage].empty()) last_[stage] = std::move(before);
    }
  }

  void find_ends(Slot slot) {
    for (StepId step : of_slot_[slot]) {
      bool first = true;
      for (StepId before : plan_.steps[to_index(step)].after) {
        if (seen_on_[before] != slot) continue;
        waited_for_on_[before] = slot;
        first = false;
      }
      seen_on_[step] = slot;
      if (first) first_[to_index(stage_of_[step])].push_back(step);
    }
    for (StepId step : of_slot_[slot])
      if (waited_for_on_[step] != slot) last_[to_index(stage_of_[step])].push_back(step);
  }

  // Both ascend. Most ranks add what others have added.
  static void add(Steps& to, const Steps& more) {
    if (std::includes(to.begin(), to.end(), more.begin(), more.end())) return;
    Steps both;
    std::set_union(to.begin(), to.end(), more.begin(), more.end(), std::back_inserter(both));
    to = std::move(both);
  }

  Plan& plan_;
  IndexVector<StepId, std::int32_t> stage_of_;
  Grouped<StepId> of_slot_;
  IndexVector<StepId, Steps> after_;                   // what is added, by step
  IndexVector<StepId, Slot> seen_on_, waited_for_on_;  // the last slot for which it was so
  std::vector<Steps> first_, last_;                    // of one slot, by stage
};

}  // namespace

Plan join_stages(std::vector<Request> tensors, Stages stages, std::span<const Plan* const> plans,
                 std::string planner) {
  RESHARD_CHECK(plans.size() == stages.size(), "as many plans as stages");
  std::vector<PlanOfTensors> parts;
  for (std::size_t s = 0; s < stages.size(); ++s) parts.push_back({plans[s], stages[s].tensors});
  Plan out = join(std::move(tensors), parts, std::move(planner));
  out.stages = std::move(stages);
  InTurn(out).run();
  return out;
}

}  // namespace reshard
