// SPDX-License-Identifier: BSD-3-Clause
// What `rule` makes of the greedy steps: kinds of steps, bytes, padding, and refusals.
#include <catch2/catch.hpp>

#include <array>

#include "core/base/errors.h"
#include "core/moves/located.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/traffic/accounting.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard {
namespace {

Plan rule(const Request& request) {
  Plan plan = plan_rule(request, {});
  prove(plan);
  return plan;
}

Plan rule(std::string_view mesh, std::string_view shape, std::string_view from, std::string_view to,
          std::string_view dtype = "f32") {
  return rule(request_on(mesh, shape, from, to, dtype));
}

std::string message_of(const Request& request) {
  try {
    plan_rule(request, {});
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("even blocks that are contiguous are not packed") {
  CHECK(step_kinds(rule("4", "8,8", "S0", "R")) == "all_gather[0]");
  CHECK(step_kinds(rule("4", "8,8", "P", "S0")) == "reduce_scatter[0]");
  CHECK(step_kinds(rule("4", "8,8", "P", "R")) == "all_reduce[0]");
  // Dim 1 is contiguous where dim 0 has extent 1.
  CHECK(step_kinds(rule("4", "1,8", "S1", "R")) == "all_gather[0]");
  CHECK(step_kinds(rule("4", "1,8", "P", "S1")) == "reduce_scatter[0]");
}

TEST_CASE("the indices that two lists of runs share, what only touches shares none") {
  std::array<Run, 2> a{{{0, 0, 4}, {8, 4, 4}}}, b{{{2, 0, 2}, {6, 2, 2}}};
  std::array<Run, 1> c{{{3, 0, 6}}};
  auto shared = [](Runs one, Runs other) {
    std::vector<std::array<std::int64_t, 3>> out;
    each_shared(one, other, [&](auto... values) { out.push_back({values...}); });
    return out;
  };
  using Shared = std::vector<std::array<std::int64_t, 3>>;
  CHECK(shared(a, b) == Shared{{2, 0, 2}});
  CHECK(shared(a, c) == Shared{{3, 0, 1}, {4, 5, 1}});
}

TEST_CASE("blocks that are not contiguous are packed or unpacked, on the side where they are not") {
  CHECK(step_kinds(rule("4", "8,8", "S1", "R")) == "all_gather[0] copy");
  CHECK(step_kinds(rule("4", "8,8", "P", "S1")) == "copy reduce_scatter[0]");
  CHECK(step_kinds(rule("4", "8,8", "S0", "S1")) == "copy all_to_all[0]");
  CHECK(step_kinds(rule("4", "8,8", "S1", "S0")) == "all_to_all[0] copy");
}

TEST_CASE("uneven shards are padded to the largest of their group") {
  Plan plan = rule("4", "7", "S0", "R", "f32");
  CHECK(step_kinds(plan) == "copy fill all_gather[0] copy");
  const auto& fill = std::get<FillStep>(plan.steps[1].body);
  REQUIRE(fill.parts.size() == 1);
  CHECK(fill.parts[0].slot == 3);
  CHECK(fill.parts[0].box == Box{{1}, {2}});
  const auto& gather = std::get<CollectiveStep>(plan.steps[2].body);
  CHECK(plan.buffer(gather.input).shape(0) == Shape{2});
  CHECK(plan.buffer(gather.output).shape(0) == Shape{8});
  // Each rank receives three blocks of two elements.
  CHECK(count_bytes(plan).received_per_slot == std::vector<std::int64_t>(4, 24));
  // The unpacking of neighbouring blocks is one move.
  CHECK(std::get<CopyStep>(plan.steps[3].body).moves.size() == 4);
}

TEST_CASE("groups of different sizes are padded each to its own largest") {
  // 9 over (2,3): halves of 5 and 4, in chunks of 2 2 1 and 2 2 0.
  Plan plan = rule("2x3", "9", "S0,S0", "S0,R");
  CHECK(step_kinds(plan) == "copy fill all_gather[1] copy");
  // 13 over (2,2): halves of 7 and 6: blocks of 4 and 3.
  Plan uneven = rule("2x2", "13", "S0,S0", "S0,R");
  const auto& gather = std::get<CollectiveStep>(uneven.steps[2].body);
  CHECK(uneven.buffer(gather.output).shape(0) == Shape{8});
  CHECK(uneven.buffer(gather.output).shape(2) == Shape{6});
}

TEST_CASE("groups without elements take no part") {
  // 3 over (4,2): the fourth group is empty.
  Plan plan = rule("4x2", "3", "S0,S0", "S0,R");
  const auto& gather = std::get<CollectiveStep>(plan.steps[2].body);
  CHECK(gather.group_count() == 3);
  CHECK(rule("4x2", "0,5", "S0,S0", "R,R").steps.empty());
  CHECK(rule("4x2", "0,5", "S0,S0", "S0,S0").steps.empty());
}

TEST_CASE("axes of size 1 never communicate") {
  for (const char* from : {"S(1)", "R", "P", "S(0)", "_S(0,3)"})
    for (const char* to : {"S(0)", "S(1)", "R", "P", "P(max)"}) {
      Plan plan = rule("4x1", "16,8", std::string("S(0)") + from, std::string("S(0)") + to);
      INFO(from << " -> " << to);
      CHECK(collectives(plan) == 0);
      CHECK(step_kinds(plan) == "copy");
    }
}

TEST_CASE("local changes") {
  CHECK(step_kinds(rule("2x2", "8,8", "R,R", "S0,S1")) == "copy copy");
  Plan divided = rule("4", "8", "R", "P");
  CHECK(step_kinds(divided) == "reduce");
  CHECK(std::get<ReduceStep>(divided.steps[0].body).divisor == 4);
  // Addends of an average, a minimum or a maximum are the value itself.
  CHECK(step_kinds(rule("4", "8", "R", "P(avg)")) == "copy");
  CHECK(step_kinds(rule("4", "8", "R", "P(max)")) == "copy");
  CHECK(step_kinds(rule("4", "8", "P", "P")) == "copy");
}

TEST_CASE("S becomes P(sum) by local copies and zeros") {
  Plan plan = rule("4", "7,2", "S0", "P");
  CHECK(step_kinds(plan) == "copy fill");
  CHECK(count_bytes(plan).received_total == 0);
  // Rank 1 has rows 2 and 3, rank 3 row 6.
  using Parts = std::vector<FillStep::SlotFill>;
  CHECK(std::get<FillStep>(plan.steps[1].body).parts ==
        Parts{{0, kDestinationBuffer, Box{{2, 0}, {7, 2}}},
              {1, kDestinationBuffer, Box{{0, 0}, {2, 2}}},
              {1, kDestinationBuffer, Box{{4, 0}, {7, 2}}},
              {2, kDestinationBuffer, Box{{0, 0}, {4, 2}}},
              {2, kDestinationBuffer, Box{{6, 0}, {7, 2}}},
              {3, kDestinationBuffer, Box{{0, 0}, {6, 2}}}});
  CHECK(step_kinds(rule("2x2", "8,8", "S0,S1", "P,P")) == "copy fill copy fill");
  CHECK(step_kinds(rule("2x2", "8,8", "S0,P", "P,R")) == "all_reduce[1] copy fill");
  CHECK(step_kinds(rule("2x2", "8,8", "P,S0", "R,P")) == "copy fill all_reduce[0]");
  CHECK(step_kinds(rule("2x2", "8,8", "R,S0", "P,P")) == "copy fill reduce");
  CHECK(step_kinds(rule("2x2", "8,8", "S0,S0", "P,S0")) == "all_gather[1] copy fill copy");
  CHECK(step_kinds(rule("4", "8", "S0", "P", "i32")) == "copy fill");
}

TEST_CASE("avg folds like sum and divides once by the axis size") {
  Plan plan = rule("2x3", "8", "P(avg),P", "R,R");
  REQUIRE(step_kinds(plan) == "all_reduce[0] all_reduce[1]");
  CHECK(std::get<CollectiveStep>(plan.steps[0].body).divisor == 2);
  CHECK(std::get<CollectiveStep>(plan.steps[1].body).divisor == 1);
  CHECK(std::get<CollectiveStep>(plan.steps[0].body).op == ReduceOp::Sum);
}

TEST_CASE("strided shards change through R") {
  CHECK(step_kinds(rule("2x2", "8", "_S(0,2)S(0)", "R,S0")) ==
        "all_gather[1] all_gather[0] copy copy");
  CHECK(step_kinds(rule("2", "8", "P", "_S(0,2)")) == "all_reduce[0] copy");
  CHECK(step_kinds(rule("2", "8", "S0", "_S(0,2)")) == "all_gather[0] copy");
}

TEST_CASE("bytes received by the fullest rank, as parts of the tensor") {
  const struct {
    const char *mesh, *from, *to;
    std::int64_t part, of;
  } rows[] = {
      {"2x2", "S0,S1", "S1,S0", 1, 2},
      {"2x2", "S0,S0", "S1,S1", 1, 2},
      {"2x2", "S0,S0", "R,S0", 3, 4},
      {"2x2", "R,S0", "S0,S0", 1, 2},
      {"4x4", "S0,S1", "S1,S0", 3, 8},
      {"4x4", "S0,S0", "S1,S1", 3, 8},
      {"8x8", "S0,S1", "S1,S0", 7, 32},
      {"8x8", "S0,S0", "S1,S1", 7, 32},
      {"2x2x2", "S0,S0,S0", "S1,S1,S1", 5, 8},
      {"2x2x2", "S0,S1,S2", "S2,S1,S0", 1, 4},
      {"2x2x2x2", "R,S0,R,R", "S1,R,S1,S1", 1, 2},
  };
  for (const auto& row : rows) {
    INFO(row.mesh << " " << row.from << " -> " << row.to);
    PlanBytes bytes = count_bytes(rule(row.mesh, "64,64,64", row.from, row.to));
    CHECK(bytes.received_max == 64 * 64 * 64 * 4 * row.part / row.of);
  }
}

TEST_CASE("the last transition writes the destination itself") {
  Plan plan = rule("2x2", "8,8", "S0,S0", "R,R");
  CHECK(step_kinds(plan) == "all_gather[1] all_gather[0]");
  CHECK(std::get<CollectiveStep>(plan.steps[1].body).output == kDestinationBuffer);
  CHECK(plan.buffers.size() == 3);
  CHECK(plan.steps[1].after == std::vector<StepId>{StepId{0}});
}

TEST_CASE("scattered ranks keep their groups in mesh order") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("[[9,2],[4,7]]"));
  Plan plan =
      rule(Request(parse_layout("8", "f32", mesh, "R,S0"), parse_layout("8", "f32", mesh, "R,R")));
  // Slots 0..3 are ranks 2, 4, 7, 9.
  CHECK(std::get<CollectiveStep>(plan.steps[0].body).members == std::vector<Slot>{3, 0, 1, 2});
}

TEST_CASE("rule refuses two meshes and says who does not") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("4")),
       other = std::make_shared<const Mesh>(parse_mesh("2x2"));
  Request across(parse_layout("8", "f32", mesh, "S0"), parse_layout("8", "f32", other, "S0,R"));
  CHECK_THAT(message_of(across), Catch::Contains("one mesh") && Catch::Contains("p2p"));
}

