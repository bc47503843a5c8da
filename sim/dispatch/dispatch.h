// SPDX-License-Identifier: BSD-3-Clause
// From lines on named tensors to the work of every rank: each call is decided, the redistributions
// that its inputs need become separate operations before it, and later lines wait for the
// operations that produce the values they name.
//
//   trace with calls -> decision for each line (choices.h, look_ahead.cpp) -> trace without calls
//   (emission.h), and a report of the decisions
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/ops/decision_cache.h"
#include "sim/dispatch/choices.h"
#include "sim/dispatch/dispatched.h"
#include "sim/dispatch/sharing/sharing.h"
#include "sim/dispatch/work.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

struct DispatchOptions {
  DispatchMode mode = DispatchMode::Torch;
  std::int64_t cache_size = DecisionCache::kDefaultCapacity;
  // For PyTorch's costs, if the trace does not state on what its `expect` were recorded.
  std::int32_t devices_per_host = 8;
  // Report implicit redistributions as findings.
  bool explicit_only = false;
  // Redistributions of values that no call produces start this many calls early, on a separate
  // stream.
  std::int64_t prefetch = 0;
  // Duration of a request, for Best; and the figures to report for one. Empty: none are reported.
  std::function<std::int64_t(const Request& request)> time_ps = {};
  std::function<MoveFigures(const Request& request)> figures = {};
  // Duration of the trace under the decisions. It is computed for every alternative of Best, so
  // that Best never takes longer than Torch. Empty: only moves are added up.
  std::function<std::int64_t(const Trace& trace)> trace_ps = {};
  // To estimate calls without a duration. None: they take no time.
  std::optional<GpuFigures> gpu = {};
};

// Number of steps by collective, as CommDebugMode counts them.
using CollectiveCounts = std::map<std::string_view, std::int64_t>;

// Source of the number of devices per host in PyTorch's costs. PyTorch assumes one per host for a
// CPU mesh.
enum class PricedAs : std::uint8_t {
  Topology,
  Recorded,  // stated in the header of a trace with `expect`
  Fitted     // not stated, but more of the `expect` hold with one per host
};

std::string_view text(PricedAs as);  // "topology", "recorded", "fitted"

struct DispatchReport {
  DispatchMode mode = DispatchMode::Torch;
  std::int32_t devices_per_host = 8;  // as used in PyTorch's costs
  PricedAs priced_as = PricedAs::Topology;
  std::vector<DispatchedCall> calls;                         // in the order of the trace
  std::vector<TakenAsRecorded> recorded;                     // of these
  std::vector<TensorSpec> values;                            // by ValueId
  Sharing sharing;                                           // of the values' memory
  std::vector<std::shared_ptr<const OperatorLine>> tensors;  // declared by lines
  DecisionCacheStatistics cache;
  std::map<std::string_view, CollectiveCounts> collectives;  // by pass
  // Collectives with lines that state their place, by pass: those issued by the rank that takes
  // part in most.
  std::map<std::string_view, CollectiveCounts> issued;
  // Torch compared with Best, if Best was requested and PyTorch refuses nothing.
  std::optional<Regret> regret;
  // Numbers of calls and redistributions with computed and compared values, and of compared
  // elements; 0: none were.
  std::int64_t calls_computed = 0, elements_compared = 0;
  // Among these, elements that are infinite as a whole but NaN as a sum, since all addends are
  // infinite, with both signs.
  std::int64_t elements_cancelled = 0;
  // Number of calls and redistributions without computed values.
  std::int64_t calls_left_out = 0;
  // Why there are none, or none of these calls; empty: nothing is left out, or none were requested.
  std::string values_left_out;
  std::vector<TraceFinding> findings;  // unmet expectations, moves that must be explicit
};

// Rewrites the trace. Throws InputError "FILE:LINE: ..." for a call that cannot be done.
DispatchReport dispatch(Trace& trace, const DispatchOptions& options);

}  // namespace reshard::sim
