// SPDX-License-Identifier: BSD-3-Clause
// What became of lines on named tensors: calls with their decisions, redistributions, and how much
// less would have been enough.
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

// What a redistribution comes to, planned and run alone.
struct MoveFigures {
  std::int64_t time_ps = 0, bound_ps = 0;
  std::int64_t bytes = 0;  // received from other ranks, all together
};

// An input that a call brings from where it lies, or an explicit redistribution.
struct DispatchedMove {
  std::int32_t input;  // of the flat inputs
  ValueId value;
  OpPlacements from, to;  // from: of the value, or of a copy that was brought before
  std::vector<OpStep> steps;
  double cost_us = 0;                       // PyTorch's
  bool again = false;                       // it was brought there before
  std::optional<MoveFigures> figures = {};  // none: it was not asked for, or nothing is carried
  std::optional<OpId> operation = {};       // of the trace
};

// Where a call's duration is from.
enum class DurationOf : std::uint8_t { None, Line, Estimate };
std::string_view text(DurationOf from);  // "none", "given", "estimated"

struct DispatchedCall {
  std::int64_t line;
  std::string id, module, pass;
  std::shared_ptr<const OperatorLine> said;
  const Operator* op = nullptr;               // null: an explicit redistribution
  std::vector<std::optional<TensorSpec>> in;  // flat
  Decision decision;
  std::string recorded = {};  // why it is taken as the trace expects it; empty: it is decided
  bool sized = true;          // all sizes of its tensors are known
  bool hit = false;
  std::vector<DispatchedMove> moves = {};
  DurationOf duration_of = DurationOf::None;
  std::int64_t duration_ps = 0;  // of each rank
  // Where in the generator's stream each position of the mesh draws; empty where nothing is drawn.
  std::vector<std::int64_t> random_starts = {};
};

// Calls of one operator of which the trace alone says what became of them.
struct TakenAsRecorded {
  std::string call;
  std::int64_t count = 0, line = 0;  // line: the first
  std::string why;
};

// A write that a tensor does not show, though it would if all tensors were whole: it went into a
// copy of the tensor that a call had brought elsewhere, or to the tensor after it was copied.
struct LostWrite {
  std::int64_t line, copied_line;              // that writes; that made the copy
  std::string call, into;                      // that writes, and the tensor that it names
  std::string copied_by, of;                   // that made the copy, and of which tensor
  OpPlacements from, to;                       // how it was brought
  bool into_copy = true;                       // and not to the tensor that was copied before
  std::optional<std::int64_t> read_line = {};  // that reads what is not there
  std::string read_by = {}, read = {};
  bool stays = false;  // the tensor is there when the trace ends: others may read it
};

// "forward", "backward" or "optimizer": what counts are kept by.
std::string_view pass_key(const std::string& pass);

// What a redistribution of an operator's input is to a planner, and to CommDebugMode.

// What must be carried: a look-up's indices are masked where they lie, and what norms and look-ups
// leave are addends of a sum. None where every rank has all that it needs.
std::optional<Request> request_of(const TensorSpec& from, const OpPlacements& to,
                                  const MeshRef& mesh);

// "all_gather", "all_reduce", "reduce_scatter", "all_to_all"; null for a step within each rank, as
// along an axis of one rank.
const char* collective_of(const OpStep& step, std::span<const std::int32_t> sizes);

// What PyTorch's choices cost more than those by time over the whole trace, call by call.

// Of redistributions, each alone: their times and bytes summed.
struct Moved {
  std::int64_t count = 0, time_ps = 0, bytes = 0;
  Moved& operator+=(const Moved& more);
};
// What a call moves, copies that serve again left out.
Moved moved_by(const DispatchedCall& call);

struct RegretRow {
  std::int64_t line;
  std::string call, module;
  Moved torch, best;
  std::string why;
};

struct Regret {
  // Implicit and explicit together; of these implicit.
  Moved torch, best, torch_implicit, best_implicit;
  std::vector<RegretRow> rows;  // lines that move otherwise, in the order of the trace
};

// Both lists have the same lines, and figures.
Regret regret_of(const std::vector<DispatchedCall>& torch, const std::vector<DispatchedCall>& best);

}  // namespace reshard::sim
