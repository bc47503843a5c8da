// SPDX-License-Identifier: BSD-3-Clause
// Runs the schedules of all ranks in the worst possible order: a launch starts as soon as the
// launches that it waits for are done, and among several the last one first, so that a missing wait
// shows.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/host/rank_memory.h"
#include "core/bytes/box_copy.h"
#include "core/pattern/pattern.h"
#include "core/schedule/rank_schedule.h"

namespace reshard::test {

inline std::vector<Slot> all_slots(const Plan& plan) {
  std::vector<Slot> slots(plan.slot_count());
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

using Memories = std::vector<std::unique_ptr<backends::host::RankMemory>>;

// All ranks' memories as one, for what collectives mean.
class AllMemory : public HostOperations<AllMemory> {
 public:
  explicit AllMemory(const Memories& memories) : memories_(memories) {}

  std::vector<std::byte> bytes(const PlacedBox& box) const {
    std::int64_t width = size_bytes(dtype(box.at.buffer));
    std::vector<std::byte> out(to_index(element_count(box.extents) * width));
    copy_box(out.data(), {box.extents, DimVector(box.extents.size())}, read(box.at),
             {shape(box.at, box.extents), box.at.lo}, box.extents, width);
    return out;
  }
  void poison(const PlacedBox& box) {
    std::int64_t width = size_bytes(dtype(box.at.buffer));
    std::vector<std::byte> bad(to_index(element_count(box.extents) * width), std::byte{0xa5});
    copy_box(write(box.at), {shape(box.at, box.extents), box.at.lo}, bad.data(),
             {box.extents, DimVector(box.extents.size())}, box.extents, width);
  }

 private:
  friend class HostOperations<AllMemory>;
  const backends::host::RankMemory& of(Slot slot) const { return *memories_[to_index(slot)]; }
  const std::byte* read(const Place& from) const { return of(from.slot).of(from.buffer); }
  std::byte* write(const Place& to) { return of(to.slot).of(to.buffer); }
  const Shape& shape(const Place& place, const DimVector&) const {
    return of(place.slot).schedule().buffer(place.buffer).shape;
  }
  DType dtype(BufferId buffer) const { return of(0).schedule().buffer(buffer).dtype; }

  const Memories& memories_;
};

// All ranks in one process, on poisoned memory.
class Adversary {
 public:
  Adversary(const Plan& plan, const SchedulePolicy& policy)
      : plan_(plan), schedules_(rank_schedules(plan, all_slots(plan), policy)) {
    for (RankSchedule& schedule : schedules_) {
      TemporaryLayout layout = lay_out_temporaries(temporary_lives(schedule), 16);
      arenas_.push_back(
          std::vector<std::byte>(static_cast<std::size_t>(layout.total_bytes), std::byte{0xa5}));
      before_.push_back(launches_before(schedule, layout));
      memories_.push_back(
          std::make_unique<backends::host::RankMemory>(schedule, std::span<const CallerShards>()));
      memories_.back()->lay_out(layout, arenas_.back().data());
      done_.emplace_back(schedule.launches.size(), false);
    }
  }

  backends::host::RankMemory& memory(Slot slot) {
    return *memories_[static_cast<std::size_t>(slot)];
  }

  // False where nothing can run any more and something is left, or where a collective began before
  // its input was there.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = schedules_.size(); r-- > 0;)
        for (std::size_t i = done_[r].size(); i-- > 0;)
          if (!done_[r][i] && ready(r, i)) moved = attempt(r, i) || moved;
    }
    return in_time_ && std::all_of(done_.begin(), done_.end(), [](const std::vector<bool>& all) {
             return std::find(all.begin(), all.end(), false) == all.end();
           });
  }

 private:
  using Key = std::tuple<std::int32_t, std::size_t, Slot, Slot>;  // step, launch in it, from, to

  bool ready(std::size_t r, std::size_t i) const {
    return std::all_of(before_[r][i].begin(), before_[r][i].end(), [&](std::int32_t before) {
      return done_[r][static_cast<std::size_t>(before)];
    });
  }

  std::size_t place_in_step(std::size_t r, std::size_t i) const {
    std::size_t first = i;
    while (first > 0 && schedules_[r].launches[first - 1].step == schedules_[r].launches[i].step)
      --first;
    return i - first;
  }

