// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's min-cost planner: the 30 representative cases with their costs, small (latency decides)
// and big (bandwidth decides), shard orders, ties, operators, and joined steps.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/torch/merge.h"
#include "core/torch/redistribution.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard {
namespace {

// "1:S(0)->R 0:S(0)->S(1)"; joined steps with "+" between them.
std::string steps_text(const Request& request, WantedAddends addends = WantedAddends::Any,
                       std::int32_t devices_per_host = 16) {
  std::optional<OrderedRequest> ordered = as_shard_orders(request);
  REQUIRE(ordered.has_value());
  std::vector<TorchStep> steps = torch_min_cost_steps(*ordered, devices_per_host, addends);
  std::string out;
  auto step = steps.begin();
  for (std::size_t count : joined_steps(ordered->source, steps))
    for (std::size_t i = 0; i < count; ++i, ++step)
      out += fmt::format("{}{}:{}->{}",
                         step == steps.begin() ? ""
                         : i == 0              ? " "
                                               : "+",
                         step->axis, text(step->from), text(step->to));
  return out;
}

struct MinCostRow {
  int number;
  const char *mesh, *from, *to;
  const char *small_steps, *small_us, *big_steps, *big_us;
};

const MinCostRow kMinCostRows[] = {
    {1, "4", "S0", "S1", "0:S(0)->R 0:R->S(1)", "8.40", "0:S(0)->S(1)", "543.9"},
    {2, "2x2", "S0,S1", "S1,S0", "0:S(0)->R 1:S(1)->R 0:R->S(1) 1:R->S(0)", "14.40",
     "0:S(0)->R 1:S(1)->S(0) 0:R->S(1)", "1440.7"},
    {3, "2x2", "S0,S0", "S1,S1", "1:S(0)->R 0:S(0)->R 0:R->S(1) 1:R->S(1)", "14.40",
     "1:S(0)->R 0:S(0)->S(1) 1:R->S(1)", "1440.7"},
    {4, "2x2", "S0,S0", "R,S0", "1:S(0)->R 0:S(0)->R 1:R->S(0)", "14.40",
     "1:S(0)->S(1) 0:S(0)->R 1:S(1)->S(0)", "1805.2"},
    {5, "2x2", "S0,S0", "S0,R", "1:S(0)->R", "7.20", "1:S(0)->R", "719.9"},
    {6, "2x2", "S0,S1", "S0,S0", "1:S(1)->R 1:R->S(0)", "7.20", "1:S(1)->S(0)", "364.5"},
    {7, "2x2", "S0,S0", "S0,S1", "1:S(0)->R 1:R->S(1)", "7.20", "1:S(0)->S(1)", "364.5"},
    {8, "2x2", "S0,S0", "S1,S0", "1:S(0)->R 0:S(0)->R 0:R->S(1) 1:R->S(0)", "14.40",
     "1:S(0)->R 0:S(0)->S(1) 1:R->S(0)", "1440.7"},
    {9, "2x2", "S0,R", "R,S0", "0:S(0)->R 1:R->S(0)", "7.20", "0:S(0)->R 1:R->S(0)", "1432.5"},
    {10, "2x2", "R,S0", "S0,S0", "1:S(0)->R 0:R->S(0) 1:R->S(0)", "7.20",
     "1:S(0)->S(1) 0:R->S(0) 1:S(1)->S(0)", "1085.4"},
    {11, "2x2", "S1,S1", "S1,S2", "1:S(1)->R 1:R->S(2)", "7.21", "1:S(1)->S(2)", "720.9"},
    {12, "2x2", "P,S0", "S0,R", "1:S(0)->R 0:P(sum)->S(0)", "14.40",
     "0:P(sum)->S(1) 1:S(0)->R 0:S(1)->S(0)", "2160.6"},
    {13, "2x2", "P,S0", "S0,S0", "1:S(0)->R 0:P(sum)->S(0) 1:R->S(0)", "14.40",
     "1:S(0)->S(1) 0:P(sum)->S(0) 1:S(1)->S(0)", "1805.2"},
    {14, "2x2", "P,P", "S0,S0", "0:P(sum)->S(0) 1:P(sum)->S(0)", "14.40",
     "0:P(sum)->S(0) 1:P(sum)->S(0)", "2152.4"},
    {15, "2x2", "P,P", "S0,S1", "0:P(sum)->S(0) 1:P(sum)->S(1)", "14.40",
     "0:P(sum)->S(0) 1:P(sum)->S(1)", "2152.4"},
    {16, "2x2", "P,P", "R,R", "0:P(sum)->R 1:P(sum)->R", "15.61",
     "0:P(sum)->S(0) 1:P(sum)->R 0:S(0)->R", "4298.1"},
    {17, "2x2", "S0,P", "R,S0", "0:S(0)->R 1:P(sum)->S(0)", "14.40",
     "1:P(sum)->S(1) 0:S(0)->R 1:S(1)->S(0)", "2160.6"},
    {18, "2x2", "S0,P", "S0,S0", "1:P(sum)->S(0)", "7.20", "1:P(sum)->S(0)", "719.9"},
    {19, "2x2", "S0,P", "S1,S0", "0:S(0)->R 0:R->S(1) 1:P(sum)->S(0)", "14.40",
     "0:S(0)->S(1) 1:P(sum)->S(0)", "1440.7"},
    {20, "2x2", "R,P", "S0,S0", "0:R->S(0) 1:P(sum)->S(0)", "7.20", "0:R->S(0) 1:P(sum)->S(0)",
     "719.9"},
    {21, "2x2x2", "S0,S0,S0", "S1,S1,S1",
     "2:S(0)->R 1:S(0)->R 0:S(0)->R 0:R->S(1) 1:R->S(1) 2:R->S(1)", "21.60",
     "2:S(0)->R 1:S(0)->R 0:S(0)->S(1) 1:R->S(1) 2:R->S(1)", "1804.2"},
    {22, "2x2x2", "S0,S1,S0", "S1,S0,S0",
     "2:S(0)->R 0:S(0)->R 1:S(1)->R 0:R->S(1) 1:R->S(0) 2:R->S(0)", "21.60",
     "2:S(0)->R 0:S(0)->R 1:S(1)->S(0) 0:R->S(1) 2:R->S(0)", "1804.2"},
    {23, "2x2x2", "S0,S1,S2", "S2,S1,S0", "0:S(0)->R 2:S(2)->R 0:R->S(2) 2:R->S(0)", "14.41",
     "0:S(0)->S(1) 2:S(2)->S(0) 0:S(1)->S(2)", "1093.6"},
    {24, "2x2x2", "S1,S0,S0", "R,S0,S0", "0:S(1)->R", "7.20", "0:S(1)->R", "363.5"},
    {25, "2x2x2", "S1,R,S0", "R,S0,S0", "2:S(0)->R 1:R->S(0) 2:R->S(0) 0:S(1)->R", "14.40",
     "2:S(0)->S(1) 1:R->S(0) 2:S(1)->S(0) 0:S(1)->R", "914.4"},
    {26, "2x2x2", "S0,S0,S1", "S0,S1,S2", "2:S(1)->R 2:R->S(2) 1:S(0)->R 1:R->S(1)", "14.41",
     "2:S(1)->S(2) 1:S(0)->S(1)", "729.1"},
    {27, "2x2x2", "P,P,S0", "S0,S0,S0", "2:S(0)->R 0:P(sum)->S(0) 1:P(sum)->S(0) 2:R->S(0)",
     "21.60", "2:S(0)->S(1) 0:P(sum)->S(0) 1:P(sum)->S(0) 2:S(1)->S(0)", "1990.6"},
    {28, "2x2x2", "P,R,P", "R,R,R", "0:P(sum)->R 2:P(sum)->R", "15.61",
     "1:R->S(0) 0:P(sum)->S(0) 2:P(sum)->R 0:S(0)->R 1:S(0)->R", "3592.7"},
    {29, "2x2x2", "P,S0,P", "R,R,R", "0:P(sum)->R 2:P(sum)->R 1:S(0)->R", "22.80",
     "0:P(sum)->S(0) 2:P(sum)->R 0:S(0)->R 1:S(0)->R", "3592.7"},
    {30, "2x2x2x2", "R,S0,R,R", "S1,R,S1,S1", "0:R->S(1) 2:R->S(1) 3:R->S(1) 1:S(0)->R", "7.20",
     "0:R->S(1) 2:R->S(1) 3:R->S(1) 1:S(0)->R", "185.4"},
};

std::string unjoined(std::string steps) {
  std::ranges::replace(steps, '+', ' ');
  return steps;
}

}  // namespace

