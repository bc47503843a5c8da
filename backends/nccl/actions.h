// SPDX-License-Identifier: BSD-3-Clause
// What a rank does in one step of the plan, worked out once when a plan is made ready: kernels and
// rounds of communication, in order.
//
// All ranks with a part in a step have the same kinds of actions in the same places, so that one
// process can issue those of all its ranks side by side, each round in one NCCL group.
//
//   copy, fill, reduce           kernel
//   exchange                     pack, round, unpack. A message whose boxes are one contiguous
//                                piece is sent from, or received into, its place.
//   all_gather, all_to_all       round (NCCL's own)
//   reduce_scatter, all_reduce   round (NCCL's own), division where there is one
//   the same in declared order   all-to-all of bytes, fold, and for all_reduce an all-gather of
//                                bytes
//   collectives over the parent  as in declared order; gathers are sends and receives, too
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "backends/device/launch_tables.h"
#include "backends/nccl/nccl_api.h"
#include "backends/nccl/rank_memory.h"
#include "core/schedule/rank_program.h"

namespace reshard::backends::nccl {

struct Kernel {
  LaunchTables::Id table;
};

// Bytes to or from a global rank.
struct Transfer {
  std::byte* at;
  std::int64_t bytes;
  std::int32_t peer;
};

enum class NativeCall { AllGather, AllToAll, ReduceScatter, AllReduce };

struct Native {
  NativeCall call;
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

using Action = std::variant<Kernel, Round>;

// What may be used: decided once per executor.
struct ActionOptions {
  bool declared_order = false;
  bool has_all_to_all = true;
  bool over_parent = false;  // groups get no communicators: their collectives are sends and
                             // receives over the one of all ranks, in declared order
};

// NCCL's own reduction where it has it and where it gives the store's bits, at least on data that
// are exact in any order: sums and products, and min and max of integers. NCCL's min and max of
// floating values drop NaN.
struct NativeFold {
  NcclType type;
  NcclOp op;
};
std::optional<NativeFold> native_fold(ReduceOp op, DType dtype, const ActionOptions& options);

// Bytes that the actions of this part stage.
std::int64_t staging_bytes(const RankMemory& memory, const RankStep& part,
                           const ActionOptions& options);

// Tables of kernels are added to `tables`.
std::vector<Action> make_actions(const RankMemory& memory, const RankStep& part,
                                 const ActionOptions& options, LaunchTables& tables);

// exchange_actions.cpp and collective_actions.cpp
std::int64_t exchange_staging_bytes(const RankMemory& memory, const RankStep& part);
std::vector<Action> exchange_actions(const RankMemory& memory, const RankStep& part,
                                     LaunchTables& tables);
std::int64_t collective_staging_bytes(const RankMemory& memory, const RankStep& part,
                                      const ActionOptions& options);
std::vector<Action> collective_actions(const RankMemory& memory, const RankStep& part,
                                       const ActionOptions& options, LaunchTables& tables);

}  // namespace reshard::backends::nccl