TEST_CASE("a collective of too many packed blocks is refused before it is worked out") {
  CHECK_THAT(message_of(request_on("32768", "32769", "S0", "R")), Catch::Contains("blocks"));
  CHECK_THAT(message_of(request_on("32768", "32769", "P(sum)", "S0")), Catch::Contains("blocks"));
  // Nothing to pack: no limit.
  CHECK(step_kinds(plan_rule(request_on("32768", "32768", "S0", "R"), {})) == "all_gather[0]");
  CHECK(step_kinds(plan_rule(request_on("32768", "32768", "P(sum)", "S0"), {})) ==
        "reduce_scatter[0]");
}

TEST_CASE("padding that would leave 2^62 bytes is refused") {
  CHECK_THAT(message_of(request_on("4", "1,4611686018427387904", "S0", "R", "i8")),
             Catch::Contains("2^62"));
  // 2^61 elements, but 2^64 bytes.
  CHECK_THAT(message_of(request_on("4", "1,576460752303423488", "S0", "R", "f64")),
             Catch::Contains("2^62"));
}

TEST_CASE("empty tensors with huge other dims are planned") {
  CHECK(rule("2x2", "4611686018427387904,4611686018427387904,0", "S0,S1", "R,S0").steps.empty());
  CHECK(rule("2x2", "4611686018427387904,4611686018427387904,0", "S0,P", "S1,S0").steps.empty());
}

TEST_CASE("every step of rule is explained") {
  Explanation explanation;
  PlannerInput input;
  input.explanation = &explanation;
  Plan plan = plan_rule(request_on("2x2", "7,8", "S0,S1", "S1,S0"), input);
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    auto of_step = [&](const Explanation::Line& line) {
      return line.step == StepId{static_cast<std::int32_t>(step)} && !line.why.empty();
    };
    CHECK(std::count_if(explanation.lines().begin(), explanation.lines().end(), of_step) == 1);
  }
}

}  // namespace reshard
