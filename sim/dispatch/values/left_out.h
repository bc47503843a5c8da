// SPDX-License-Identifier: BSD-3-Clause
// Calls with values that are not computed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/dispatch/dispatched.h"

namespace reshard::sim {

// Whether nothing here defines what the call computes. For an operator that consists of others this
// is only found when it is computed: compute() throws NotComputed.
bool is_unknown(const DispatchedCall& call);

// The values that the call makes or writes to.
std::vector<ValueId> changed_by(const DispatchedCall& call);

// The operators of unknown calls, for the report.
class UnknownOperators {
 public:
  void note(const DispatchedCall& call);
  // "svd of line 3, and what depends on it", "2 calls of svd from line 3 on, qr of line 9, and what
  // comes of them"; only the first of many operators; empty if there are none.
  std::string text() const;

 private:
  struct Unknown {
    std::string name;
    std::int64_t line, calls = 0;  // line: of the first call
  };
  std::vector<Unknown> all_;  // in the order of their first calls
};

}  // namespace reshard::sim
