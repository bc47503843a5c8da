// SPDX-License-Identifier: BSD-3-Clause
// The greedy planner's steps and the costs of PyTorch's model, bit for bit, for every pair of
// placements from a list.
#include <catch2/catch.hpp>

#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/torch/redistribution.h"
#include "tests/core/torch/expectations.h"

namespace reshard {
namespace {

std::optional<Request> request_of(const Layout& source, const Layout& target) {
  try {
    return Request(source, target);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// As greedy_plans.txt writes it: "1r0a", "." for none. Fails the test where a step does not start
// at what the axis then has.
std::string steps_text(const TorchPalette& palette, const Request& request) {
  std::vector<Placement> state = request.source().placements();
  std::string out;
  for (const TorchStep& step : torch_greedy_steps(request)) {
    Placement& now = state[static_cast<std::size_t>(step.axis)];
    if (!(now == step.from)) return "a step from what the axis does not have";
    now = step.to;
    out += fmt::format("{}", step.axis);
    for (const auto& [letter, placement] : palette.letters)
      if (parse_placements(placement, 1, request.shape().size(), "palette").placements[0] ==
          step.to)
        out += letter;
  }
  return out.empty() ? "." : out;
}

double real(const std::string& text) {
  double out = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  REQUIRE(error == std::errc());
  REQUIRE(end == text.data() + text.size());
  return out;
}

struct GreedyCounts {
  int cases = 0, compared = 0, refused = 0, left_out = 0;
};

// "mesh ... shape SHAPE dtype DTYPE devices_per_host N".
struct CostCase {
  TorchPalette palette;
  std::string shape, dtype;
  std::int32_t devices_per_host;
};

CostCase parse_cost_case(const std::string& line) {
  std::vector<std::string> words = parts_of(line, ' ');
  RESHARD_CHECK(words.size() > 6 && words[words.size() - 2] == "devices_per_host", line);
  std::size_t n = words.size();
  return {parse_palette(words), words[n - 5], words[n - 3],
          static_cast<std::int32_t>(real(words[n - 1]))};
}

std::string cost_text(double us) { return std::isinf(us) ? "!" : fmt::format("{:.17g}", us); }

}  // namespace

TEST_CASE("greedy steps are PyTorch's for every pair of placements") {
  GreedyCounts counts;
  TorchPalette palette;
  for (const std::string& line : torch_lines("greedy_plans.txt")) {
    if (line.substr(0, 5) == "mesh ") {
      palette = parse_palette(parts_of(line, ' '));
      ++counts.cases;
      continue;
    }
    auto [source_word, plans] = keyed_values(line);
    REQUIRE(plans.size() == palette.words.size());
    Layout source = palette.layout(source_word, "8,8,8", "f32");
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const std::string& plan = plans[i];
      std::optional<Request> request =
          request_of(source, palette.layout(palette.words[i], "8,8,8", "f32"));
      CAPTURE(shape_text(*palette.mesh), source_word, palette.words[i], plan);
      if (plan.back() == '!' || plan.back() == '?') {
        CHECK_FALSE(request.has_value());
        ++counts.refused;
        continue;
      }
      REQUIRE(request.has_value());
      CHECK(steps_text(palette, *request) == plan);
      ++counts.compared;
    }
  }
  CHECK(counts.cases == 11);
  CHECK(counts.compared == 25952);
  CHECK(counts.refused == 1033);
}

TEST_CASE("costs are PyTorch's to the last bit") {
  std::vector<std::string> lines = torch_lines("costs.txt");
  auto values = static_cast<std::size_t>(real(parts_of(lines[0], ' ').at(1)));
  GreedyCounts counts;
  CostCase now;
  for (std::size_t at = values + 1; at < lines.size(); ++at) {
    if (lines[at].substr(0, 5) == "mesh ") {
      now = parse_cost_case(lines[at]);
      ++counts.cases;
      continue;
    }
    auto [source_word, entries] = keyed_values(lines[at]);
    REQUIRE(entries.size() == now.palette.words.size());
    Layout source = now.palette.layout(source_word, now.shape, now.dtype);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i] == "~") {
        ++counts.left_out;
        continue;
      }
      std::optional<Request> request =
          request_of(source, now.palette.layout(now.palette.words[i], now.shape, now.dtype));
      CAPTURE(shape_text(*now.palette.mesh), now.shape, now.dtype, now.devices_per_host,
              source_word, now.palette.words[i]);
      if (entries[i] == "?") {
        CHECK_FALSE(request.has_value());
        ++counts.refused;
        continue;
      }
      if (entries[i] == "!") {
        if (request)
          CHECK(cost_text(torch_redistribute_cost_us(*request, now.devices_per_host)) == "!");
        ++counts.refused;
        continue;
      }
      std::size_t index = std::stoul(entries[i], nullptr, 36);
      REQUIRE(index < values);
      REQUIRE(request.has_value());
      CHECK(cost_text(torch_redistribute_cost_us(*request, now.devices_per_host)) ==
            cost_text(real(lines[index + 1])));
      ++counts.compared;
    }
  }
  CHECK(counts.cases == 44);
  CHECK(counts.compared == 23429);
  CHECK(counts.refused == 10597);
  CHECK(counts.left_out == 56);
}

}  // namespace reshard
