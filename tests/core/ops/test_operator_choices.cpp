// SPDX-License-Identifier: BSD-3-Clause
// Calls that PyTorch 2.15 decided: the same inputs, outputs, shapes and costs. Calls for which it
// gives wrong values or fails internally are below, with the right answer.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "core/base/errors.h"
#include "core/ops/decision.h"
#include "core/ops/operator.h"
#include "core/ops/torch_moves.h"
#include "tests/core/ops/operator_cases.h"
#include "tests/support/attribute_list.h"

namespace reshard::test {
namespace {

Decision decision_of(const OperatorCase& asked) {
  auto mesh = std::make_shared<const Mesh>(parse_mesh(asked.mesh));
  TorchMoves moves(mesh, 1);
  return decide(
      asked.call, mesh->shape(),
      [&](const TensorSpec& from, const OpPlacements& to) { return moves.cost_us(from, to); },
      {Ties::Torch, true});
}

bool is_close(const std::optional<double>& expected, double found) {
  if (!expected) return std::isinf(found);
  return std::abs(*expected - found) <= 1e-9 * std::max(1.0, *expected);
}

// PyTorch returns nothing from lists that it writes in place; here they are what was written.
bool has_outputs(const OperatorCase& asked) {
  return !(asked.out.empty() && asked.call.op->each && asked.call.op->in_place);
}

void check_outputs(const Decision& found, const OperatorCase& asked) {
  std::vector<std::string> out, shapes, dtypes;
  for (const auto& output : found.outputs) {
    out.push_back(output ? text(output->placements) : "-");
    shapes.push_back(output ? "[" + text(output->meta.shape) + "]" : "-");
    dtypes.emplace_back(output ? text(output->meta.dtype) : "-");
  }
  CHECK(out == asked.out);
  if (!asked.shapes.empty()) CHECK(shapes == asked.shapes);
  if (!asked.dtypes.empty()) CHECK(dtypes == asked.dtypes);
}

void check_answer(const Decision& found, const OperatorCase& asked) {
  std::vector<std::string> in;
  for (const auto& wanted : found.wanted) in.push_back(wanted ? text(*wanted) : "-");
  CHECK(in == asked.in);
  CHECK(is_close(asked.cost_us, found.cost_us));
  if (has_outputs(asked)) check_outputs(found, asked);
}

// That the choice is the least of all candidates, and what it says of the others.
void check_choice(const Decision& found) {
  if (found.all.empty()) return;  // position by position
  CHECK(to_index(found.candidates) == found.all.size());
  std::vector<double> costs;
  for (const Candidate& candidate : found.all) costs.push_back(candidate.cost_us);
  CHECK(found.ties == std::count(costs.begin(), costs.end(), found.cost_us));
  std::sort(costs.begin(), costs.end());
  CHECK(found.cost_us == costs[0]);
  REQUIRE(found.runner_up_us.has_value() == (costs.size() > 1));
  if (costs.size() == 1) return;
  CHECK(*found.runner_up_us == costs[1]);
  CHECK(std::any_of(found.all.begin(), found.all.end(), [&](const Candidate& candidate) {
    return candidate.in == found.runner_up && candidate.cost_us == costs[1];
  }));
}

struct Checked {
  int calls = 0;
  int other_counts = 0;  // of candidates, or of ties, than PyTorch's
};

Checked check_decisions(const char* path) {
  std::ifstream file(path);
  REQUIRE(file);
  Checked out;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("{\"call\"")) continue;
    OperatorCase asked = operator_case(line);
    if (asked.handled) continue;
    CAPTURE(line);
    ++out.calls;
    if (asked.refused) {
      CHECK_THROWS_AS(decision_of(asked), InputError);
      continue;
    }
    Decision found = decision_of(asked);
    check_answer(found, asked);
    check_choice(found);
    // Of lists PyTorch counts all positions' together.
    if (asked.candidates == 0 || asked.call.op->each) continue;
    out.other_counts += found.candidates != asked.candidates || found.ties != asked.ties;
  }
  return out;
}

