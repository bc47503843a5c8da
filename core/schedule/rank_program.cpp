// SPDX-License-Identifier: BSD-3-Clause
#include "core/schedule/rank_program.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/errors.h"

namespace reshard {
namespace {

class Derivation {
 public:
  Derivation(const Plan& plan, std::span<const Slot> slots)
      : plan_(plan), program_of_slot_(plan.slot_count(), -1) {
    for (Slot slot : slots) {
      RESHARD_CHECK(slot >= 0 && static_cast<std::size_t>(slot) < plan.slot_count() &&
                        (programs_.empty() || programs_.back().slot < slot),
                    "slots of rank_programs");
      program_of_slot_[static_cast<std::size_t>(slot)] =
          static_cast<std::int32_t>(programs_.size());
      programs_.push_back({slot, {}});
    }
    place_of_step_.resize(programs_.size());
  }

  std::vector<RankProgram> run() {
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      step_ = StepId{static_cast<std::int32_t>(s)};
      std::visit([this](const auto& body) { add(body); }, plan_.steps[s].body);
    }
    return std::move(programs_);
  }

 private:
  // The slot's part of the step at hand, made when first asked for; null where the slot is not
  // ours.
  RankStep* part_of(Slot slot) {
    std::int32_t index = program_of_slot_[static_cast<std::size_t>(slot)];
    if (index < 0) return nullptr;
    std::vector<RankStep>& steps = programs_[static_cast<std::size_t>(index)].steps;
    if (steps.empty() || steps.back().step != step_) {
      RankStep step;
      step.step = step_;
      std::unordered_map<std::int32_t, std::int32_t>& by_step =
          place_of_step_[static_cast<std::size_t>(index)];
      for (StepId before : plan_.steps[to_index(step_)].after)
        if (auto found = by_step.find(static_cast<std::int32_t>(before)); found != by_step.end())
          step.after.push_back(found->second);
      by_step.emplace(static_cast<std::int32_t>(step_), static_cast<std::int32_t>(steps.size()));
      steps.push_back(std::move(step));
    }
    return &steps.back();
  }

  // Copy, fill and reduce: parts ascend by slot, so that a slot's are consecutive.
  template <class Body>
  void add(const Body& body) {
    for (std::size_t i = 0; i < body.parts.size(); ++i)
      if (RankStep* step = part_of(body.parts[i].slot)) {
        if (step->part_count == 0) step->first_part = static_cast<std::uint32_t>(i);
        ++step->part_count;
      }
  }

  void add(const ExchangeStep& body) {
    for (std::size_t i = 0; i < body.messages.size(); ++i) {
      if (RankStep* step = part_of(body.messages[i].source))
        step->sends.push_back(static_cast<std::uint32_t>(i));
      if (RankStep* step = part_of(body.messages[i].destination))
        step->receives.push_back(static_cast<std::uint32_t>(i));
    }
  }

  void add(const CollectiveStep& body) {
    for (std::size_t i = 0; i < body.members.size(); ++i)
      if (RankStep* step = part_of(body.members[i])) {
        step->group = static_cast<std::int32_t>(i) / body.group_size;
        step->member = static_cast<std::int32_t>(i) % body.group_size;
      }
  }

  const Plan& plan_;
  StepId step_{};
  std::vector<std::int32_t> program_of_slot_;
  std::vector<RankProgram> programs_;
  std::vector<std::unordered_map<std::int32_t, std::int32_t>> place_of_step_;  // looked up only
};

}  // namespace

std::vector<RankProgram> rank_programs(const Plan& plan, std::span<const Slot> slots) {
  return Derivation(plan, slots).run();
}

}  // namespace reshard
