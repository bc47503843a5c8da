// SPDX-License-Identifier: BSD-3-Clause
// Derives the schedules of the ranks asked for in one pass over the plan.
#include "core/schedule/rank_schedule.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/base/errors.h"
#include "core/bytes/box_copy.h"
#include "core/schedule/collective_messages.h"

namespace reshard {
namespace {

// Checks the operand on every member of one group: their buffers can have different shapes.
bool one_stretch(const Plan& plan, BufferId buffer, std::span<const Slot> group, const Box& box) {
  return std::all_of(group.begin(), group.end(), [&](Slot slot) {
    return stretch_of(plan.buffer(buffer).shape(slot), box.lo, box.extents()).has_value();
  });
}

CollectiveFacts facts_of(const Plan& plan, const CollectiveStep& step) {
  CollectiveFacts facts{step.kind,       step.op, step.divisor, plan.dtype(step.input),
                        step.group_size, 0,       true};
  for (std::size_t g = 0; g < step.group_count(); ++g) {
    Box input = input_of(plan, step, g), output = output_of(plan, step, g);
    facts.operand_bytes = std::max({facts.operand_bytes, input.volume(), output.volume()});
    if (!step.input_boxes.empty())
      facts.contiguous &= one_stretch(plan, step.input, step.group(g), input);
    if (!step.output_boxes.empty())
      facts.contiguous &= one_stretch(plan, step.output, step.group(g), output);
  }
  facts.operand_bytes *= plan.element_bytes(step.input);
  return facts;
}

class Derivation : private Operations {
 public:
  Derivation(const Plan& plan, std::span<const Slot> slots, const SchedulePolicy& policy)
      : plan_(plan), policy_(policy), place_of_slot_(plan.slot_count(), -1) {
    for (Slot slot : slots) {
      RESHARD_CHECK(slot >= 0 && to_index(slot) < plan.slot_count() &&
                        (schedules_.empty() || schedules_.back().slot < slot),
                    "slots of rank_schedules");
      place_of_slot_[to_index(slot)] = static_cast<std::int32_t>(schedules_.size());
      RankSchedule& schedule = schedules_.emplace_back();
      schedule.slot = slot;
      for (const Buffer& buffer : plan.buffers)
        add_buffer(schedule, buffer.exists(slot) ? buffer.shape(slot) : Shape(), buffer.tensor(),
                   buffer.exists(slot), buffer.role() == BufferRole::Temporary);
    }
    ends_.resize(schedules_.size());
  }

  std::vector<RankSchedule> run() {
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      step_ = StepId{static_cast<std::int32_t>(s)};
      if (const CollectiveStep* collective = collective_of(plan_.steps[s]))
        add(*collective);
      else
        lower(plan_, plan_.steps[s], *this);
    }
    return std::move(schedules_);
  }

 private:
  // For one rank: by step, its final launches.
  using Ends = std::unordered_map<std::int32_t, std::vector<std::int32_t>>;

  void add_buffer(RankSchedule& schedule, const Shape& shape, TensorId tensor, bool exists,
                  bool temporary) {
    schedule.buffers.push_back({tensor, plan_.request(tensor).dtype(), shape, exists, temporary});
  }

  std::vector<std::int32_t> after_of(std::size_t place) const {
    std::vector<std::int32_t> out;
    for (StepId before : plan_.steps[step_].after)
      if (auto found = ends_[place].find(static_cast<std::int32_t>(before));
          found != ends_[place].end())
        out.insert(out.end(), found->second.begin(), found->second.end());
    std::sort(out.begin(), out.end());
    return out;
  }

  // The slot's work in the current step, created on first use; null if no schedule is wanted for
  // the slot.
  template <class Work>
  Work* work_of(Slot slot) {
    std::int32_t place = place_of_slot_[to_index(slot)];
    if (place < 0) return nullptr;
    auto at = to_index(place);
    std::vector<Launch>& launches = schedules_[at].launches;
    if (launches.empty() || launches.back().step != step_) {
      ends_[at][static_cast<std::int32_t>(step_)] = {static_cast<std::int32_t>(launches.size())};
      launches.push_back({step_, after_of(at), {}, Work{}});
    }
    return &std::get<Work>(launches.back().work);
  }

  void copy(const Place& from, const Place& to, const DimVector& extents) override {
    PlacedMove move{from, to, extents};
    if (from.slot == to.slot) {
      if (auto* work = work_of<LocalWork>(from.slot)) work->copies.push_back(std::move(move));
      return;
    }
    if (auto* work = work_of<Messages>(from.slot)) message_with(to.slot, work->sends, move);
    if (auto* work = work_of<Messages>(to.slot)) message_with(from.slot, work->receives, move);
  }

  void fill(const Place& to, const DimVector& extents) override {
    if (auto* work = work_of<LocalWork>(to.slot)) work->fills.push_back({to, extents});
  }

  void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands, const Place& to,
            const DimVector& extents) override {
    auto* work = work_of<LocalWork>(to.slot);
    if (!work) return;
    work->op = op;
    work->divisor = divisor;
    work->folds.push_back({{operands.begin(), operands.end()}, to, extents});
  }

  // The moves of one message are consecutive.
  static void message_with(Slot peer, std::vector<Messages::PeerMessage>& out,
                           const PlacedMove& move) {
    if (out.empty() || out.back().peer != peer) out.push_back({peer, {}});
    out.back().moves.push_back(move);
  }