TEST_CASE("min-cost plans and costs of the 30 representative cases") {
  for (const MinCostRow& row : kMinCostRows) {
    std::string both = std::string(row.from) + row.to;
    bool three_dims = both.find("S2") != std::string::npos;
    Request small = request_on(row.mesh, three_dims ? "8,8,8" : "8,8", row.from, row.to);
    Request big = request_on(row.mesh, three_dims ? "512,512,512" : "8192,8192", row.from, row.to);
    INFO("case " << row.number << " " << row.mesh << " " << row.from << " -> " << row.to);
    CHECK(unjoined(steps_text(small)) == row.small_steps);
    CHECK(unjoined(steps_text(big)) == row.big_steps);
    CHECK(fmt::format("{:.2f}", torch_min_cost_us(small, 16)) == row.small_us);
    CHECK(fmt::format("{:.1f}", torch_min_cost_us(big, 16)) == row.big_us);
  }
}

// What test_redistribute.py of PyTorch asserts.
TEST_CASE("min-cost plans of shard orders") {
  const struct {
    const char *from, *to, *steps;
  } rows[] = {
      {"S(0)[0]S(0)[1]S(0)[2]", "R,S0,S0", "2:S(0)->R+1:S(0)->R+0:S(0)->R 1:R->S(0) 2:R->S(0)"},
      {"S(0)[1]S(0)[0]S(0)[2]", "R,S0,S0", "2:S(0)->R 0:S(0)->R 2:R->S(0)"},
      {"S(0)[1]S(0)[0]S(0)[2]", "S0,S0,R", "2:S(0)->R 0:S(0)->R 1:S(0)->R 0:R->S(0) 1:R->S(0)"},
      {"S0,S0,R", "R,S1,S0", "1:S(0)->R 1:R->S(1) 0:S(0)->R 2:R->S(0)"},
  };
  for (const auto& row : rows) {
    INFO(row.from << " -> " << row.to);
    std::string steps = steps_text(request_on("2x2x2", "8,8,8", row.from, row.to));
    CHECK(unjoined(steps) == unjoined(row.steps));
  }
}

