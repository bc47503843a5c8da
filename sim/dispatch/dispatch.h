// SPDX-License-Identifier: BSD-3-Clause
// From lines on named tensors to what every rank does: each call is decided, the redistributions
// that its inputs need become operations of their own before it, and the rest of the trace waits
// for what it named.
//
//   trace with calls -> decisions (core/ops), cached -> trace without calls, and what was decided
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/decision_cache.h"
#include "core/ops/torch_moves.h"
#include "sim/trace/operator_line.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

enum class DispatchMode : std::uint8_t {
  Torch,  // what PyTorch chooses, by its own costs
  Best    // by the time of our plans, and what moves the same way twice moves once
};
std::string_view text(DispatchMode mode);

struct DispatchOptions {
  DispatchMode mode = DispatchMode::Torch;
  std::int64_t cache_size = DecisionCache::kDefaultCapacity;
  std::int32_t devices_per_host = 8;  // of PyTorch's costs
  // Implicit redistributions are findings.
  bool explicit_only = false;
  // How long a request takes, for Best.
  std::function<std::int64_t(const Request& request)> time_ps = {};
};

// An input that a call brings from where it lies, or an explicit redistribution.
struct DispatchedMove {
  std::int32_t input;  // of the flat inputs
  ValueId value;
  OpPlacements from, to;
  std::vector<OpStep> steps;
  double cost_us = 0;
  bool again = false;  // it was moved so before
};

struct DispatchedCall {
  std::int64_t line;
  std::string id, module, pass;
  std::shared_ptr<const OperatorLine> said;
  const Operator* op = nullptr;               // null: an explicit redistribution
  std::vector<std::optional<TensorSpec>> in;  // flat
  Decision decision;
  bool hit = false;
  std::vector<DispatchedMove> moves;
};

// Steps by what carries them, as CommDebugMode counts them.
using CollectiveCounts = std::map<std::string_view, std::int64_t>;

struct DispatchReport {
  DispatchMode mode = DispatchMode::Torch;
  std::vector<DispatchedCall> calls;                         // in the order of the trace
  std::vector<TensorSpec> values;                            // by ValueId
  std::vector<std::shared_ptr<const OperatorLine>> tensors;  // that lines declare
  DecisionCacheStatistics cache;
  std::map<std::string_view, CollectiveCounts> collectives;  // by pass
  // Of calls and redistributions whose values were worked out and compared; 0: none were.
  std::int64_t calls_computed = 0, elements_compared = 0;
  std::vector<TraceFinding> findings;  // expectations that do not hold, moves that must be written
};

// Rewrites the trace. Throws InputError "FILE:LINE: ..." for a call that cannot be done.
DispatchReport dispatch(Trace& trace, const DispatchOptions& options);

}  // namespace reshard::sim
