// SPDX-License-Identifier: BSD-3-Clause
// From lines on named tensors to what every rank does: each call is decided, the redistributions
// that its inputs need become operations of their own before it, and the rest of the trace waits
// for what it named.
//
//   trace with calls -> what each line takes (choices.h, look_ahead.h) -> trace without calls
//   (emission.h), and what was decided
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
  // Of PyTorch's costs, where the trace does not say what its `expect` were recorded on.
  std::int32_t devices_per_host = 8;
  // Implicit redistributions are findings.
  bool explicit_only = false;
  // Redistributions of what no call has made start so many calls early, on a stream of their own.
  std::int64_t prefetch = 0;
  // How long a request takes, for Best; all that is to be told of one. Empty: nothing is told.
  std::function<std::int64_t(const Request& request)> time_ps = {};
  std::function<MoveFigures(const Request& request)> figures = {};
  // How long the trace takes by what was decided; asked of every way that Best may go, so that it
  // never takes longer than Torch. Empty: moves alone are added up.
  std::function<std::int64_t(const Trace& trace)> trace_ps = {};
  // Of calls without a duration. None: they take no time.
  std::optional<GpuFigures> gpu = {};
};

// Steps by what carries them, as CommDebugMode counts them.
using CollectiveCounts = std::map<std::string_view, std::int64_t>;

// Where PyTorch's costs have a host's devices from. It takes a CPU mesh to have one a host.
enum class PricedAs : std::uint8_t {
  Topology,
  Recorded,  // the header of a trace with `expect` says it
  Fitted     // it does not, and more of its `expect` hold so than by the topology
};

std::string_view text(PricedAs as);  // "topology", "recorded", "fitted"

struct DispatchReport {
  DispatchMode mode = DispatchMode::Torch;
  std::int32_t devices_per_host = 8;  // that PyTorch's costs were told
  PricedAs priced_as = PricedAs::Topology;
  std::vector<DispatchedCall> calls;                         // in the order of the trace
  std::vector<TakenAsRecorded> recorded;                     // of these
  std::vector<TensorSpec> values;                            // by ValueId
  Sharing sharing;                                           // of their memory
  std::vector<std::shared_ptr<const OperatorLine>> tensors;  // that lines declare
  DecisionCacheStatistics cache;
  std::map<std::string_view, CollectiveCounts> collectives;  // by pass
  // Lines of collectives that say where they are, by pass: what the rank in most of them issues.
  std::map<std::string_view, CollectiveCounts> issued;
  // Of Torch against Best, where Best was asked for and PyTorch refuses nothing.
  std::optional<Regret> regret;
  // Of calls and redistributions whose values were worked out and compared; 0: none were.
  std::int64_t calls_computed = 0, elements_compared = 0;
  // Of these: infinite as a whole and NaN as a sum, as all addends are infinite, of both signs.
  std::int64_t elements_cancelled = 0;
  // Calls and redistributions that were not, for no values came to them; and why.
  std::int64_t calls_left_out = 0;
  std::string values_left_out;         // why, where they were asked for; empty: they were not
  std::vector<TraceFinding> findings;  // expectations that do not hold, moves that must be written
};

// Rewrites the trace. Throws InputError "FILE:LINE: ..." for a call that cannot be done.
DispatchReport dispatch(Trace& trace, const DispatchOptions& options);

}  // namespace reshard::sim