TEST_CASE("of equal costs the state that was found first comes first") {
  // Nothing moves: dims and axes ascending, so axis 0 before axis 1, and the outer axis first where
  // the order asks for it.
  CHECK(steps_text(request_on("2x2", "8,8", "R,R", "S1,S0")) == "0:R->S(1) 1:R->S(0)");
  CHECK(steps_text(request_on("2x2", "8,8", "R,R", "S(0)[1]S(0)[0]")) == "1:R->S(0) 0:R->S(0)");
  // Both gathers cost the same in either order, down to the last bit.
  CHECK(unjoined(steps_text(request_on("2x2", "8,8", "S0,S1", "R,R"))) == "0:S(0)->R 1:S(1)->R");
  // A reduction is found before the gather that costs as much.
  CHECK(steps_text(request_on("2x2", "0,8", "P,S0", "S0,R")) == "1:S(0)->R 0:P(sum)->S(0)");
}

TEST_CASE("only operators of source and target are made, and no mix but sum with avg") {
  CHECK(steps_text(request_on("2x2", "8", "P(max),R", "P(max),P(max)")) == "1:R->P(max)");
  // The maximum is folded first: R may not become P(sum) beside it.
  CHECK(steps_text(request_on("2x2", "8", "P(max),R", "R,P"), WantedAddends::AsRequested) ==
        "0:P(max)->R 1:R->P(sum)");
  CHECK(steps_text(request_on("2x2", "8", "R,P", "P(avg),R")) == "0:R->P(avg) 1:P(sum)->R");
}

TEST_CASE("S becomes P(sum) at no cost where the target has it, and has no price in reports") {
  Request request = request_on("2x2", "8,8", "S0,S0", "P,S0");
  CHECK(steps_text(request) == "1:S(0)->R 0:S(0)->P(sum) 1:R->S(0)");
  CHECK(std::isinf(torch_min_cost_us(request, 16)));
  CHECK(steps_text(request_on("4", "8", "S0", "P")) == "0:S(0)->P(sum)");
}

