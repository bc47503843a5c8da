// SPDX-License-Identifier: BSD-3-Clause
// Results for lines on named tensors: calls with their decisions, redistributions, and how much
// less would have sufficed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/layout/request.h"
#include "core/ops/decision.h"
#include "core/ops/torch_moves.h"
#include "sim/trace/operator_line.h"

namespace reshard::sim {

// Figures of a redistribution, planned and run alone.
struct MoveFigures {
  std::int64_t time_ps = 0, bound_ps = 0;
  std::int64_t bytes = 0;  // received from other ranks, by all ranks together
};

// The redistribution of an input of a call, or an explicit redistribution.
struct DispatchedMove {
  std::int32_t input;  // index among the flat inputs
  ValueId value;
  OpPlacements from, to;  // from: placements of the value, or of an earlier copy
  std::vector<OpStep> steps;
  double cost_us = 0;                       // PyTorch's
  bool again = false;                       // it reuses an earlier copy
  std::optional<MoveFigures> figures = {};  // none: not requested, or nothing is moved
  std::optional<OpId> operation = {};       // of the trace
};

// The source of a call's duration.
enum class DurationOf : std::uint8_t { None, Line, Estimate };
std::string_view text(DurationOf from);  // "none", "given", "estimated"

struct DispatchedCall {
  std::int64_t line;
  std::string id, module, pass;
  std::shared_ptr<const OperatorLine> op_line;
  const Operator* op = nullptr;               // null: an explicit redistribution
  std::vector<std::optional<TensorSpec>> in;  // flat
  Decision decision;
  std::string recorded = {};  // why it is taken as recorded in the trace; empty: it is decided
  bool sized = true;          // all sizes of its tensors are known
  bool hit = false;
  std::vector<DispatchedMove> moves = {};
  DurationOf duration_of = DurationOf::None;
  std::int64_t duration_ps = 0;  // on each rank
  // By position in the mesh: where in the generator's stream it draws; empty if nothing is drawn.
  std::vector<std::int64_t> random_starts = {};
};

// Calls of one operator with an outcome that only the trace knows.
struct TakenAsRecorded {
  std::string call;
  std::int64_t count = 0, line = 0;  // line: the first
  std::string why;
};

// A write that a tensor does not show, although it would if all tensors were whole: it went into a
// copy of the tensor that a call had redistributed, or into the tensor after it was copied.
struct LostWrite {
  std::int64_t line, copied_line;  // the line that writes, and the one that made the copy
  std::string call, into;          // the call that writes, and the tensor that it names
  std::string copied_by, of;       // the call that made the copy, and of which tensor
  OpPlacements from, to;           // the redistribution of the copy
  bool into_copy = true;           // otherwise into the tensor that was copied before
  std::optional<std::int64_t> read_line = {};  // the line that reads the tensor without the write
  std::string read_by = {}, read = {};
  bool stays = false;  // the tensor exists when the trace ends: others may read it
};

// The key of counts by pass: "forward", "backward" or "optimizer".
std::string_view pass_key(const std::string& pass);

// Redistributions of operators' inputs, as planners and CommDebugMode see them.

// The request for a redistribution. The indices of a look-up are masked in place, and the partial
// results of norms and look-ups are addends of a sum. None if every rank already has all that it
// needs.
std::optional<Request> request_of(const TensorSpec& from, const OpPlacements& to,
                                  const MeshRef& mesh);

// "all_gather", "all_reduce", "reduce_scatter", "all_to_all"; null for a step within each rank, as
// along an axis of one rank.
const char* collective_of(const OpStep& step, std::span<const std::int32_t> sizes);

// How much more PyTorch's choices cost than those by time over the whole trace, call by call.

// Sums over redistributions, each timed alone.
struct Moved {
  std::int64_t count = 0, time_ps = 0, bytes = 0;
  Moved& operator+=(const Moved& more);
};
// What a call moves; reused copies do not count.
Moved moved_by(const DispatchedCall& call);

struct RegretRow {
  std::int64_t line;
  std::string call, module;
  Moved torch, best;
  std::string why;
};

struct Regret {
  // Implicit and explicit ones together; then only the implicit ones.
  Moved torch, best, torch_implicit, best_implicit;
  std::vector<RegretRow> rows;  // lines that move differently, in the order of the trace
};

// Both lists have the same lines, with figures.
Regret regret_of(const std::vector<DispatchedCall>& torch, const std::vector<DispatchedCall>& best);

}  // namespace reshard::sim
