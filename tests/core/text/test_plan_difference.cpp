// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "core/planners/planner.h"
#include "core/text/plan_difference.h"
#include "core/text/plan_text.h"

using namespace reshard;

namespace {

struct Asked {
  const char* from = "S(0)";
  const char* to = "S(1)";
  const char* shape = "8,8";
  const char* dtype = "f32";
  int first_rank = 0;
};

std::string text_of_plan(const Asked& asked,
                         Plan (*planner)(const Demand&, const PlannerInput&) = plan_p2p) {
  std::vector<Rank> ranks;
  for (int i = 0; i < 4; ++i) ranks.push_back(Rank{asked.first_rank + i});
  auto mesh = std::make_shared<const Mesh>(std::vector<std::int32_t>{4}, ranks);
  return to_text(planner(Request(parse_layout(asked.shape, asked.dtype, mesh, asked.from),
                                 parse_layout(asked.shape, asked.dtype, mesh, asked.to)),
                         {}));
}

std::string words(std::string_view here, std::string_view there) {
  std::optional<PlanDifference> found = difference_of(here, there);
  return found ? found->what + ": " + found->here + " | " + found->there : "none";
}

}  // namespace

TEST_CASE("the first difference of two plans is named") {
  std::string plan = text_of_plan({});
  CHECK(words(plan, plan) == "none");
  CHECK(words(plan, text_of_plan({.to = "R"})) == "destination placements: S(1) | R");
  CHECK(words(plan, text_of_plan({.from = "R"})) == "source placements: S(0) | R");
  CHECK(words(plan, text_of_plan({.shape = "8,16"})) == "shape: 8,8 | 8,16");
  CHECK(words(plan, text_of_plan({.dtype = "i32"})) == "dtype: f32 | i32");
  CHECK(words(plan, text_of_plan({.first_rank = 4})) == "source ranks: 0-3 | 4-7");
  CHECK(words(text_of_plan({.dtype = "i32"}), text_of_plan({.shape = "8,16", .dtype = "f32"})) ==
        "shape: 8,8 | 8,16");
}

TEST_CASE("what two planners do with one request differs in its steps, not in the planner's name") {
  std::string p2p = text_of_plan({}), rule = text_of_plan({}, plan_rule);
  CHECK(words(p2p, rule).find("planner") == std::string::npos);
  CHECK(words("reshard-plan 1\nplanner p2p\nshape 8\nend\n",
              "reshard-plan 1\nplanner rule\nshape 8\nend\n") == "planner: p2p | rule");
}

TEST_CASE("a step's lines are told with the step") {
  std::string_view head =
      "reshard-plan 1\nplanner p2p\nshape 8\nstep 0 copy\n  0: b0[0:4] -> b1[0:4]\n";
  auto with = [&](const char* rest) { return std::string(head) + rest; };
  CHECK(words(with("step 1 exchange after 0\n  0 -> 1: a\n  1 -> 0: b\nend\n"),
              with("step 1 exchange after 0\n  0 -> 1: a\n  1 -> 0: c\nend\n")) ==
        "step 1: 1 -> 0: b | 1 -> 0: c");
  CHECK(words(with("step 1 exchange after 0\nend\n"), with("step 1 copy after 0\nend\n")) ==
        "step 1: exchange after 0 | copy after 0");
  CHECK(words(with("end\n"), with("step 1 copy\nend\n")) ==
        "what follows step 0: end | step 1 copy");
  CHECK(words(with("step 1 exchange\n  0 -> 1: a\nend\n"), with("step 1 exchange\nend\n")) ==
        "step 1: 0 -> 1: a | end");
  // A text that was cut off says nothing of what is not there.
  CHECK(words(with("step 1 copy\nend\n"), head) == "none");
}