TEST_CASE("addends of a wanted sum are PyTorch's, or the request's") {
  // Between hosts it costs PyTorch least to gather halves, and to call the shards addends.
  Request request = request_on("2x8", "8192,8192", "R,S0", "P,R");
  std::optional<OrderedRequest> ordered = as_shard_orders(request);
  std::vector<TorchStep> theirs = torch_min_cost_steps(*ordered, 8);
  CHECK(steps_text(request, WantedAddends::Any, 8) == "0:R->S(1) 1:S(0)->R 0:S(1)->P(sum)");
  CHECK_FALSE(make_wanted_addends(*ordered, theirs));
  CHECK(steps_text(request, WantedAddends::AsRequested, 8) == "0:R->P(sum) 1:S(0)->R");
  CHECK(
      make_wanted_addends(*ordered, torch_min_cost_steps(*ordered, 8, WantedAddends::AsRequested)));
}

TEST_CASE("a strided shard is read as a shard order where it stands for one") {
  CHECK(steps_text(request_on("2x2", "8", "_S(0,2)S(0)", "R,S0")) == "0:S(0)->R");
  CHECK(steps_text(request_on("2x2", "8", "_S(0,2)S(0)", "S(0)[1]S(0)[0]")) == "");
  auto order = [](const char* mesh, const char* placements) -> std::string {
    auto ordered = as_shard_orders(request_on(mesh, "24", placements, "R,R,R"));
    return ordered ? ordered->source.placements_text() : "none";
  };
  CHECK(order("2x3x4", "S0,_S(0,4)S0") == "S(0)[0]S(0)[2]S(0)[1]");
  CHECK(order("2x3x4", "_S(0,12)_S(0,4)S0") == "S(0)[2]S(0)[1]S(0)[0]");
  CHECK(order("2x3x4", "S0,_S(0,3)S0") == "none");
  CHECK(order("2x3x4", "_S(0,3)S0,S0") == "S(0)[1]S(0)[0]S(0)[2]");
  CHECK(order("4x3x2", "_S(0,2)_S(0,2)S0") == "S(0)[1]S(0)[2]S(0)[0]");
}

TEST_CASE("an uneven strided shard need not be the order it stands for") {
  auto exact = [](const char* mesh, int length) {
    return as_shard_orders(request_on(mesh, std::to_string(length),
                                      std::string("_S(0,") + mesh[2] + ")S(0)", "R,R"))
        ->exact;
  };
  std::vector<int> differ;
  for (int length = 0; length < 40; ++length)
    if (!exact("3x2", length)) differ.push_back(length);
  CHECK(differ == std::vector<int>{7, 13, 19, 25, 31, 37});
  differ.clear();
  for (int length = 0; length < 41; ++length)
    if (!exact("4x3", length)) differ.push_back(length);
  CHECK(differ == std::vector<int>{14, 16, 25, 26, 28, 37, 38, 40});
}

TEST_CASE(
    "PyTorch's cost is the min-cost planner's for shard orders, and infinite where they are "
    "strided") {
  Request order = request_on("2x2", "64,64", "S(0)[1]S(0)[0]", "R,S0");
  Request strided = request_on("2x2", "64,64", "_S(0,2)S(0)", "R,S0");
  CHECK(torch_redistribute_cost_us(order, 8) == torch_min_cost_us(order, 8));
  CHECK(std::isinf(torch_min_cost_us(strided, 8)));
  CHECK(std::isinf(torch_redistribute_cost_us(strided, 8)));
  CHECK(std::isinf(torch_redistribute_cost_us(request_on("2x2", "64", "_S(0,3)S(0)", "R,R"), 8)));
  Request plain = request_on("2x2", "8192,8192", "S0,S0", "R,S0");
  CHECK(torch_min_cost_us(plain, 8) < torch_redistribute_cost_us(plain, 8));
}

