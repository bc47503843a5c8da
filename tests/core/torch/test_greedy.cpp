// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's greedy planner: the 30 representative cases with their printed costs, then shard orders
// and strided shards.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "core/torch/placement_state.h"
#include "core/torch/redistribution.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard {
namespace {

// "1:S(1)->R 0:S(0)->S(1)".
std::string steps_text(const std::vector<TorchStep>& steps) {
  std::string out;
  for (const TorchStep& step : steps)
    out += fmt::format("{}{}:{}->{}", out.empty() ? "" : " ", step.axis, text(step.from),
                       text(step.to));
  return out;
}

// `us` printed with as many decimals as `printed` has.
std::string as_printed(double us, const std::string& printed) {
  std::size_t point = printed.find('.');
  return fmt::format("{:.{}f}", us, point == std::string::npos ? 0 : printed.size() - point - 1);
}

struct GreedyRow {
  int number;
  const char *mesh, *from, *to, *steps;
  const char *small_us, *big_us;  // empty where the table prints none
};

const GreedyRow kGreedyRows[] = {
    {1, "4", "S0", "S1", "0:S(0)->S(1)", "9.40", "543.9"},
    {2, "2x2", "S0,S1", "S1,S0", "1:S(1)->R 0:S(0)->S(1) 1:R->S(0)", "15.40", "1440.7"},
    {3, "2x2", "S0,S0", "S1,S1", "1:S(0)->R 0:S(0)->S(1) 1:R->S(1)", "15.40", "1440.7"},
    {4, "2x2", "S0,S0", "R,S0", "1:S(0)->R 0:S(0)->R 1:R->S(0)", "14.40", "2152.4"},
    {5, "2x2", "S0,S0", "S0,R", "1:S(0)->R", "7.20", "719.9"},
    {6, "2x2", "S0,S1", "S0,S0", "1:S(1)->S(0)", "8.20", "364.5"},
    {7, "2x2", "S0,S0", "S0,S1", "1:S(0)->S(1)", "", ""},
    {8, "2x2", "S0,S0", "S1,S0", "1:S(0)->R 0:S(0)->S(1) 1:R->S(0)", "15.40", "1440.7"},
    {9, "2x2", "S0,R", "R,S0", "0:S(0)->R 1:R->S(0)", "7.20", "1432.5"},
    {10, "2x2", "R,S0", "S0,S0", "1:S(0)->R 0:R->S(0) 1:R->S(0)", "7.20", "1432.5"},
    {11, "2x2", "S1,S1", "S1,S2", "1:S(1)->S(2)", "", ""},
    {12, "2x2", "P,S0", "S0,R", "1:S(0)->R 0:P(sum)->S(0)", "14.40", "2865.0"},
    {13, "2x2", "P,S0", "S0,S0", "1:S(0)->R 0:P(sum)->S(0) 1:R->S(0)", "14.40", "2865.0"},
    {14, "2x2", "P,P", "S0,S0", "0:P(sum)->S(0) 1:P(sum)->S(0)", "14.40", "2152.4"},
    {15, "2x2", "P,P", "S0,S1", "0:P(sum)->S(0) 1:P(sum)->S(1)", "", ""},
    {16, "2x2", "P,P", "R,R", "0:P(sum)->R 1:P(sum)->R", "15.61", "5716.9"},
    {17, "2x2", "S0,P", "R,S0", "1:P(sum)->R 0:S(0)->R 1:R->S(0)", "15.00", "2865.6"},
    {18, "2x2", "S0,P", "S0,S0", "1:P(sum)->S(0)", "", ""},
    {19, "2x2", "S0,P", "S1,S0", "1:P(sum)->R 0:S(0)->S(1) 1:R->S(0)", "16.00", "2154.0"},
    {20, "2x2", "R,P", "S0,S0", "0:R->S(0) 1:P(sum)->S(0)", "", ""},
    {21, "2x2x2", "S0,S0,S0", "S1,S1,S1", "2:S(0)->R 1:S(0)->R 0:S(0)->S(1) 1:R->S(1) 2:R->S(1)",
     "22.60", "1804.2"},
    {22, "2x2x2", "S0,S1,S0", "S1,S0,S0", "2:S(0)->R 1:S(1)->R 0:S(0)->S(1) 1:R->S(0) 2:R->S(0)",
     "", "1804.2"},
    {23, "2x2x2", "S0,S1,S2", "S2,S1,S0", "2:S(2)->R 0:S(0)->S(2) 2:R->S(0)", "15.4", "1440.7"},
    {24, "2x2x2", "S1,S0,S0", "R,S0,S0", "0:S(1)->R", "", ""},
    {25, "2x2x2", "S1,R,S0", "R,S0,S0", "2:S(0)->R 1:R->S(0) 0:S(1)->R 2:R->S(0)", "14.4",
     "1439.7"},
    {26, "2x2x2", "S0,S0,S1", "S0,S1,S2", "2:S(1)->S(2) 1:S(0)->S(1)", "", ""},
    {27, "2x2x2", "P,P,S0", "S0,S0,S0", "2:S(0)->R 1:P(sum)->R 0:P(sum)->S(0) 1:R->S(0) 2:R->S(0)",
     "22.2", "5723.5"},
    {28, "2x2x2", "P,R,P", "R,R,R", "0:P(sum)->R 2:P(sum)->R", "15.6", "5716.9"},
    {29, "2x2x2", "P,S0,P", "R,R,R", "2:P(sum)->R 1:S(0)->R 0:P(sum)->R", "22.8", "5724.1"},
    {30, "2x2x2x2", "R,S0,R,R", "S1,R,S1,S1", "1:S(0)->R 0:R->S(1) 2:R->S(1) 3:R->S(1)", "7.20",
     "1432.5"},
};

}  // namespace

