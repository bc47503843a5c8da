// SPDX-License-Identifier: BSD-3-Clause
// Correct plans written by hand, to be broken in one place.
#pragma once

#include <memory>
#include <string>

#include "core/proof/proof.h"

namespace reshard::test {

inline Request request(const char* shape, const char* mesh, const char* from, const char* to,
                       const char* dtype = "f32") {
  auto ref = std::make_shared<const Mesh>(parse_mesh(mesh));
  return Request(parse_layout(shape, dtype, ref, from), parse_layout(shape, dtype, ref, to));
}

inline std::string fault(const Plan& plan) {
  ProofResult result = check_plan(plan);
  return result.refutation ? result.refutation->what : "";
}

// S(0) -> R on two ranks, four elements, as one all_gather.
inline Plan gather() {
  Plan plan(request("4", "2", "S(0)", "R"), "hand");
  CollectiveStep step{};
  step.kind = CollectiveKind::AllGather;
  step.divisor = 1;
  step.input = kSourceBuffer;
  step.output = kDestinationBuffer;
  step.group_size = 2;
  step.members = {0, 1};
  plan.add_step(step, {}, {0});
  return plan;
}
inline CollectiveStep& collective(Plan& plan, std::size_t step = 0) {
  return std::get<CollectiveStep>(plan.steps[step].body);
}

// P -> S(0) on two ranks with 4 elements by messages and folds.
inline Plan folded() {
  Plan plan(request("4", "2", "P(sum)", "S(0)"), "hand");
  BufferId landing = plan.add_temporary();
  ExchangeStep exchange;
  ReduceStep reduce;
  for (Slot slot : {0, 1}) {
    plan.buffer(landing).set_shape(slot, {2});
    exchange.messages.push_back({slot, 1 - slot, {static_cast<std::uint32_t>(slot), 1}});
    exchange.moves.push_back({kSourceBuffer, landing, {2 * (1 - slot)}, {0}, {2}});
    reduce.parts.push_back(
        {slot, kDestinationBuffer, {0}, {2}, static_cast<std::uint32_t>(2 * slot), 2});
    reduce.operands.push_back({kSourceBuffer, {2 * slot}});
    reduce.operands.push_back({landing, {0}});
  }
  StepId sent = plan.add_step(exchange, {});
  plan.add_step(reduce, {sent});
  return plan;
}
inline ReduceStep& reduce_of(Plan& plan) { return std::get<ReduceStep>(plan.steps[1].body); }

}  // namespace reshard::test
