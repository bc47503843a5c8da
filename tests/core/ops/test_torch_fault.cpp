// SPDX-License-Identifier: BSD-3-Clause
// A known fault of PyTorch 2.15 is reported for every call that has it, and for no other.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <set>

#include "core/base/errors.h"
#include "core/ops/decision.h"
#include "core/ops/torch_moves.h"
#include "tests/core/ops/operator_cases.h"

namespace reshard::test {
namespace {

using Catch::Contains;

// The sentence on PyTorch, also where it ends a refusal.
std::string fault_text_of(const OperatorCase& asked) {
  auto mesh = std::make_shared<const Mesh>(parse_mesh(asked.mesh));
  TorchMoves moves(mesh, 1);
  try {
    return std::string(
        decide(asked.call, mesh->shape(), [&](const TensorSpec& from, const OpPlacements& to) {
          return moves.cost_us(from, to);
        }).corrected);
  } catch (const InputError& error) {
    std::string_view what = error.what();
    std::size_t at = what.find("; PyTorch 2.15");
    return at == std::string_view::npos ? std::string() : std::string(what.substr(at + 2));
  }
}

std::string fault_text(const std::string& op, const std::string& mesh,
                       const std::vector<std::pair<std::string, std::string>>& in,
                       const char* attributes = "{}") {
  nlohmann::json tensors = nlohmann::json::array();
  for (const auto& [shape, placements] : in)
    tensors.push_back(
        {{"dtype", "f32"}, {"shape", nlohmann::json::parse(shape)}, {"placements", placements}});
  nlohmann::json line{{"call", op}, {"mesh", mesh}, {"in", tensors}, {"expect", {{"refused", ""}}}};
  line["attr"] = nlohmann::json::parse(attributes);
  return fault_text_of(operator_case(line.dump()));
}

TEST_CASE("calls that are decided otherwise because PyTorch is wrong say so") {
  const std::set<std::string> told{
      "a constant does not add up",
      "bits of parts make no bits of the whole",
      "how often an index occurs is known to no rank that has some of them",
      "powers of addends do not add up",
      "the least of parts has not the least absolute value",
      "what is put below the threshold may be above it",
      "the value is what all ranks' parts make together",
      "PyTorch leaves it to the caller to cut the target",
      "PyTorch fails inside",
      "PyTorch's choice fails when it runs"};
  std::ifstream file("tests/torch/data/operators_apart.jsonl");
  int spoken = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("{\"call\"")) continue;
    CAPTURE(line);
    std::string why = nlohmann::json::parse(line)["why"], what = fault_text_of(operator_case(line));
    if (why == "PyTorch's search from such strided shards is not followed") continue;
    CHECK(what.starts_with("PyTorch 2.15 ") == (told.count(why) > 0));
    spoken += what.empty() ? 0 : 1;
  }
  CHECK(spoken > 50);
}

TEST_CASE("of other calls little is said: of those in which PyTorch's answer is no good") {
  std::ifstream file("tests/torch/data/operators.jsonl");
  std::map<std::string, int> spoken;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("{\"call\"")) continue;
    nlohmann::json expect = nlohmann::json::parse(line)["expect"];
    OperatorCase asked = operator_case(line);
    std::string what = fault_text_of(asked);
    if (what.empty()) continue;
    CAPTURE(line, what);
    ++spoken[asked.name];
  }
  std::string all;
  for (const auto& [name, count] : spoken) all += fmt::format("{} {}\n", name, count);
  // Shards that are empty, convolutions of what lies otherwise, and views that fail inside.
  CHECK(all ==
        "_foreach_norm.Scalar 3\namax 12\namin 11\nargmax 5\nargmin 5\nconvolution 12\n"
        "convolution_backward 3\nembedding 1\nlinalg_vector_norm 11\nmax 5\nmin 6\nview 4\n");
}

