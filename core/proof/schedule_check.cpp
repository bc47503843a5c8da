// SPDX-License-Identifier: BSD-3-Clause
// Runs all ranks' schedules together on the symbolic memory.
#include "core/proof/proof.h"

#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/proof/symbolic_memory.h"

namespace reshard {
namespace {

// The plan with the ranks' scratch buffers added to its temporaries.
Plan with_scratch(const Plan& plan, const std::vector<RankSchedule>& schedules) {
  Plan out = plan;
  for (std::size_t b = plan.buffers.size(); b < schedules.front().buffers.size(); ++b) {
    Buffer* scratch = nullptr;
    for (const RankSchedule& schedule : schedules) {
      const LocalBuffer& buffer = schedule.buffers[b];
      if (!buffer.exists) continue;
      if (scratch == nullptr) scratch = &out.buffer(out.add_temporary(buffer.tensor));
      scratch->set_shape(schedule.slot, buffer.shape);
    }
  }
  return out;
}

// Produces what all ranks do in a step, launch by launch.
class Together {
 public:
  Together(const Plan& plan, const std::vector<RankSchedule>& schedules)
      : plan_(plan), schedules_(schedules), next_(schedules.size(), 0) {}

  void run(StepId step, Operations& out) {
    step_ = step;
    for (bool first = true;; first = false) {
      std::vector<const Launch*> side_by_side;
      for (std::size_t r = 0; r < schedules_.size(); ++r) {
        const std::vector<Launch>& launches = schedules_[r].launches;
        if (next_[r] < launches.size() && launches[next_[r]].step == step)
          side_by_side.push_back(&launches[next_[r]++]);
      }
      if (side_by_side.empty()) return;
      if (!first) out.then();
      for (const Launch* launch : side_by_side) {
        if (const auto* local = std::get_if<LocalWork>(&launch->work)) local->run(out);
        if (const auto* native = std::get_if<NativeCollective>(&launch->work))
          collect(*launch, *native, out);
      }
      deliver(side_by_side, out);
    }
  }

 private:
  [[noreturn]] void refute(std::string what) const { throw Refuted{{step_, std::move(what)}}; }

  void deliver(const std::vector<const Launch*>& launches, Operations& out) const {
    using PeerMessage = Messages::PeerMessage;
    std::map<std::pair<Slot, Slot>, const PeerMessage*> sent;
    auto for_each = [&](auto&& visit) {
      for (const Launch* launch : launches)
        if (const auto* messages = std::get_if<Messages>(&launch->work)) visit(*messages);
    };
    for_each([&](const Messages& messages) {
      for (const PeerMessage& message : messages.sends)
        if (!sent.try_emplace({message.moves.front().from.slot, message.peer}, &message).second)
          refute("has two messages between the same ranks");
    });
    for_each([&](const Messages& messages) {
      for (const PeerMessage& message : messages.receives) {
        auto found = sent.find({message.peer, message.moves.front().to.slot});
        if (found == sent.end()) refute("has a message that no rank sends");
        if (found->second->moves != message.moves)
          refute("has a message whose sender and receiver differ on its boxes");
        for (const PlacedMove& move : message.moves) out.copy(move.from, move.to, move.extents);
        sent.erase(found);
      }
    });
    if (!sent.empty()) refute("has a message that no rank receives");
  }

  // Done once per group, at its first member.
  void collect(const Launch& launch, const NativeCollective& work, Operations& out) const {
    if (launch.group[to_index(work.member)] != work.input.at.slot)
      refute("has a rank at the wrong position in its group");
    if (work.member != 0) return;
    CollectiveStep step{work.kind, work.op, work.divisor, work.input.at.buffer,
                        work.output.at.buffer};
    step.input_dim = work.input_dim;
    step.output_dim = work.output_dim;
    step.group_size = static_cast<std::int32_t>(launch.group.size());
    step.members = launch.group;
    step.input_boxes = {box_at(work.input.at.lo, work.input.extents)};
    step.output_boxes = {box_at(work.output.at.lo, work.output.extents)};
    lower(plan_, Step{std::move(step), {}, {}}, out);
  }

  const Plan& plan_;
  const std::vector<RankSchedule>& schedules_;
  StepId step_{};
  std::vector<std::size_t> next_;
};

}  // namespace

std::optional<Refutation> check_schedules(const Plan& plan,
                                          const std::vector<RankSchedule>& schedules) {
  std::optional<Plan> extended;
  if (schedules.front().buffers.size() > plan.buffers.size())
    extended = with_scratch(plan, schedules);
  const Plan& whole = extended ? *extended : plan;
  Together together(whole, schedules);
  return check_operations(whole, [&](StepId step, Operations& out) { together.run(step, out); });
}

std::vector<RankSchedule> checked_schedules(const Plan& plan, std::span<const Slot> slots,
                                            const SchedulePolicy& policy) {
#ifndef NDEBUG
  // A plan that does not do its request has no meaning to compare with.
  if (check_plan(plan).proved()) {
    std::vector<Slot> all(plan.slot_count());
    std::iota(all.begin(), all.end(), 0);
    std::optional<Refutation> wrong = check_schedules(plan, rank_schedules(plan, all, policy));
    RESHARD_CHECK(!wrong, wrong->what);
  }
#endif
  return rank_schedules(plan, slots, policy);
}

}  // namespace reshard
