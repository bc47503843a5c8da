// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch decides for random views and stacks, and where reshard deliberately differs.
#include <catch2/catch.hpp>

#include <charconv>

#include "core/base/errors.h"
#include "core/ops/decision.h"
#include "core/ops/views/view_rule.h"
#include "tests/core/torch/expectations.h"

namespace reshard {
namespace {

std::int64_t number(std::string_view text) {
  std::int64_t out = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  REQUIRE((error == std::errc() && end == text.data() + text.size()));
  return out;
}

// "dim=0;sizes=[2,3]", "-" for none.
OpAttributes attributes_of(const std::string& text) {
  OpAttributes out;
  if (text == "-") return out;
  for (const std::string& entry : parts_of(text, ';')) {
    std::vector<std::string> parts = parts_of(entry, '=');
    std::string value = parts.at(1);
    if (value[0] != '[') {
      out.set(parts[0], OpValue(number(value)));
      continue;
    }
    std::vector<std::int64_t> list;
    value = value.substr(1, value.size() - 2);
    if (!value.empty())
      for (const std::string& item : parts_of(value, ',')) list.push_back(number(item));
    out.set(parts[0], OpValue(list));
  }
  return out;
}

struct Marked {
  OpPlacements placements;
  bool of_view = false;
  friend bool operator==(const Marked&, const Marked&) = default;
};

// "S(0)_S(1,2):v".
Marked marked(std::string text, std::size_t axes, int dims) {
  Marked out;
  out.of_view = text.ends_with(":v");
  if (out.of_view) text.resize(text.size() - 2);
  for (const Placement& placement :
       parse_placements(text, static_cast<int>(axes), dims, "placements").placements)
    out.placements.emplace_back(placement);
  return out;
}

std::vector<std::int32_t> sizes_of(const std::string& mesh) {
  std::vector<std::int32_t> out;
  for (const std::string& size : parts_of(mesh, 'x'))
    out.push_back(static_cast<std::int32_t>(number(size)));
  return out;
}

Shape shape_of(const std::string& text) { return parse_shape(text == "-" ? "" : text); }

struct ViewCounts {
  int equal = 0, refused = 0, corrected = 0;
};

// words: OPERATOR MESH SHAPE ATTRIBUTES PLACEMENTS.
void compare_view(const std::vector<std::string>& words, const std::string& answer,
                  ViewCounts& counts) {
  std::vector<std::int32_t> sizes = sizes_of(words.at(1));
  Shape shape = shape_of(words.at(2));
  Marked in = marked(words.at(4), sizes.size(), shape.size());
  TensorSpec input{{shape, DType::F32}, in.placements, in.of_view};
  ViewMap map = view_map(words[0], input.meta, attributes_of(words.at(3)));
  ViewResult result = propagate(map, input, sizes);
  INFO("refusal: " << result.refusal);
  if (!result.corrected.empty()) {
    ++counts.corrected;
    return;
  }
  REQUIRE(answer != "?");
  if (answer[0] == '!') {
    ++counts.refused;
    CHECK(result.refusal.starts_with(std::string_view(answer).substr(1)));
    return;
  }
  ++counts.equal;
  REQUIRE(result.refusal.empty());
  std::vector<std::string> parts = parts_of(answer, ' ');
  CHECK(result.wanted == marked(parts.at(0), sizes.size(), shape.size()).placements);
  CHECK((Marked{result.output, result.of_view} ==
         marked(parts.at(1), sizes.size(), map.output.size())));
}

TEST_CASE("views: PyTorch's choices, outputs and refusals") {
  ViewCounts counts;
  for (const std::string& line : torch_lines("views.txt")) {
    INFO(line);
    std::size_t colon = line.find(" : ");
    compare_view(parts_of(std::string_view(line).substr(0, colon), ' '), line.substr(colon + 3),
                 counts);
  }
  // What is corrected fails inside PyTorch, or is wrong there (test_view_values.cpp).
  CHECK(counts.equal == 1100);
  CHECK(counts.refused == 69);
  CHECK(counts.corrected == 31);
}

TEST_CASE("stack: PyTorch's choices and outputs") {
  int equal = 0, corrected = 0;
  auto for_nothing = [](const TensorSpec&, const OpPlacements&) { return 0.0; };
  for (const std::string& line : torch_lines("stacks.txt")) {
    INFO(line);
    std::vector<std::string> words = parts_of(line, ' ');
    std::vector<std::int32_t> sizes = sizes_of(words.at(0));
    Shape shape = shape_of(words.at(1));
    std::vector<TensorSpec> specs;
    for (const std::string& text : parts_of(words.at(3), ';')) {
      Marked one = marked(text, sizes.size(), shape.size());
      specs.push_back({{shape, DType::F32}, one.placements, one.of_view});
    }
    OpCall call{&find_operator("stack"), {{true, {}}}, {}};
    for (const TensorSpec& spec : specs) call.arguments[0].tensors.push_back(&spec);
    call.attributes.set("dim", OpValue(number(words.at(2))));
    Decision decision = decide(call, sizes, for_nothing);
    ++(decision.corrected.empty() ? equal : corrected);
    if (!decision.corrected.empty()) continue;
    for (const std::optional<OpPlacements>& wanted : decision.wanted)
      CHECK(wanted == marked(words.at(5), sizes.size(), shape.size()).placements);
    const TensorSpec& output = decision.outputs.at(0).value();
    CHECK((Marked{output.placements, output.of_view} ==
           marked(words.at(6), sizes.size(), output.meta.shape.size())));
  }
  CHECK(equal == 296);
  CHECK(corrected == 4);
}

}  // namespace
}  // namespace reshard