// It is told from PyTorch's own choice, which must be known, then, right or wrong.
TEST_CASE("choices that PyTorch made are those that it is taken to make") {
  std::ifstream file("tests/torch/data/operators.jsonl");
  int calls = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("{\"call\"")) continue;
    OperatorCase asked = operator_case(line);
    if (asked.handled || asked.refused) continue;
    CAPTURE(line);
    auto mesh = std::make_shared<const Mesh>(parse_mesh(asked.mesh));
    TorchMoves moves(mesh, 1);
    Choosing choosing;
    choosing.as_torch = true;
    Decision found = decide(
        asked.call, mesh->shape(),
        [&](const TensorSpec& from, const OpPlacements& to) { return moves.cost_us(from, to); },
        choosing);
    std::vector<std::string> in;
    for (const auto& wanted : found.wanted) in.push_back(wanted ? text(*wanted) : "-");
    CHECK(in == asked.in);
    ++calls;
  }
  CHECK(calls > 6'000);
}

TEST_CASE("an empty shard of what is reduced to its largest element stops PyTorch") {
  for (const char* op : {"amax", "amin"}) {
    CHECK_THAT(fault_text(op, "4", {{"[5, 3]", "S(0)"}}, R"({"dim": [0]})"),
               Contains("hangs here"));
    CHECK(fault_text(op, "4", {{"[6, 3]", "S(0)"}}, R"({"dim": [1]})").empty());
    CHECK(fault_text(op, "4", {{"[8, 3]", "S(0)"}}, R"({"dim": [0]})").empty());
  }
  CHECK_THAT(fault_text("linalg_vector_norm", "4", {{"[5, 3]", "S(0)"}}, R"({"ord": "inf"})"),
             Contains("hangs here"));
  CHECK(fault_text("linalg_vector_norm", "4", {{"[5, 3]", "S(0)"}}, R"({"ord": 2})").empty());
  CHECK(fault_text("sum.dim_IntList", "4", {{"[5, 3]", "S(0)"}}, R"({"dim": [0]})").empty());
  CHECK_THAT(fault_text("argmax", "4", {{"[5, 3]", "S(0)"}}, R"({"dim": 0})"),
             Contains("hangs here"));
  CHECK(fault_text("argmax", "4", {{"[8, 3]", "S(0)"}}, R"({"dim": 0})").empty());
}

TEST_CASE("norms of partials, thresholds, constants and bits say what PyTorch makes of them") {
  auto norm = [](const char* placements, const char* order) {
    return fault_text("linalg_vector_norm", "4", {{"[16, 8]", placements}},
                      fmt::format(R"({{"ord": {}}})", order).c_str());
  };
  CHECK_THAT(norm("P(max)", R"("inf")"), Contains("silently wrong"));
  CHECK_THAT(norm("P(min)", R"("-inf")"), Contains("silently wrong"));
  CHECK(norm("P(min)", R"("inf")").empty());
  CHECK(norm("P(sum)", "2").empty());
  auto threshold = [](double value) {
    return fault_text("threshold", "4", {{"[16, 8]", "P(max)"}},
                      fmt::format(R"({{"threshold": 0.5, "value": {}}})", value).c_str());
  };
  CHECK_THAT(threshold(2), Contains("monotone"));
  CHECK(threshold(0.25).empty());
  CHECK_THAT(fault_text("fill_.Scalar", "4", {{"[16, 8]", "P(sum)"}}, R"({"value": 1.0})"),
             Contains("every addend"));
  CHECK(fault_text("fill_.Scalar", "4", {{"[16, 8]", "P(sum)"}}, R"({"value": 0.0})").empty());
  CHECK_THAT(fault_text("view.dtype", "4", {{"[16, 8]", "P(sum)"}}, R"({"dtype": "i32"})"),
             Contains("bits"));
}

TEST_CASE("item of what a rank does not know whole says what PyTorch gives") {
  CHECK_THAT(fault_text("_local_scalar_dense", "4", {{"[]", "P(sum)"}}),
             Contains("pytorch #144054"));
  CHECK_THAT(fault_text("_local_scalar_dense", "4", {{"[1]", "S(0)"}}), Contains("fails here"));
  CHECK(fault_text("_local_scalar_dense", "4", {{"[]", "R"}}).empty());
}