// Those that PyTorch moves whole or refuses when they run are decided otherwise.
TEST_CASE("handled calls give what PyTorch's give, with as many collectives") {
  std::ifstream file("tests/torch/data/operators.jsonl");
  std::map<std::string, int> checked;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"handler\":true") == std::string::npos) continue;
    OperatorCase asked = operator_case(line);
    bool is_moved = asked.name.starts_with("convolution");
    if (is_moved || asked.name == "_log_softmax_backward_data") continue;
    CAPTURE(line);
    Decision found = decision_of(asked);
    check_outputs(found, asked);
    std::map<std::string, int> own;
    for (const OpCollective& each : found.collectives) ++own[std::string(each.kind)];
    if (found.handled && found.cost_us == 0) CHECK(own == asked.collectives);
    ++checked[asked.name];
  }
  CHECK(checked["argmax"] > 20);
  CHECK(checked["nll_loss_forward"] > 5);
}

TEST_CASE("calls are decided as PyTorch decides them") {
  Checked checked = check_decisions("tests/torch/data/operators.jsonl");
  CHECK(checked.calls > 7'200);
  // One in thirty: there PyTorch has rows twice, or has some that cannot be the least.
  CHECK(checked.other_counts == 252);
}

TEST_CASE("operators without rows are decided as PyTorch decides them from their steps") {
  Checked checked = check_decisions("tests/torch/data/operators_decomposed.jsonl");
  CHECK(checked.calls > 900);
}

TEST_CASE("operators whose steps are written are decided as PyTorch decides them") {
  CHECK(check_decisions("tests/torch/data/operators_carried.jsonl").calls > 490);
}

TEST_CASE("calls are decided otherwise where PyTorch is wrong or has no answer") {
  CHECK(check_decisions("tests/torch/data/operators_apart.jsonl").calls > 90);
}

// ---- where PyTorch is wrong

struct Call {
  const char *op, *mesh;
  std::vector<std::pair<Shape, const char*>> in;
  OpAttributes attributes = {};
  DType dtype = DType::F32;
};

Decision decided(const Call& asked) {
  auto mesh = std::make_shared<const Mesh>(parse_mesh(asked.mesh));
  std::vector<TensorSpec> specs;
  for (const auto& [shape, placements] : asked.in)
    specs.push_back({{shape, asked.dtype}, parse_op_placements(placements)});
  OpCall call{&find_operator(asked.op), {}, asked.attributes};
  for (const TensorSpec& spec : specs) call.arguments.push_back({false, {&spec}});
  TorchMoves moves(mesh, 1);
  return decide(call, mesh->shape(), [&](const TensorSpec& from, const OpPlacements& to) {
    return moves.cost_us(from, to);
  });
}

std::string in_text(const Decision& decision, std::size_t input = 0) {
  return text(*decision.wanted[input]);
}

TEST_CASE("a constant does not add up") {
  Call fill{"fill_.Scalar", "4", {{{16, 8}, "P(sum)"}}, with({{"value", OpValue(1.0)}})};
  CHECK_THROWS_WITH(decided(fill), Catch::Contains("in-place operations that require placement"));
  fill.attributes.set("value", OpValue(0.0));
  CHECK(in_text(decided(fill)) == "P(sum)");
  fill = {"fill_.Scalar", "4", {{{16, 8}, "P(max)"}}, with({{"value", OpValue(1.0)}})};
  CHECK(in_text(decided(fill)) == "P(max)");
}

TEST_CASE("the largest element has not the largest norm, and thresholds may fall") {
  CHECK(in_text(decided({"linalg_vector_norm",
                         "4",
                         {{{16, 8}, "P(max)"}},
                         with({{"ord", OpValue(std::string("inf"))}})})) == "R");
  for (double value : {0.0, 2.0}) {
    Call call{"threshold",
              "4",
              {{{16, 8}, "P(max)"}},
              with({{"threshold", OpValue(0.5)}, {"value", OpValue(value)}})};
    CHECK(in_text(decided(call)) == (value <= 0.5 ? "P(max)" : "R"));
  }
}

TEST_CASE("bits of addends are no addends of bits") {
  for (const char* placements : {"P(sum)", "P(max)"})
    CHECK(in_text(decided({"view.dtype",
                           "4",
                           {{{16, 8}, placements}},
                           with({{"dtype", OpValue(std::string("i32"))}})})) == "R");
  CHECK(in_text(decided({"view.dtype",
                         "4",
                         {{{16, 8}, "S(1)"}},
                         with({{"dtype", OpValue(std::string("i32"))}})})) == "S(1)");
}

TEST_CASE("a triangle's batch goes with that of the right sides") {
  auto solve = [](const Shape& triangle, const char* placements) {
    return decided({"linalg_solve_triangular",
                    "4",
                    {{triangle, placements}, {{4, 3, 2}, "S(0)"}},
                    with({{"upper", OpValue(true)}})});
  };
  CHECK(in_text(solve({4, 3, 3}, "R")) == "S(0)");
  CHECK(in_text(solve({1, 3, 3}, "R")) == "R");
  CHECK(in_text(solve({3, 3}, "R"), 1) == "S(0)");
}

TEST_CASE("a batch of one element meets a larger one and is cut nowhere") {
  Decision left = decided({"matmul", "4", {{{8, 4, 6}, "S(0)"}, {{1, 6, 2}, "R"}}});
  CHECK(in_text(left, 0) == "S(0)");
  CHECK(in_text(left, 1) == "R");
  CHECK(text(left.outputs[0]->placements) == "S(0)");
  CHECK(left.outputs[0]->meta.shape == Shape{8, 4, 2});
  Decision right = decided({"matmul", "4", {{{3, 1, 4, 6}, "R"}, {{8, 6, 2}, "S(0)"}}});
  CHECK(in_text(right, 0) == "R");
  CHECK(in_text(right, 1) == "S(0)");
  CHECK(text(right.outputs[0]->placements) == "S(1)");
  CHECK(right.outputs[0]->meta.shape == Shape{3, 8, 4, 2});
  CHECK_THROWS_WITH(decided({"matmul", "4", {{{8, 4, 6}, "R"}, {{2, 6, 2}, "R"}}}),
                    Catch::Contains("do not fit"));
}

TEST_CASE("as_strided is a permutation or refused") {
  auto strided = [](const Shape& shape, std::vector<std::int64_t> size,
                    std::vector<std::int64_t> stride, std::int64_t offset = 0) {
    OpAttributes attributes = with({{"size", OpValue(size)},
                                    {"stride", OpValue(stride)},
                                    {"storage_offset", OpValue(offset)}});
    return text(decided({"as_strided", "4", {{shape, "S(0)"}}, attributes}).outputs[0]->placements);
  };
  CHECK(strided({16, 8}, {16, 8}, {8, 1}) == "S(0)");
  CHECK(strided({16, 8}, {8, 16}, {1, 8}) == "S(1)");
  CHECK(strided({4, 8, 2}, {8, 2, 4}, {2, 1, 16}) == "S(2)");
  CHECK_THROWS_WITH(strided({16, 8}, {8, 8}, {8, 1}),
                    Catch::Contains("only as a permutation of dims"));
  CHECK_THROWS_WITH(strided({16, 8}, {16, 8}, {8, 1}, 8), Catch::Contains("only as a permutation"));
  // PyTorch cannot tell which of equal dims is meant.
  CHECK_THROWS_WITH(strided({4, 1, 1}, {1, 4, 1}, {1, 1, 1}),
                    Catch::Contains("only as a permutation"));
}

TEST_CASE("powers of addends are no addends of powers") {
  CHECK(in_text(decided({"linalg__powsum", "4", {{{16, 8}, "P(sum)"}}})) == "R");
  CHECK(in_text(decided({"linalg__powsum", "4", {{{16, 8}, "S(0)"}}})) == "S(0)");
}

TEST_CASE("a tensor beside lists lies one way") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("4x2"));
  auto spec = [](const Shape& shape, const char* placements) {
    return TensorSpec{{shape, DType::F32}, parse_op_placements(placements)};
  };
  TensorSpec first = spec({1, 16}, "S(0)P(avg)"), second = spec({16}, "P(sum)R"),
             factor = spec({}, "RP(sum)");
  OpCall call{
      &find_operator("_foreach_mul.Tensor"), {{true, {&first, &second}}, {false, {&factor}}}, {}};
  TorchMoves moves(mesh, 1);
  Decision decision = decide(
      call, mesh->shape(),
      [&](const TensorSpec& from, const OpPlacements& to) { return moves.cost_us(from, to); });
  CHECK(in_text(decision, 2) == "RR");
  CHECK(text(decision.outputs[0]->placements) == "S(0)P(avg)");
  CHECK(text(decision.outputs[1]->placements) == "P(sum)R");
}

