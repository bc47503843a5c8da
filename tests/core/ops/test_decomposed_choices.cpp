// SPDX-License-Identifier: BSD-3-Clause
// Operators that are decided through the operators they are decomposed into, where PyTorch's own
// answer would be wrong.
#include <catch2/catch.hpp>

#include "core/ops/decision.h"
#include "core/ops/operator.h"
#include "core/ops/torch_moves.h"
#include "tests/core/ops/operator_cases.h"
#include "tests/support/attribute_list.h"

namespace reshard::test {
namespace {

// On four ranks.
Decision decomposed(const OpCall& call) {
  TorchMoves moves(std::make_shared<const Mesh>(parse_mesh("4")), 1);
  return decide(call, moves.mesh().shape(), [&](const TensorSpec& from, const OpPlacements& to) {
    return moves.cost_us(from, to);
  });
}

Decision decomposed(const char* op, const std::vector<std::pair<Shape, const char*>>& in,
                    const OpAttributes& attributes = {}) {
  std::vector<TensorSpec> specs;
  for (const auto& [shape, placements] : in)
    specs.push_back({{shape, DType::F32}, parse_op_placements(placements)});
  OpCall call{&find_operator(op), {}, attributes};
  for (const TensorSpec& spec : specs) call.arguments.push_back({false, {&spec}});
  return decomposed(call);
}

TEST_CASE("a mean of a loss over uneven shards is no mean of their means") {
  Decision even = decomposed("mse_loss", {{{8, 6}, "S(0)"}, {{8, 6}, "S(0)"}});
  CHECK(text(even.outputs[0]->placements) == "P(avg)");
  CHECK(even.corrected.empty());
  Decision uneven = decomposed("mse_loss", {{{7, 6}, "S(0)"}, {{7, 6}, "S(0)"}});
  CHECK(text(uneven.outputs[0]->placements) == "R");
  CHECK(uneven.corrected.find("as if all of them had the same size") != std::string::npos);
  // Summed, they may be of any sizes.
  OpAttributes sums = with({{"reduction", OpValue(std::int64_t{2})}});
  Decision summed = decomposed("mse_loss", {{{7, 6}, "S(0)"}, {{7, 6}, "S(0)"}}, sums);
  CHECK(text(summed.outputs[0]->placements) == "P(sum)");
  CHECK(summed.corrected.empty());
}

TEST_CASE("the gradient of a mean stays cut, and what PyTorch makes of it is said") {
  Decision cut = decomposed("mse_loss_backward", {{{}, "R"}, {{8, 6}, "S(0)"}, {{8, 6}, "S(0)"}});
  CHECK(text(cut.outputs[0]->placements) == "S(0)");
  CHECK(cut.corrected.find("the gradient of a mean is too large") != std::string::npos);
  Decision whole = decomposed("mse_loss_backward", {{{}, "R"}, {{8, 6}, "R"}, {{8, 6}, "R"}});
  CHECK(whole.corrected.empty());
}

TEST_CASE("a tensor whose diagonal an equation takes is taken whole") {
  OpAttributes diagonal = with({{"equation", OpValue("ii,ij->ij")}});
  auto asked = [&](const char* left, const char* right) {
    std::vector<TensorSpec> specs{{{{8, 8}, DType::F32}, parse_op_placements(left)},
                                  {{{8, 4}, DType::F32}, parse_op_placements(right)}};
    OpCall call{&find_operator("einsum"), {{true, {&specs[0], &specs[1]}}}, diagonal};
    return decomposed(call);
  };
  Decision cut = asked("S(0)", "S(1)");
  CHECK(text(*cut.wanted[0]) == "R");
  CHECK(text(*cut.wanted[1]) == "S(1)");
  CHECK(text(cut.outputs[0]->placements) == "S(1)");
}

TEST_CASE("transforms are linear: the largest numbers do not have the largest ones") {
  OpAttributes along = with({{"dim", OpValue(std::vector<std::int64_t>{1})}});
  CHECK(text(*decomposed("_fft_r2c", {{{16, 8}, "P(sum)"}}, along).wanted[0]) == "P(sum)");
  Decision largest = decomposed("_fft_r2c", {{{16, 8}, "P(max)"}}, along);
  CHECK(text(*largest.wanted[0]) == "R");
  CHECK(largest.outputs[0]->meta.dtype == DType::C64);
  CHECK(largest.outputs[0]->meta.shape == Shape{16, 5});
}

TEST_CASE("what ATen has under two names is decided under the one that dispatch calls") {
  const std::pair<const char*, const char*> names[]{{"multiply.Tensor", "mul.Tensor"},
                                                    {"divide_.Tensor_mode", "div_.Tensor_mode"},
                                                    {"__and__.Scalar", "bitwise_and.Scalar"},
                                                    {"__iand__.Tensor", "bitwise_and_.Tensor"},
                                                    {"greater_equal.Scalar", "ge.Scalar"},
                                                    {"aten.absolute.default", "abs"},
                                                    {"special_expit", "sigmoid"},
                                                    {"concat", "cat"},
                                                    {"ger", "outer"},
                                                    {"true_divide.Scalar", "div.Scalar"}};
  for (const auto& [other, usual] : names) {
    CAPTURE(other);
    CHECK(find_operator(other).name == usual);
  }
  CHECK(find_operator("true_divide.Tensor").name == "true_divide.Tensor");  // a row of its own
  CHECK(known_operator("multiplied.Tensor") == nullptr);
  CHECK(known_operator("multiply.Nothing") == nullptr);
}

TEST_CASE("written steps refuse what they need and do not find") {
  CHECK_THROWS_WITH(decomposed("msort", {}), Catch::Contains("msort needs a tensor self"));
  CHECK_THROWS_AS(decomposed("dropout", {{{8}, "R"}}, with({{"train", OpValue(true)}})),
                  NotCovered);
  CHECK_THROWS_WITH(decomposed("kl_div", {{{8}, "R"}, {{8}, "R"}},
                               with({{"reduction", OpValue(std::int64_t{3})}})),
                    Catch::Contains("attr reduction: expected 0 (none), 1 (mean) or 2 (sum)"));
  // Written to by out=, which does not move.
  Decision out = decomposed("mse_loss.out", {{{8, 6}, "S(0)"}, {{8, 6}, "S(0)"}, {{}, "R"}});
  CHECK(text(*out.wanted[0]) == "R");
  CHECK(text(out.outputs[0]->placements) == "R");
}

}  // namespace
}  // namespace reshard::test