TEST_CASE("look-ups say where PyTorch keeps one mask, or has nothing to look up in") {
  CHECK_THAT(fault_text("embedding", "2x2", {{"[32, 12]", "S(0)S(0)"}, {"[4, 6]", "RR"}}),
             Contains("a single mask for both"));
  CHECK_THAT(fault_text("embedding", "4", {{"[5, 12]", "S(0)"}, {"[4, 6]", "R"}}),
             Contains("hangs here"));
  CHECK(fault_text("embedding", "4", {{"[32, 12]", "S(0)"}, {"[4, 6]", "R"}}).empty());
  auto backward = [](const char* scaled) {
    return fault_text("embedding_dense_backward", "4", {{"[4, 6, 12]", "S(0)"}, {"[4, 6]", "S(0)"}},
                      scaled);
  };
  CHECK_THAT(backward(R"({"num_weights": 32, "padding_idx": -1, "scale_grad_by_freq": true})"),
             Contains("scale_grad_by_freq"));
  CHECK(backward(R"({"num_weights": 32, "padding_idx": -1, "scale_grad_by_freq": false})").empty());
}

TEST_CASE("convolutions say where PyTorch takes a shard for the whole") {
  const char* plain =
      R"({"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "transposed": false,
          "output_padding": [0, 0], "groups": 1})";
  auto forward = [&](const char* input, const char* weight) {
    return fault_text("convolution", "4", {{"[4, 8, 16, 16]", input}, {"[8, 8, 3, 3]", weight}},
                      plain);
  };
  for (const char* cut : {"S(0)", "S(1)", "P(sum)"}) {
    CHECK_THAT(forward("R", cut), Contains("treats shards as the whole tensor"));
    if (std::string(cut) != "S(0)") CHECK_THAT(forward(cut, "R"), Contains("(pytorch #186129)"));
  }
  CHECK(forward("S(0)", "R").empty());
  CHECK(forward("R", "R").empty());
  auto backward = [&](const char* grad, const char* input, const char* weight) {
    return fault_text(
        "convolution_backward", "4",
        {{"[4, 8, 16, 16]", grad}, {"[4, 8, 16, 16]", input}, {"[8, 8, 3, 3]", weight}}, plain);
  };
  CHECK(backward("R", "S(0)", "R").empty());  // the gradient it does move
  CHECK(backward("S(0)", "R", "R").empty());
  CHECK_THAT(backward("S(0)", "S(0)", "S(0)"), Contains("(pytorch #191926)"));
  CHECK_THAT(backward("R", "S(2)", "R"), Contains("(pytorch #191926)"));
}

TEST_CASE("normalisations say what fails on CPUs") {
  auto layer = [](const char* statistics, const char* size) {
    std::string shape = fmt::format("[4, {}, 16]", size), rows = fmt::format("[4, {}, 1]", size);
    return fault_text("native_layer_norm_backward", "4",
                      {{shape, "S(1)"},
                       {shape, "S(1)"},
                       {rows, statistics},
                       {rows, statistics},
                       {"[16]", "R"},
                       {"[16]", "R"}},
                      R"({"normalized_shape": [16], "output_mask": [true, true, true]})");
  };
  CHECK_THAT(layer("S(0)", "9"), Contains("has gaps"));
  CHECK(layer("S(0)", "8").empty());
  CHECK(layer("S(1)", "9").empty());
  auto rms = [](const char* input) {
    return fault_text("_fused_rms_norm", "4", {{"[4, 8, 16]", input}, {"[16]", "R"}},
                      R"({"normalized_shape": [16], "eps": 1e-5})");
  };
  CHECK_THAT(rms("S(2)"), Contains("fails here on CPUs"));
  CHECK(rms("S(1)").empty());
}

TEST_CASE("views, stacks, triangles and strided cuts say what PyTorch does with them") {
  CHECK_THAT(fault_text("expand", "4", {{"[1, 8]", "S(0)"}}, R"({"size": [4, 8]})"),
             Contains("finds no output dim"));
  CHECK_THAT(fault_text("view_copy", "3", {{"[3, 8]", "S(0)"}}, R"({"size": [8, 3]})"),
             Contains("(pytorch #143372)"));
  CHECK(fault_text("view", "4", {{"[4, 8, 16]", "S(1)"}}, R"({"size": [32, 16]})").empty());
  CHECK_THAT(fault_text("linalg_solve_triangular", "4", {{"[1, 3, 3]", "R"}, {"[4, 3, 2]", "S(0)"}},
                        R"({"upper": true})") +
                 "",
             !Contains("silently"));
  CHECK_THAT(fault_text("argmax", "4", {{"[16, 3]", "_S(0, 2)"}}, R"({"dim": 0})"),
             Contains("_StridedShard"));
}

}  // namespace
}  // namespace reshard::test
