// SPDX-License-Identifier: BSD-3-Clause
// What a dispatched trace comes to by module and operator, and by what moves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/dispatch/dispatch.h"

namespace reshard::sim {

// Calls of one operator in one module; times of redistributions each alone.
struct OperatorFacts {
  std::string module, op;  // op: "redistribute" where it was asked for
  std::int64_t calls = 0, implicit = 0, explicit_ones = 0;
  std::int64_t compute_ps = 0;  // of the calls, one after the other
  Moved moved;
  std::int64_t bound_ps = 0;
  OperatorFacts& operator+=(const OperatorFacts& more);  // counts, bytes and times
};
// By module, then by operator.
std::vector<OperatorFacts> operator_facts(const DispatchReport& report);

// Redistributions of one pass for one operator by the same collectives.
struct CollectiveFacts {
  std::string pass;
  std::string steps;  // "all_gather on tp", "all_gather on dp, all_to_all on tp"
  std::string cause;  // the operator; "redistribute" where it was asked for
  Moved moved;
  std::int64_t bound_ps = 0;
};
// By pass, then as they first come.
std::vector<CollectiveFacts> collective_facts(const DispatchReport& report);

}  // namespace reshard::sim