TEST_CASE("within loss_parallel the derivative of log_softmax takes what is whole or cut") {
  auto chosen = [](const char* placements) {
    auto mesh = std::make_shared<const Mesh>(parse_mesh("4"));
    TensorSpec spec{{{16, 12}, DType::F32}, parse_op_placements(placements)};
    OpCall call{&find_operator("_log_softmax_backward_data"),
                {{false, {&spec}}, {false, {&spec}}},
                with({{"dim", OpValue(std::int64_t{1})}}),
                true};
    TorchMoves moves(mesh, 1);
    return decide(call, mesh->shape(), [&](const TensorSpec& from, const OpPlacements& to) {
      return moves.cost_us(from, to);
    });
  };
  for (const char* placements : {"R", "S(0)", "S(1)"}) {
    CHECK(in_text(chosen(placements)) == placements);
    CHECK(chosen(placements).collectives.empty());
  }
  CHECK_THROWS_WITH(chosen("P(sum)"), Catch::Contains("logits that are S or R"));
}

TEST_CASE("counts of indices are those of all ranks") {
  for (bool counts : {false, true}) {
    auto mesh = std::make_shared<const Mesh>(parse_mesh("4"));
    TensorSpec grad{{{16, 8, 8}, DType::F32}, parse_op_placements("S(0)")},
        indices{{{16, 8}, DType::I64}, parse_op_placements("S(0)")};
    OpCall call{&find_operator("embedding_dense_backward"),
                {{false, {&grad}}, {false, {&indices}}},
                with({{"num_weights", OpValue(std::int64_t{32})},
                      {"padding_idx", OpValue(std::int64_t{-1})},
                      {"scale_grad_by_freq", OpValue(counts)}})};
    TorchMoves moves(mesh, 1);
    Decision decision = decide(
        call, mesh->shape(),
        [&](const TensorSpec& from, const OpPlacements& to) { return moves.cost_us(from, to); });
    CHECK(in_text(decision, 1) == (counts ? "R" : "S(0)"));
  }
}

