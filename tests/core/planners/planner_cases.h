// SPDX-License-Identifier: BSD-3-Clause
// Requests written as text, plans of them, and plans as lists of their steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/layout/request.h"
#include "core/plan/plan.h"
#include "core/planners/planner.h"
#include "tests/support/star.h"

namespace reshard {

inline Request request_on(std::string_view mesh, std::string_view shape, std::string_view from,
                          std::string_view to, std::string_view dtype = "f32") {
  MeshRef ref = std::make_shared<const Mesh>(parse_mesh(mesh));
  return Request(parse_layout(shape, dtype, ref, from), parse_layout(shape, dtype, ref, to));
}

// "copy all_gather[1] copy": kinds in order, collectives with their axes.
inline std::string step_kinds(const Plan& plan) {
  std::string out;
  for (const Step& step : plan.steps) {
    if (!out.empty()) out += ' ';
    out += kind_text(step);
    if (!std::holds_alternative<CollectiveStep>(step.body)) continue;
    for (std::size_t i = 0; i < step.axes.size(); ++i) {
      out += i == 0 ? '[' : ',';
      out += std::to_string(step.axes[i]);
    }
    out += ']';
  }
  return out;
}

inline int collectives(const Plan& plan) {
  int count = 0;
  for (const Step& step : plan.steps)
    count += std::holds_alternative<CollectiveStep>(step.body) ? 1 : 0;
  return count;
}

// The planner's plan on a star of these ranks.
inline Plan planned_on_star(std::int32_t ranks, const char* from, const char* to,
                            const char* planner, const char* shape = "16,16",
                            const char* dtype = "f32") {
  Topology topology = test::star(ranks);
  PlannerInput input;
  input.topology = &topology;
  return find_planner(planner).make(request_on(std::to_string(ranks), shape, from, to, dtype),
                                    input);
}

}  // namespace reshard
