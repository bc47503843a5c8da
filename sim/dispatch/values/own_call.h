// SPDX-License-Identifier: BSD-3-Clause
// What a rank calls so that its outputs are parts of the whole outputs.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/head_groups.h"
#include "sim/dispatch/dispatched.h"
#include "sim/dispatch/values/values.h"
#include "sim/operators/operators.h"

namespace reshard::sim {

// The operator with the rank's own sizes. `outputs`: their layouts; none for outputs that are not
// made.
struct OwnCall {
  std::string name;
  OpAttributes attributes;
};
OwnCall own_call(const DispatchedCall& call, const std::vector<std::optional<Layout>>& outputs,
                 std::int32_t position);

// Attention with sharded query heads and whole keys and values: a rank uses the heads that its
// queries need, and adds nothing to the gradients of the others.
class OwnHeads {
 public:
  OwnHeads(const DispatchedCall& call, const std::vector<std::optional<Sharded>>& inputs,
           std::int32_t position);

  // Narrows keys and values among the operator's arguments to the heads that are needed.
  void narrow(std::vector<const Array*>& arguments);
  // Widens its results: gradients of keys and values get back the heads that were left out.
  void widen(ArrayResults& results) const;

 private:
  struct NarrowedInput {
    std::size_t input;
    int dim;
    KeyHeads heads;
    std::int64_t all;
  };
  bool is_backward_ = false;
  std::vector<NarrowedInput> parts_;
  std::deque<Array> narrowed_;  // arguments point to these
};

}  // namespace reshard::sim
