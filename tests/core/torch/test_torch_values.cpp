// SPDX-License-Identifier: BSD-3-Clause
// The meaning of a request, element by element (which addends are folded, what divides them, where
// the result is, where zeros are), against the values that PyTorch's own collectives leave on every
// rank. Plans are proved against this meaning, so this test ties every planner to PyTorch.
#include <catch2/catch.hpp>

#include <algorithm>

#include <fmt/format.h>

#include "core/layout/zero_axes.h"
#include "tests/core/torch/expectations.h"

namespace reshard {
namespace {

// As the script fills the source: element i of addend a.
std::int64_t source_value(std::int64_t element, std::int64_t addend) {
  return 36 * (element + 1) * (1 + 2 * addend);
}

std::int64_t destination_value(const Request& request, std::int32_t position,
                               std::int64_t element) {
  if (ZeroAxes(request).values_in({{element}, {element + 1}},
                                  request.destination().mesh().coordinate(position)) == 0)
    return 0;
  std::vector<std::int64_t> addends = request.addends_wanted(position);
  std::int64_t out = source_value(element, addends.at(0));
  for (std::size_t i = 1; i < addends.size(); ++i) {
    std::int64_t operand = source_value(element, addends[i]);
    out = request.fold().op == ReduceOp::Max ? std::max(out, operand) : out + operand;
  }
  REQUIRE(out % request.fold().divisor == 0);
  return out / request.fold().divisor;
}

std::string rank_text(const Request& request, std::int32_t position) {
  std::string out;
  for (const Run& run : request.destination().runs(0, position))
    for (std::int64_t element = run.global_lo; element < run.global_hi(); ++element)
      out += fmt::format("{}{}", out.empty() ? "" : ",",
                         destination_value(request, position, element));
  return out.empty() ? "-" : out;
}

}  // namespace

TEST_CASE("requests mean what PyTorch does to the values") {
  int pairs = 0, ranks = 0;
  MeshRef mesh;
  std::string length;
  for (const std::string& line : torch_lines("values.txt")) {
    if (line.substr(0, 5) == "mesh ") {
      std::vector<std::string> words = parts_of(line, ' ');
      mesh = torch_mesh(words.at(1));
      length = words.at(3);
      continue;
    }
    CAPTURE(shape_text(*mesh), length, line);
    auto [pair, values] = keyed_values(line);
    std::size_t arrow = pair.find(" > ");
    REQUIRE(arrow != std::string::npos);
    REQUIRE(static_cast<std::int32_t>(values.size()) == mesh->size());
    Request request(parse_layout(length, "f32", mesh, pair.substr(0, arrow)),
                    parse_layout(length, "f32", mesh, pair.substr(arrow + 3)));
    std::vector<std::string> ours, theirs;
    for (std::int32_t position = 0; position < mesh->size(); ++position) {
      const std::string& value = values[static_cast<std::size_t>(position)];
      theirs.push_back(value == "=" ? theirs.back() : value);
      ours.push_back(rank_text(request, position));
    }
    CHECK(ours == theirs);
    ++pairs;
    ranks += mesh->size();
  }
  CHECK(pairs == 816);
  CHECK(ranks == 3633);
}

}  // namespace reshard
