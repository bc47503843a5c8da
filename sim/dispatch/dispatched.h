// SPDX-License-Identifier: BSD-3-Clause
// What became of a line on named tensors: a call with its decision and what moves for it, or a
// redistribution.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
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
  bool hit = false;
  std::vector<DispatchedMove> moves;
  DurationOf duration_of = DurationOf::None;
  std::int64_t duration_ps = 0;  // of each rank
};

// "forward", "backward" or "optimizer": what counts are kept by.
std::string_view pass_key(const std::string& pass);

}  // namespace reshard::sim
