// SPDX-License-Identifier: BSD-3-Clause
// What a launch of a rank's schedule becomes on a GPU, worked out once when a plan is made ready:
// kernels and rounds of communication, in order.
//
// All ranks have the same kinds of actions in the same places of a step, so that one process can
// issue those of all its ranks side by side, each round in one NCCL group.
//
//   local work         kernels
//   messages           pack, round, unpack. A message that is one contiguous piece is sent from, or
//                      received into, its place.
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

// One rank's buffers on its GPU: shards, our own or lent, temporaries in one allocation, and
// staging for messages that are not contiguous.
//
// A rank's work runs in listed order on one stream, so temporaries and staging are used again
// without further care. Until memory is taken addresses are made up, aligned as real ones: what is
// built on them has its true size, and a plan that does not fit is refused before anything is
// taken.
class RankMemory : public DeviceBuffers {
 public:
  // `shards` by tensor; none: they are taken as the rest is. The schedule must outlive this.
  RankMemory(const RankSchedule& schedule, std::span<const CallerShards> shards);

  // The most that any launch stages; before allocate.
  void need_staging(std::int64_t bytes);
  std::int64_t needed_bytes() const;
  void allocate(Device& device);
  void abandon();

  Slot slot() const { return schedule_.slot; }
  const LocalBuffer& buffer(BufferId id) const { return schedule_.buffer(id); }
  std::byte* at(BufferId buffer) const;
  std::byte* staging() const { return regions_.back().begin; }

  std::byte* data(BufferId buffer, Slot) const override { return at(buffer); }
  Shape shape(BufferId id, Slot) const override { return buffer(id).shape; }
  DType dtype(BufferId id) const override { return buffer(id).dtype; }

 private:
  // Of our own, or lent, which has no bytes to take.
  struct Region {
    std::byte* begin;
    std::int64_t needed_bytes = 0;
    DeviceMemory memory = {};
  };

  const RankSchedule& schedule_;
  TemporaryLayout layout_;
  std::vector<Region> regions_;  // source and destination of every tensor, temporaries, staging
};

struct Kernels {
  std::vector<LaunchTables::Id> tables;
};

// Bytes to or from a global rank.
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

// One group of NCCL: transfers, each list ascending by peer, or a collective of NCCL's own.
struct Round {
  std::vector<Transfer> sends, receives;
  std::optional<Native> native;
};

using Action = std::variant<Kernels, Round>;

// What may be used: decided once per executor.
struct ActionOptions {
  bool declared_order = false;
  bool has_all_to_all = true;
  bool over_parent = false;  // groups get no communicators: their collectives are sends and
                             // receives over the one of all ranks, in declared order
};

// NCCL's own collectives; its reductions where it gives the store's bits, at least on data that are
// exact in any order: sums and products, and min and max of integers. NCCL's min and max of
// floating values drop NaN.
SchedulePolicy schedule_policy(const ActionOptions& options);

// Bytes that the launch stages.
std::int64_t staging_bytes(const RankMemory& memory, const Launch& launch);

// Tables of kernels are added to `tables`.
std::vector<Action> make_actions(const Plan& plan, const RankMemory& memory, const Launch& launch,
                                 LaunchTables& tables);

}  // namespace reshard::backends::nccl
