// SPDX-License-Identifier: BSD-3-Clause
// Calls of operators and what PyTorch decides for them: tests/torch/data/operators.jsonl. Those
// that reshard decides differently on purpose are in operators_apart.jsonl, with the right answer
// and the reason.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/call.h"

namespace reshard::test {

// A case with all that its call points to.
struct OperatorCase {
  std::string text;  // the line
  std::string name, mesh;
  std::vector<std::unique_ptr<TensorSpec>> specs;
  OpCall call;
  // Of PyTorch: placements as it prints them, "-" for none; or a refusal.
  std::vector<std::string> in, out;
  std::optional<double> cost_us;  // none: infinite
  std::vector<std::string> shapes, dtypes;
  std::int64_t candidates = 0, ties = 0;  // 0: not said
  bool refused = false;
  bool handled = false;                    // outside PyTorch's choice, without cost
  std::map<std::string, int> collectives;  // of those handled, with the redistributions
};

// "R", "S(0)_S(1, 2)", "MaskP(sum, torch.Size([32, 12]), 0)", "_NormP(2)".
OpPlacements parse_op_placements(const std::string& text);
OpValue op_value(const nlohmann::json& value);
OperatorCase operator_case(const std::string& line);

}  // namespace reshard::test
