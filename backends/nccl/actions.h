// SPDX-License-Identifier: BSD-3-Clause
// Turns a launch of a rank's schedule into actions on a GPU, once, when a plan is prepared: kernels
// and rounds of communication, in order.
//
// All ranks have the same kinds of actions at the same positions of a step, so that one process can
// issue those of all its ranks together, each round in one NCCL group.
//
//   local work         kernels
//   messages           pack, round, unpack. A message that is one contiguous piece is sent from its
//                      buffer, or received into it, directly.
//   native collective  round
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "backends/device/launch_tables.h"
#include "backends/device/operation_tables.h"
#include "backends/device/owners.h"
#include "backends/nccl/nccl_api.h"
#include "core/plan/executor.h"
#include "core/schedule/rank_schedule.h"
#include "core/schedule/temporaries.h"

namespace reshard::backends::nccl {

// One rank's buffers on its GPU: shards (our own, or lent by the caller), temporaries in one
// allocation, and staging buffers for messages that are not contiguous.
//
// What one stream runs is in listed order, so its staging can be reused without further
// synchronization; who uses a temporary's memory again waits (`before`). Before allocation,
// addresses are placeholders with the alignment of real ones: what is built on them has its true
// size, so a plan that does not fit is refused before anything is allocated.
class RankMemory : public DeviceBuffers {
 public:
  // `shards` by tensor; if empty, allocate takes memory for them. The schedule must outlive this
  // object.
  RankMemory(const RankSchedule& schedule, std::span<const CallerShards> shards);

  // At least `bytes` of staging for what the stream runs; call before allocate, with the most that
  // any launch stages.
  void need_staging(std::int32_t stream, std::int64_t bytes);
  // What every launch waits for, the order of streams aside.
  Before before() const { return launches_before(schedule_, layout_); }
  std::int64_t needed_bytes() const;
  void allocate(Device& device);
  void abandon();

  Slot slot() const { return schedule_.slot; }
  const LocalBuffer& buffer(BufferId id) const { return schedule_.buffer(id); }
  std::byte* at(BufferId buffer) const;
  std::byte* staging(std::int32_t stream) const { return staging_[to_index(stream)].begin; }

  std::byte* data(BufferId buffer, Slot) const override { return at(buffer); }
  Shape shape(BufferId id, Slot) const override { return buffer(id).shape; }
  DType dtype(BufferId id) const override { return buffer(id).dtype; }

 private:
  // Our own memory, or lent memory, for which needed_bytes is 0.
  struct Region {
    std::byte* begin;
    std::int64_t needed_bytes = 0;
    DeviceMemory memory = {};
  };

  template <class Visit>
  void for_each_region(Visit&& visit);

  const RankSchedule& schedule_;
  TemporaryLayout layout_;
  std::vector<Region> regions_;  // source and destination of every tensor, temporaries
  std::vector<Region> staging_;  // by stream
};

struct Kernels {
  std::vector<LaunchTables::Id> tables;
};

// Bytes sent to or received from the peer, a global rank.
struct Transfer {
  std::byte* at;
  std::int64_t bytes;
  std::int32_t peer;
};

struct Native {
  CollectiveKind kind;
  const std::byte* from;
  std::byte* to;
  std::int64_t count;
  NcclType type;
  NcclOp op;
};

// One NCCL group: transfers, each list ascending by peer, or one of NCCL's own collectives.
struct Round {
  std::vector<Transfer> sends, receives;
  std::optional<Native> native;
};

using Action = std::variant<Kernels, Round>;

// What actions may use; decided once per executor.
struct ActionOptions {
  bool declared_order = false;
  bool has_all_to_all = true;
  bool over_parent = false;  // nothing but the parent communicator is used: collectives are sends
                             // and receives over it, in declared order, and the plan's steps run in
                             // turn on one stream
};

// Uses NCCL's own collectives, and its reductions only where they give the store's bits, at least
// on data that are exact in any order: sums, products, and min and max of integers. NCCL's min and
// max of floating-point values drop NaN.
SchedulePolicy schedule_policy(const ActionOptions& options);

// The bytes of staging that the launch needs.
std::int64_t staging_bytes(const RankMemory& memory, const Launch& launch);

// Adds the tables of the kernels to `tables`. What is staged is in the stream's staging.
std::vector<Action> make_actions(const Plan& plan, const RankMemory& memory, const Launch& launch,
                                 std::int32_t stream, LaunchTables& tables);

}  // namespace reshard::backends::nccl
