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
#include <variant>
#include <vector>

#include "backends/device/launch_tables.h"
#include "backends/nccl/nccl_api.h"
#include "backends/nccl/rank_memory.h"
#include "core/schedule/rank_schedule.h"

namespace reshard::backends::nccl {

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
