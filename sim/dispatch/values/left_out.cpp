// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/values/left_out.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/dispatch/sharing/sharing.h"
#include "sim/operators/operators.h"

namespace reshard::sim {

bool is_unknown(const DispatchedCall& call) {
  if (!call.recorded.empty()) return true;
  return call.op && !call.op->is_view && !computes(call.op->name);
}

std::vector<ValueId> changed_by(const DispatchedCall& call) {
  std::vector<ValueId> out = call.op_line->out;
  if (call.op)
    for (std::size_t input : written_inputs(*call.op, *call.op_line))
      out.push_back(call.op_line->flat_in()[input]);
  std::erase(out, kNoValue);
  return out;
}

void UnknownOperators::note(const DispatchedCall& call) {
  std::string name = call.op ? call.op->name : "a redistribution";
  auto known = std::find_if(all_.begin(), all_.end(),
                            [&](const Unknown& each) { return each.name == name; });
  if (known == all_.end()) known = all_.insert(known, {std::move(name), call.line});
  ++known->calls;
}

std::string UnknownOperators::text() const {
  if (all_.empty()) return {};
  constexpr std::size_t kMostNamed = 5;
  std::string out;
  for (std::size_t i = 0; i < std::min(all_.size(), kMostNamed); ++i) {
    const Unknown& each = all_[i];
    out += each.calls == 1
               ? fmt::format("{} of line {}, ", each.name, each.line)
               : fmt::format("{} calls of {} from line {} on, ", each.calls, each.name, each.line);
  }
  if (all_.size() > kMostNamed) out += fmt::format("{} more operators, ", all_.size() - kMostNamed);
  bool one = all_.size() == 1 && all_[0].calls == 1;
  return out + (one ? "and what depends on it" : "and what depends on them");
}

}  // namespace reshard::sim
