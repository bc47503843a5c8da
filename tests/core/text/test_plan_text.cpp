// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "core/text/plan_text.h"
#include "tests/support/halved.h"

using namespace reshard;

namespace {

Plan p2p(const char* shape, const char* mesh, const char* from, const char* to,
         const char* to_mesh = "", const char* to_ranks = "") {
  auto source = std::make_shared<const Mesh>(parse_mesh(mesh));
  auto destination =
      *to_mesh == '\0' ? source : std::make_shared<const Mesh>(parse_mesh(to_mesh, to_ranks));
  return made_by(find_planner("p2p"),
                 Request(parse_layout(shape, "f32", source, from),
                         parse_layout(shape, "f32", destination, to)),
                 {});
}

constexpr const char* kSwap = R"(reshard-plan 1
planner p2p
shape 4,4
dtype f32
source mesh 2x2 ranks 0-3 placements S(0)S(1)
destination mesh 2x2 ranks 0-3 placements S(1)S(0)
step 0 copy
  0: b0[0:2,0:2] -> b1[0:2,0:2]
  3: b0[0:2,0:2] -> b1[0:2,0:2]
step 1 exchange
  1 -> 2: b0[0:2,0:2] -> b1[0:2,0:2]
  2 -> 1: b0[0:2,0:2] -> b1[0:2,0:2]
end
)";

// kSwap with `from` replaced by `to` (once).
std::string edited(std::string_view from, std::string_view to) {
  std::string text = kSwap;
  std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("plan text is written as documented") {
  CHECK(to_text(p2p("4,4", "2x2", "S(0)S(1)", "S(1)S(0)")) == kSwap);
}

TEST_CASE("plan text round trips byte for byte") {
  for (const Plan& plan :
       {p2p("7,5", "2x3", "_S(0,2)P(sum)", "S(1)R"), p2p("4", "dp=2,tp=2", "P(avg)R", "RS(0)"),
        p2p("", "3", "P(max)", "R"), p2p("3,4", "2x2", "S(0)[1]S(0)[0]", "RR"),
        p2p("6,6", "4", "P(sum)", "S(0)R", "2x2", "5,9,7,4"), p2p("8", "4", "R", "P(sum)"),
        p2p("0,3", "2", "S(0)", "R")}) {
    std::string text = to_text(plan);
    CHECK(to_text(parse_plan(text, "plan.txt")) == text);
  }
}

TEST_CASE("plan text round trips with boxes of collectives and temporaries of every tensor") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2x2"));
  auto ruled = [&](const char* shape, const char* dtype, const char* from, const char* to) {
    return made_by(
        find_planner("rule"),
        Request(parse_layout(shape, dtype, mesh, from), parse_layout(shape, dtype, mesh, to)), {});
  };
  std::vector<Plan> plans{ruled("8,6", "f32", "S(0)P(sum)", "RS(1)"),
                          ruled("5,7", "bf16", "P(sum)S(1)", "S(0)R"),
                          ruled("4,4", "f64", "S(1)S(0)", "RR")};
  plans.push_back(join(plans));
  for (const Plan& plan : plans) {
    std::string whole = to_text(plan);
    CHECK(to_text(parse_plan(whole, "plan.txt")) == whole);
    Plan halved = test::with_halved_collectives(plan);
    std::string text = to_text(halved);
    CHECK(text.find("group 0-1 b") != std::string::npos);
    Plan read = parse_plan(text, "plan.txt");
    CHECK(to_text(read) == text);
    REQUIRE(read.steps.size() == halved.steps.size());
    for (std::size_t s = 0; s < read.steps.size(); ++s)
      if (const auto* was = std::get_if<CollectiveStep>(&halved.steps[s].body)) {
        const auto& is = std::get<CollectiveStep>(read.steps[s].body);
        CHECK(is.input_boxes == was->input_boxes);
        CHECK(is.output_boxes == was->output_boxes);
        CHECK(is.group_size == was->group_size);
        CHECK(is.members == was->members);
      }
  }
}

TEST_CASE("plan text gives the streams other than the first") {
  std::string text = edited("step 1 exchange", "step 1 exchange after 0 axes 0,1 stream 3");
  Plan plan = parse_plan(text, "p");
  CHECK(plan.steps[StepId{0}].stream == 0);
  CHECK(plan.steps[StepId{1}].stream == 3);
  CHECK(stream_count(plan) == 4);
  CHECK(to_text(plan) == text);
  for (const char* number : {"0", "4", "-1"})
    CHECK_THROWS_WITH(
        parse_plan(edited("step 1 exchange", fmt::format("step 1 exchange stream {}", number)),
                   "p"),
        Catch::Contains("p:10: expected a stream between 1 and 3"));
}