TEST_CASE("a convolution moves what it cannot work on as it lies") {
  OpAttributes attributes = with({{"stride", OpValue(std::vector<std::int64_t>{1, 1})},
                                  {"padding", OpValue(std::vector<std::int64_t>{1, 1})}});
  Decision decision =
      decided({"convolution", "4", {{{4, 8, 16, 16}, "R"}, {{8, 8, 3, 3}, "S(0)"}}, attributes});
  CHECK(in_text(decision, 0) == "R");
  CHECK(in_text(decision, 1) == "R");
  // Windows that neither overlap nor reach over the edge may be cut.
  attributes = with({{"stride", OpValue(std::vector<std::int64_t>{3, 4})}});
  decision =
      decided({"convolution", "4", {{{4, 8, 16, 16}, "S(3)"}, {{8, 8, 3, 4}, "R"}}, attributes});
  CHECK(in_text(decision, 0) == "S(3)");
  CHECK(text(decision.outputs[0]->placements) == "S(3)");
  CHECK(decision.outputs[0]->meta.shape == Shape{4, 8, 5, 4});
}

TEST_CASE("calls that fit no operator are refused in one sentence") {
  CHECK_THROWS_WITH(find_operator("addmn"),
                    "operator addmn has no sharding rule; the nearest that "
                    "has one is addmm");
  CHECK_THROWS_WITH(find_operator("no_such_loss"), "operator no_such_loss has no sharding rule");
  CHECK_THROWS_WITH(decided({"mm", "4", {{{64, 32}, "R"}, {{33, 48}, "R"}}}),
                    Catch::Contains("do not fit"));
  CHECK_THROWS_WITH(decided({"mm", "4", {{{64, 32}, "R"}}}), "mm needs a tensor mat2");
  CHECK_THROWS_WITH(decided({"relu", "4", {{{4}, "R"}}, with({{"dim", OpValue(std::int64_t{1})}})}),
                    "relu has no argument dim; it has tensors only");
  CHECK_THROWS_WITH(
      decided({"sum.dim_IntList", "4", {{{4}, "R"}}, with({{"dim", OpValue(std::int64_t{1})}})}),
      "attr dim: dim 1 is out of range for 1 dims");
  CHECK_THROWS_WITH(decided({"cat", "4", {{{4}, "R"}}}), Catch::Contains("list of tensors"));
}