TEST_CASE("greedy plans and costs of the 30 representative cases") {
  for (const GreedyRow& row : kGreedyRows) {
    std::string both = std::string(row.from) + row.to;
    bool three_dims = both.find("S2") != std::string::npos;
    Request small = request_on(row.mesh, three_dims ? "8,8,8" : "8,8", row.from, row.to);
    Request big = request_on(row.mesh, three_dims ? "512,512,512" : "8192,8192", row.from, row.to);
    INFO("case " << row.number << " " << row.mesh << " " << row.from << " -> " << row.to);
    CHECK(steps_text(torch_greedy_steps(small)) == row.steps);
    CHECK(steps_text(torch_greedy_steps(big)) == row.steps);
    if (*row.small_us != 0)
      CHECK(as_printed(torch_redistribute_cost_us(small, 16), row.small_us) == row.small_us);
    if (*row.big_us != 0)
      CHECK(as_printed(torch_redistribute_cost_us(big, 16), row.big_us) == row.big_us);
  }
}

TEST_CASE("greedy plans of shard orders and strided shards") {
  const struct {
    const char *mesh, *from, *to, *steps;
  } rows[] = {
      {"2x2", "S(0)[0]S(0)[1]", "S(0)[1]S(0)[0]", "1:S(0)->R 0:S(0)->R 1:R->S(0) 0:R->S(0)"},
      {"2x2", "S(0)[1]S(0)[0]", "S(0)[1]S(0)[0]", ""},
      {"2x2", "S(0)[1]S(0)[0]", "R,S(0)", "0:S(0)->R"},
      {"2x2x2", "S(0)[1]S(0)[0]S(0)[2]", "S(0)[1]S(0)[0]R", "2:S(0)->R"},
      {"2x2x2", "S(0)[1]S(0)[0]S(0)[2]", "R,S0,S0", "2:S(0)->R 0:S(0)->R 2:R->S(0)"},
      {"2x2", "_S(0,2)S(0)", "R,S0", "1:S(0)->R 0:_S(0, 2)->R 1:R->S(0)"},
      {"2x2", "_S(0,2)S(0)", "_S(0,2)R", "1:S(0)->R"},
      {"2x2", "_S(0,2)S(0)", "_S(0,2)S(1)", "1:S(0)->S(1)"},
      {"2", "S0", "_S(0,2)", "0:S(0)->R 0:R->_S(0, 2)"},
      {"2", "_S(0,2)", "_S(1,2)", "0:_S(0, 2)->R 0:R->_S(1, 2)"},
      {"2", "P", "_S(0,2)", "0:P(sum)->R 0:R->_S(0, 2)"},
      {"2", "R", "_S(0,2)", "0:R->_S(0, 2)"},
  };
  for (const auto& row : rows) {
    INFO(row.mesh << " " << row.from << " -> " << row.to);
    CHECK(steps_text(torch_greedy_steps(request_on(row.mesh, "8,8", row.from, row.to))) ==
          row.steps);
  }
}

TEST_CASE("greedy gathers only innermost axes and ends in the target") {
  const std::vector<const char*> layouts{
      "RRR",         "S0,S0,S0",           "S(0)[2]S(0)[1]S(0)[0]", "S(0)[1]S(0)[2]S(0)[0]",
      "S0,S1,S0",    "S(0)[1]S(1)S(0)[0]", "_S(0,2)S0,S0",          "S0,_S(0,2)S0",
      "S1,S1,S0",    "S(1)[1]S(1)[0]S(0)", "R,S(0)[1]S(0)[0]",      "S0,R,S0",
      "S1,R,_S(1,3)"};
  int steps = 0;
  for (const char* from : layouts)
    for (const char* to : layouts) {
      Request request = request_on("2x2x2", "8,8", from, to);
      PlacementState state(request.source());
      for (const TorchStep& step : torch_greedy_steps(request)) {
        INFO(from << " -> " << to);
        REQUIRE(state.of(step.axis) == step.from);
        if (step.from.is_shard_like()) CHECK(state.stack(step.from.dim).back() == step.axis);
        state.place(step.axis, step.to);
        ++steps;
      }
      CHECK(state.placements == request.destination().placements());
      CHECK(state.stacks == request.destination().stacks());
    }
  CHECK(steps > 300);
}

}  // namespace reshard