  void add(const CollectiveStep& step) {
    CollectiveFacts facts = facts_of(plan_, step);
    bool native = !policy_.native || policy_.native(facts);
    bool divided_apart = native && facts.folds() && step.divisor > 1 && !policy_.native_divides;
    BufferId scratch{-1};
    if (facts.folds() && (!native || divided_apart)) {
      scratch = BufferId{static_cast<std::int32_t>(plan_.buffers.size() + scratch_count_++)};
      for (RankSchedule& schedule : schedules_)
        add_buffer(schedule, {}, plan_.buffer(step.input).tensor(), false, true);
    }
    for (std::size_t g = 0; g < step.group_count(); ++g)
      for (std::int32_t m = 0; m < step.group_size; ++m) {
        Slot slot = step.group(g)[to_index(m)];
        std::int32_t place = place_of_slot_[to_index(slot)];
        if (place >= 0)
          add_collective(to_index(place), GroupPart(plan_, step, g, m), native, scratch);
      }
  }

  void add_collective(std::size_t place, const GroupPart& part, bool native, BufferId scratch) {
    RankSchedule& schedule = schedules_[place];
    CollectiveLaunches made = native ? part.native(scratch) : part.messages(scratch);
    if (scratch != BufferId{-1}) {
      LocalBuffer& buffer = schedule.buffers[to_index(scratch)];
      buffer.shape = made.scratch;
      buffer.exists = true;
    }
    auto first = static_cast<std::int32_t>(schedule.launches.size());
    std::vector<std::int32_t>& ends = ends_[place][static_cast<std::int32_t>(step_)];
    for (std::size_t i = 0; i < made.works.size(); ++i) {
      auto position = first + static_cast<std::int32_t>(i);
      // In sequence, or independent of each other.
      bool waits = made.in_order && i > 0;
      if (waits) ends.clear();
      ends.push_back(position);
      schedule.launches.push_back({step_,
                                   waits ? std::vector{position - 1} : after_of(place),
                                   {part.group().begin(), part.group().end()},
                                   std::move(made.works[i])});
    }
  }

  const Plan& plan_;
  const SchedulePolicy& policy_;
  StepId step_{};
  std::vector<std::int32_t> place_of_slot_;
  std::vector<RankSchedule> schedules_;
  std::vector<Ends> ends_;  // used for look-ups only
  std::size_t scratch_count_ = 0;
};

}  // namespace

void LocalWork::run_one(std::size_t i, Operations& out) const {
  if (i < copies.size()) return out.copy(copies[i].from, copies[i].to, copies[i].extents);
  i -= copies.size();
  if (i < fills.size()) return out.fill(fills[i].at, fills[i].extents);
  const Fold& fold = folds[i - fills.size()];
  out.fold(op, divisor, fold.operands, fold.to, fold.extents);
}

std::vector<RankSchedule> rank_schedules(const Plan& plan, std::span<const Slot> slots,
                                         const SchedulePolicy& policy) {
  return Derivation(plan, slots, policy).run();
}

void for_each_box(const Launch& launch,
                  const std::function<void(const PlacedBox&, bool is_write)>& visit) {
  if (const auto* local = std::get_if<LocalWork>(&launch.work)) {
    for (const PlacedMove& copy : local->copies) {
      visit({copy.from, copy.extents}, false);
      visit({copy.to, copy.extents}, true);
    }
    for (const PlacedBox& fill : local->fills) visit(fill, true);
    for (const LocalWork::Fold& fold : local->folds) {
      for (const Place& operand : fold.operands) visit({operand, fold.extents}, false);
      visit({fold.to, fold.extents}, true);
    }
  } else if (const auto* messages = std::get_if<Messages>(&launch.work)) {
    for (const Messages::PeerMessage& message : messages->sends)
      for (const PlacedMove& move : message.moves) visit({move.from, move.extents}, false);
    for (const Messages::PeerMessage& message : messages->receives)
      for (const PlacedMove& move : message.moves) visit({move.to, move.extents}, true);
  } else {
    const auto& native = std::get<NativeCollective>(launch.work);
    visit(native.input, false);
    visit(native.output, true);
  }
}

void for_each_collective(const Plan& plan, const VisitCollective& visit) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    if (const CollectiveStep* step = collective_of(plan.steps[s]))
      visit(StepId{static_cast<std::int32_t>(s)}, facts_of(plan, *step));
}

std::vector<std::vector<Rank>> groups_of(const Plan& plan, StepId step) {
  std::vector<std::vector<Rank>> out;
  const CollectiveStep* collective = collective_of(plan.steps[step]);
  for (std::size_t g = 0; collective != nullptr && g < collective->group_count(); ++g) {
    std::vector<Rank>& group = out.emplace_back();
    for (Slot slot : collective->group(g)) group.push_back(plan.rank_of(slot));
  }
  return out;
}

std::int64_t count_of(const NativeCollective& collective, std::int32_t group_size) {
  const PlacedBox& operand =
      collective.kind == CollectiveKind::ReduceScatter ? collective.output : collective.input;
  std::int64_t elements = element_count(operand.extents);
  return collective.kind == CollectiveKind::AllToAll ? elements / group_size : elements;
}

}  // namespace reshard