TEST_CASE("numbers in plans are bounded where they stand") {
  auto refused = [](const std::string& text, const char* what) {
    INFO(text);
    CHECK_THROWS_WITH(parse_plan(text, "p"), Catch::Contains(what));
  };
  refused(edited("2 -> 1", "2 -> 1048575"), "a rank of the plan instead of 1048575");
  refused(edited("2 -> 1", "2 -> 1048576"), "a rank between 0 and 1048575");
  for (const char* head :
       {"step 0 all_gather b0 dim 8 -> b1 dim 0", "step 0 all_gather b0 dim 0 -> b1 dim 8"})
    refused(edited("step 0 copy", head), "a dim between 0 and 7");
  refused(edited("step 0 copy", "step 0 copy axes 5"), "a mesh axis between 0 and 4");
  refused(edited("step 0 copy", "step 0 reduce sum divisor 0"), "a divisor between 1 and");
  refused(edited("step 0 copy", "temporary 2 tensor 1\n  0: 2,2\nstep 0 copy"),
          "a tensor of the plan");
  for (const char* extents : {"4611686018427387904,1", "1,1152921504606846977"})
    refused(edited("step 0 copy", fmt::format("temporary 2\n  0: {}\nstep 0 copy", extents)),
            "a temporary of at most 2^62 bytes");
  CHECK_NOTHROW(parse_plan(
      edited("step 0 copy", "temporary 2\n  0: 1,1152921504606846976\nstep 0 copy"), "p"));
  refused(edited("step 0 copy", "temporary 2\n  0: 4\nstep 0 copy"), "2 extents before this");
  refused(edited("step 1 exchange\n  1 -> 2: b0[0:2,0:2] -> b1[0:2,0:2]\n"
                 "  2 -> 1: b0[0:2,0:2] -> b1[0:2,0:2]\n",
                 "step 1 all_gather b0 dim 0 -> b1 dim 0\n  group 0-1\n  group 2-3\n  group 0-1\n"),
          "in one group only");
  refused(edited("step 1 exchange\n  1 -> 2: b0[0:2,0:2] -> b1[0:2,0:2]\n"
                 "  2 -> 1: b0[0:2,0:2] -> b1[0:2,0:2]\n",
                 "step 1 all_gather b0 dim 0 -> b1 dim 0\n  group 0-1\n  group 2,3,0\n"),
          "groups of equal size");
}

TEST_CASE("ranks between those of a plan are none of it") {
  const std::string head =
      "reshard-plan 1\nplanner x\nshape 4\ndtype f32\nsource mesh 2 ranks 0,2 placements S(0)\n"
      "destination mesh 2 ranks 0,2 placements R\n";
  CHECK_THROWS_WITH(
      parse_plan(head + "step 0 all_gather b0 dim 0 -> b1 dim 0\n  group 0-1\nend\n", "p"),
      "p:8: expected ranks of the plan before this, found the end");
  CHECK_NOTHROW(
      parse_plan(head + "step 0 all_gather b0 dim 0 -> b1 dim 0\n  group 0,2\nend\n", "p"));
  CHECK_THROWS_WITH(
      parse_plan(head + "step 0 copy\n  1: b0[0:2] -> b1[0:2]\nend\n", "p"),
      "p:8: expected a rank of the plan instead of 1 before this, found ': b0[0:2] -> "
      "b1[0:2]'");
}

TEST_CASE("a plan edited by hand is refused at its line") {
  auto refused = [](const std::string& text, const char* what) {
    INFO(text);
    CHECK_THROWS_WITH(parse_plan(text, "p"), Catch::Contains(what));
    CHECK_THROWS_AS(parse_plan(text, "p"), InputError);
  };
  refused("", "p:1: expected more lines");
  refused("junk", "p:1: expected 'reshard-plan 1', found 'junk'");
  refused(edited("end\n", ""), "p:13: expected more lines up to 'end'");
  refused(edited("end\n", "end\nmore\n"), "p:14: expected nothing after 'end'");
  refused(edited("shape 4,4", "shape 4,x"),
          "p:5: shape: expected an extent (an integer), found 'x'");
  refused(edited("2 -> 1", "2 -> 9"), "p:12: expected a rank of the plan instead of 9");
  refused(edited("2 -> 1: b0[0:2,0:2] -> b1[0:2,0:2]", "2 -> 1: b0[0:2,0:2] -> b1[0:2,0:1]"),
          "p:12: expected boxes of equal extents");
  refused(edited("  2 -> 1: b0[0:2,0:2] -> b1[0:2,0:2]\n", ""),
          "p:12: expected a valid plan, found: 4 elements of the destination on "
          "rank 1");
  refused(edited("step 1 exchange", "step 1 exchange after 1"),
          "p:10: expected a valid plan, found: step 1 (exchange) depends on step 1");
  refused(edited("2 -> 1: b0[0:2,0:2] -> b1[0:2,0:2]", "2 -> 1: b0[0:2,0:2] -> b1[1:3,0:2]"),
          "outside buffer 1 of shape (2,2)");
  refused(edited("2 -> 1: b0[0:2,0:2] -> b1[0:2,0:2]", "2 -> 1: b0[0:2,0:2] -> b7[0:2,0:2]"),
          "names buffer 7, which does not exist");
  refused(edited("0: b0[0:2,0:2] -> b1", "0: b0[0:2,0:2] -> b0"), "writes the source buffer");
  refused(edited("0: b0[0:2,0:2] -> b1", "0: b1[0:2,0:2] -> b1"), "never written");
  refused(edited("1 -> 2", "0 -> 2"), "instead of");
  refused(edited("mesh 2x2 ranks 0-3 placements S(0)S(1)", "mesh 2x2 ranks 0-3 placements S(0)"),
          "p:5: placements: expected 2 placements");
  refused(edited("step 0 copy", "step 0 jump"), "p:7: expected copy, fill");
  refused(edited("step 0 copy\n  0: b0[0:2,0:2] -> b1[0:2,0:2]\n  3: b0[0:2,0:2] -> b1[0:2,0:2]\n",
                 "step 0 copy\n"),
          "step 0 (copy) is empty");
}

TEST_CASE("temporaries are bounded before they are allocated") {
  std::string text =
      "reshard-plan 1\nplanner x\nshape 2\ndtype f32\nsource mesh 1048576 ranks 0-1048575 "
      "placements R\n"
      "destination mesh 1048576 ranks 0-1048575 placements R\n";
  for (int b = 2; b < 400; ++b) text += "temporary " + std::to_string(b) + "\n";
  CHECK_THROWS_WITH(parse_plan(text, "p"), Catch::Contains("fewer temporaries"));
}