TEST_CASE("calls without the tensors that they need are refused, whatever rule decides them") {
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("4"));
  const TensorSpec x{{Shape{8, 4}, DType::F32}, {OpPlacement::shard(0)}};
  auto refusal = [&](const char* op, std::vector<OpArgument> arguments, bool loss = false) {
    OpCall call{&find_operator(op), std::move(arguments), {}, loss};
    try {
      (void)decide(call, mesh->shape(), [](const TensorSpec&, const OpPlacements&) { return 1.0; });
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const OpArgument none{false, {nullptr}}, empty{false, {}}, empty_list{true, {}};
  for (const char* op : {"argmax", "view", "t", "mm", "sum", "relu", "embedding"})
    for (const std::vector<OpArgument>& arguments :
         std::vector<std::vector<OpArgument>>{{}, {none}, {empty}}) {
      CAPTURE(op, arguments.size());
      CHECK(refusal(op, arguments).find(" needs a tensor") != std::string::npos);
    }
  for (const Operator& op : all_operators()) {
    CAPTURE(op.name);
    for (std::size_t missing = 0; missing < op.tensors.size(); ++missing) {
      std::vector<OpArgument> arguments;
      for (const OpTensor& tensor : op.tensors) arguments.push_back({tensor.list, {&x}});
      if (op.tensors[missing].optional || op.tensors[missing].list) continue;
      arguments[missing] = none;
      CHECK(refusal(std::string(op.name).c_str(), arguments).find(" needs a tensor") !=
            std::string::npos);
    }
  }
  CHECK(refusal("_log_softmax", {}, true).find(" needs a tensor") != std::string::npos);
  CHECK(refusal("nll_loss_forward", {}, true).find(" needs a tensor") != std::string::npos);
  CHECK(refusal("stack", {{true, {&x, nullptr}}}) != "none");
  CHECK(refusal("cat", {empty_list}) != "none");
}

// unsqueeze of 8 dims, one_hot-like stacks: no placement of ours has a ninth dim.
TEST_CASE("what would have more than 8 dims is refused") {
  CHECK_THROWS_WITH(decided({"unsqueeze",
                             "4",
                             {{{1, 1, 1, 1, 1, 1, 1, 2}, "R"}},
                             with({{"dim", OpValue(std::int64_t{0})}})}),
                    Catch::Contains("8 dims"));
}

}  // namespace
}  // namespace reshard::test