  // False where nothing has come of it.
  bool attempt(std::size_t r, std::size_t i) {
    const Launch& launch = schedules_[r].launches[i];
    auto slot = static_cast<Slot>(r);
    if (const auto* local = std::get_if<LocalWork>(&launch.work)) {
      local->run(memory(slot));
    } else if (const auto* native = std::get_if<NativeCollective>(&launch.work)) {
      return begin(launch, *native, i);
    } else {
      const auto& messages = std::get<Messages>(launch.work);
      auto key = [&](Slot from, Slot to) {
        return Key(static_cast<std::int32_t>(launch.step), place_in_step(r, i), from, to);
      };
      bool sends = false;
      for (const Messages::PeerMessage& message : messages.sends)
        if (!sent_.count(key(slot, message.peer))) {
          sent_[key(slot, message.peer)] = packed(message, slot);
          sends = true;
        }
      for (const Messages::PeerMessage& message : messages.receives)
        if (!sent_.count(key(message.peer, slot))) return sends;
      for (const Messages::PeerMessage& message : messages.receives)
        unpack(message, slot, sent_[key(message.peer, slot)]);
    }
    return done_[r][i] = true;
  }

  // A library reads a member's input and writes its output at any time from when the member begins
  // until all have begun: the input must be there by then, the output's place no longer in use.
  bool begin(const Launch& launch, const NativeCollective& work, std::size_t i) {
    std::map<Slot, Begun>& begun = begun_[{launch.step, launch.group[0]}];
    Slot slot = work.input.at.slot;
    if (!begun.try_emplace(slot, Begun{i, work.input, everywhere_.bytes(work.input)}).second)
      return false;
    everywhere_.poison(work.output);
    if (begun.size() < launch.group.size()) return true;
    for (const auto& [member, at] : begun) {
      in_time_ = in_time_ && everywhere_.bytes(at.input) == at.bytes;
      done_[to_index(member)][at.launch] = true;
    }
    CollectiveStep step{work.kind,
                        work.op,
                        work.divisor,
                        work.input.at.buffer,
                        work.output.at.buffer,
                        work.input_dim,
                        work.output_dim,
                        static_cast<std::int32_t>(launch.group.size()),
                        launch.group,
                        {box_at(work.input.at.lo, work.input.extents)},
                        {box_at(work.output.at.lo, work.output.extents)}};
    lower(plan_, Step{std::move(step), {}, {}}, everywhere_);
    return true;
  }

  backends::host::HostMessage local(const Messages::PeerMessage& message, Slot slot,
                                    backends::host::End end) {
    return backends::host::message_of(message, end, std::cref(memory(slot)), 1 << 30);
  }
  std::vector<std::byte> packed(const Messages::PeerMessage& message, Slot slot) {
    backends::host::HostMessage from = local(message, slot, backends::host::End::Sends);
    std::vector<std::byte> out(static_cast<std::size_t>(from.chunks[0].bytes));
    backends::host::pack(from, from.chunks[0], out.data());
    return out;
  }
  void unpack(const Messages::PeerMessage& message, Slot slot,
              const std::vector<std::byte>& bytes) {
    backends::host::HostMessage to = local(message, slot, backends::host::End::Receives);
    REQUIRE(static_cast<std::size_t>(to.chunks[0].bytes) == bytes.size());
    backends::host::unpack(to, to.chunks[0], bytes.data());
  }

  struct Begun {
    std::size_t launch;
    PlacedBox input;
    std::vector<std::byte> bytes;
  };

  const Plan& plan_;
  std::vector<RankSchedule> schedules_;
  std::vector<std::vector<std::byte>> arenas_;
  std::vector<Before> before_;
  Memories memories_;
  AllMemory everywhere_{memories_};
  std::vector<std::vector<bool>> done_;
  std::map<Key, std::vector<std::byte>> sent_;
  std::map<std::pair<StepId, Slot>, std::map<Slot, Begun>> begun_;  // by step and first of group
  bool in_time_ = true;
};

// Fills every source by pattern, runs, and says whether every destination is right.
inline bool means_the_plan(const Plan& plan, Adversary& all) {
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const Layout& layout = plan.tensors[t].source();
    for (std::int32_t p = 0; p < layout.mesh().size(); ++p)
      Pattern(plan.tensors[t])
          .fill(layout, p, plan.tensors[t].addend_of(p),
                all.memory(plan.slot_of(layout.mesh().rank_at(p)))
                    .bytes(source_of(TensorId{static_cast<std::int32_t>(t)})));
  }
  if (!all.run()) return false;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const Layout& layout = plan.tensors[t].destination();
    for (std::int32_t p = 0; p < layout.mesh().size(); ++p)
      if (Pattern(plan.tensors[t])
              .check(layout, p, plan.tensors[t].addends_wanted(p),
                     all.memory(plan.slot_of(layout.mesh().rank_at(p)))
                         .bytes(destination_of(TensorId{static_cast<std::int32_t>(t)}))))
        return false;
  }
  return true;
}

}  // namespace reshard::test
