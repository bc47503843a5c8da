// SPDX-License-Identifier: BSD-3-Clause
// The min-cost planner's steps, which of them are joined, and their costs by PyTorch's model, bit
// for bit, for random requests.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "core/torch/merge.h"
#include "core/torch/redistribution.h"
#include "tests/core/torch/expectations.h"

namespace reshard {
namespace {

// "MESH SHAPE DTYPE DEVICES_PER_HOST SOURCE > TARGET: STEPS COST".
struct Drawn {
  Request request;
  std::int32_t devices_per_host;
  std::string steps;
  double cost_us;
};

Drawn parse_drawn(const std::string& line) {
  std::vector<std::string> words = parts_of(line, ' ');
  REQUIRE(words.size() == 9);
  MeshRef mesh = torch_mesh(words[0]);
  std::string target = words[6].substr(0, words[6].size() - 1);
  return {Request(parse_layout(words[1], words[2], mesh, words[4]),
                  parse_layout(words[1], words[2], mesh, target)),
          std::stoi(words[3]), words[7], std::strtod(words[8].c_str(), nullptr)};
}

std::string steps_text(const std::vector<TorchStep>& steps,
                       const std::vector<std::size_t>& joined) {
  std::string out;
  auto step = steps.begin();
  for (std::size_t count : joined)
    for (std::size_t i = 0; i < count; ++i, ++step)
      out += fmt::format("{}{}>{}",
                         step == steps.begin() ? ""
                         : i == 0              ? ","
                                               : "+",
                         step->axis, text(step->to));
  return out.empty() ? "." : out;
}

std::string bits_text(double us) { return fmt::format("{:.17g}", us); }

}  // namespace

TEST_CASE("min-cost steps, joined steps and costs are PyTorch's") {
  int compared = 0, joined = 0, strided = 0, unpriced = 0;
  for (const std::string& line : torch_lines("graph_plans.txt")) {
    Drawn drawn = parse_drawn(line);
    INFO(line);
    std::optional<OrderedRequest> ordered = as_shard_orders(drawn.request);
    REQUIRE(ordered.has_value());
    std::vector<TorchStep> steps = torch_min_cost_steps(*ordered, drawn.devices_per_host);
    CHECK(steps_text(steps, joined_steps(ordered->source, steps)) == drawn.steps);
    // The price of the order, for PyTorch prices no _StridedShard that stands for it.
    CHECK(bits_text(torch_min_cost_us(Request(ordered->source, ordered->target),
                                      drawn.devices_per_host)) == bits_text(drawn.cost_us));
    ++compared;
    if (drawn.steps.find('+') != std::string::npos) ++joined;
    if (line.find("_S(") != std::string::npos) ++strided;
    if (std::isinf(drawn.cost_us)) ++unpriced;
  }
  CHECK(compared == 600);
  CHECK(joined == 43);
  CHECK(strided == 63);
  CHECK(unpriced == 67);
}

}  // namespace reshard