// Answers of torch.distributed.tensor._collective_utils.redistribute_cost, two devices to a host.
TEST_CASE("a strided shard costs what PyTorch says, whatever its split factor stands for") {
  auto cost = [](const char* mesh, const char* from, const char* to) {
    Request request = request_on(mesh, "64,64", from, to);
    double us = torch_redistribute_cost_us(request, 2);
    CHECK(us == torch_min_cost_us(request, 2));
    return us;
  };
  for (const char* to : {"R", "S(0)", "S(1)", "_S(1,1)"})
    CHECK(std::isinf(cost("8", "_S(0,1)", to)));
  for (const char* from : {"S(0)", "S(1)", "P(sum)"}) CHECK(std::isinf(cost("8", from, "_S(0,1)")));
  CHECK(cost("8", "_S(0,1)", "_S(0,1)") == 0);
  CHECK(cost("8", "R", "_S(0,1)") == 0);
  CHECK(std::isinf(cost("2x4", "_S(0,1)S(0)", "RR")));
  CHECK(std::isinf(cost("2x4", "S(0)_S(1,1)", "RR")));
  CHECK(std::isinf(cost("2x4", "S(1)S(0)", "S(1)_S(0,1)")));
  CHECK(cost("2x4", "RR", "_S(0,1)S(0)") == 0);

  const char *order = "S(0)[1]S(0)[0]", *named = "_S(0,4)S(0)";
  for (const char* to : {order, "RR", "S(0)S(0)", "S(1)S(0)", "_S(0,4)R"})
    CHECK(std::isinf(cost("2x4", named, to)));
  for (const char* from : {order, "S(0)S(0)", "S(1)S(0)", "S(0)R", "_S(0,4)R"})
    CHECK(std::isinf(cost("2x4", from, named)));
  CHECK(cost("2x4", named, named) == 0);
  CHECK(cost("2x4", "RR", named) == 0);
  CHECK(cost("2x4", order, order) == 0);
  CHECK(cost("2x4", order, "RR") == 24.691999607633853);
  CHECK(cost("2x4", order, "S(1)S(0)") == 9.398857086804837);
  CHECK(cost("2x4", "S(1)S(0)", order) == 9.398857086804837);
  CHECK(cost("2x4", "S(0)R", order) == 9.695428347219343);
}

TEST_CASE("what is joined to one collective") {
  const struct {
    const char *mesh, *shape, *from, *to, *steps;
  } rows[] = {
      {"2x2", "8", "P,P", "R,R", "0:P(sum)->R+1:P(sum)->R"},
      {"2x2", "8", "P,P(avg)", "R,R", "0:P(sum)->R+1:P(avg)->R"},
      {"2x2x2", "8,8", "P,S0,P", "R,R,R", "0:P(sum)->R+2:P(sum)->R 1:S(0)->R"},
      {"2x2", "8", "P,P", "S0,S0", "0:P(sum)->S(0)+1:P(sum)->S(0)"},
      {"2x2", "8,8", "P,P", "S0,S1", "0:P(sum)->S(0) 1:P(sum)->S(1)"},
      {"2x3", "4", "P,P", "S0,S0", "0:P(sum)->S(0) 1:P(sum)->S(0)"},
      {"2x2", "8", "P,P", "S(0)[1]S(0)[0]", "1:P(sum)->S(0) 0:P(sum)->S(0)"},
      {"2x2", "8", "S0,S0", "R,R", "1:S(0)->R+0:S(0)->R"},
      {"2x2", "5", "S0,S0", "R,R", "1:S(0)->R+0:S(0)->R"},
      {"2x2", "8", "S(0)[1]S(0)[0]", "R,R", "0:S(0)->R 1:S(0)->R"},
      {"2x2x2", "8", "S0,P,P", "S0,S0,S0", "1:P(sum)->S(0)+2:P(sum)->S(0)"},
      {"2x2x2", "12", "S0,P,P", "S0,S0,S0", "1:P(sum)->S(0) 2:P(sum)->S(0)"},
  };
  for (const auto& row : rows) {
    INFO(row.mesh << " " << row.shape << " " << row.from << " -> " << row.to);
    CHECK(steps_text(request_on(row.mesh, row.shape, row.from, row.to)) == row.steps);
  }
}

TEST_CASE("a search over too many states is not begun") {
  const char* mesh = "2x2x2x2x2";
  CHECK(can_search(*as_shard_orders(request_on(mesh, "2,2,2,2", "P,S0,S0,S0,S0", "R,R,R,R,R"))));
  Request many = request_on(mesh, "2,2,2,2,2,2,2,2", "P,S0,S0,S0,S0", "R,R,R,R,R");
  CHECK_FALSE(can_search(*as_shard_orders(many)));
  CHECK(std::isinf(torch_min_cost_us(many, 8)));
}

}  // namespace reshard
