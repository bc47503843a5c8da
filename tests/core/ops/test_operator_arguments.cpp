// SPDX-License-Identifier: BSD-3-Clause
// How calls interpret their arguments where PyTorch's answers say nothing: combinations of dtypes,
// missing arguments, and arguments just inside and just outside of their range.
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <tuple>

#include "core/base/errors.h"
#include "core/ops/decision.h"
#include "tests/core/ops/operator_cases.h"

namespace reshard::test {
namespace {

// "f32[4,8] S(0)" of each input of a call, as arguments or as the one list that it takes; those
// behind are attributes as JSON.
Decision decided(const std::string& op, const std::vector<std::string>& inputs,
                 const std::string& attributes = "{}", bool as_list = false) {
  nlohmann::json in = nlohmann::json::array();
  for (const std::string& input : inputs) {
    std::size_t open = input.find('['), close = input.find(']');
    in.push_back({{"dtype", input.substr(0, open)},
                  {"shape", nlohmann::json::parse(input.substr(open, close + 1 - open))},
                  {"placements", input.substr(close + 2)}});
  }
  if (as_list) in = nlohmann::json::array({in});
  nlohmann::json line{{"call", op}, {"mesh", "4"}, {"in", in}, {"expect", {{"refused", ""}}}};
  line["attr"] = nlohmann::json::parse(attributes);
  OperatorCase asked = operator_case(line.dump());
  return decide(asked.call, std::vector<std::int32_t>{4},
                [](const TensorSpec& from, const OpPlacements& to) {
                  return from.placements == to ? 0.0 : 1.0;
                });
}

std::string outputs_of(const Decision& decision) {
  std::string out;
  for (const auto& output : decision.outputs)
    out += fmt::format(
        "{}{}", out.empty() ? "" : " ",
        output ? fmt::format("{}[{}]", text(output->meta.dtype), text(output->meta.shape)) : "-");
  return out;
}

TEST_CASE("arguments: two dtypes meet in the least that holds both") {
  struct Meeting {
    const char *a, *b, *both;
  };
  for (auto [a, b, both] : std::initializer_list<Meeting>{{"f16", "bf16", "f32"},
                                                          {"f16", "f32", "f32"},
                                                          {"bf16", "bf16", "bf16"},
                                                          {"f64", "bf16", "f64"},
                                                          {"f32", "f64", "f64"},
                                                          {"bool", "u8", "u8"},
                                                          {"u8", "i8", "i16"},
                                                          {"u8", "i32", "i32"},
                                                          {"u8", "i64", "i64"},
                                                          {"i8", "i32", "i32"},
                                                          {"i64", "i32", "i64"},
                                                          {"i64", "f16", "f16"},
                                                          {"bool", "f32", "f32"},
                                                          {"f64", "c64", "c64"}}) {
    CAPTURE(a, b);
    for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
      CHECK(outputs_of(
                decided("add.Tensor", {fmt::format("{}[4] R", x), fmt::format("{}[4] R", y)})) ==
            fmt::format("{}[4]", both));
  }
}

TEST_CASE("arguments: derivatives are all asked for where nothing is said") {
  std::vector<std::string> inputs{"f32[8,4,2] R", "f32[8,4,2] R", "f32[4] R"};
  CHECK(outputs_of(decided("native_batch_norm_backward", inputs)) == "f32[8,4,2] f32[4] f32[4]");
  CHECK(outputs_of(decided("native_batch_norm_backward", inputs,
                           R"({"output_mask": [false, true, false]})")) == "- f32[4] -");
}

TEST_CASE("arguments: an index counts from either end, and not beyond") {
  for (int index : {-8, -1, 0, 7})
    CHECK(outputs_of(decided("select.int", {"f32[4,8] R"},
                             fmt::format(R"({{"dim": 1, "index": {}}})", index))) == "f32[4]");
  for (int index : {-9, 8})
    CHECK_THROWS_WITH(
        decided("select.int", {"f32[4,8] R"}, fmt::format(R"({{"dim": 1, "index": {}}})", index)),
        Catch::Contains("is out of range for a dim of 8"));
}

TEST_CASE("arguments: windows of a convolution and of its transposed make these lengths") {
  auto lengths = [](const char* attributes) {
    return outputs_of(decided("convolution", {"f32[8,4,7,9] R", "f32[4,4,3,2] R"}, attributes));
  };
  CHECK(lengths(R"({"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2]})") == "f32[8,4,4,7]");
  CHECK(lengths(R"({"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2],
                    "transposed": true, "output_padding": [1, 0]})") == "f32[8,4,14,11]");
}

TEST_CASE("arguments: a convolution's channels, groups and windows at the edge of what fits") {
  auto made = [](const char* input, const char* weight, const char* attributes) {
    return outputs_of(decided("convolution", {input, weight}, attributes));
  };
  CHECK(made("f32[8,4,7] R", "f32[6,2,3] R", R"({"groups": 2})") == "f32[8,6,5]");
  CHECK(made("f32[8,6,7] R", "f32[6,2,3] R", R"({"groups": 2, "transposed": true})") ==
        "f32[8,4,9]");
  for (const char* groups : {"0", "1", "3"})
    CHECK_THROWS_WITH(
        made("f32[8,4,7] R", "f32[6,2,3] R", fmt::format(R"({{"groups": {}}})", groups).c_str()),
        Catch::Contains("the channels of"));
  CHECK_THROWS_WITH(made("f32[8,4,7] R", "f32[6,2,3] R", R"({"groups": 2, "transposed": true})"),
                    Catch::Contains("the channels of"));
  CHECK_THROWS_WITH(made("f32[8,4] R", "f32[6,4] R", "{}"), Catch::Contains("3 to 5 dims"));
  CHECK_THROWS_WITH(made("f32[8,4,7] R", "f32[6,4,3,3] R", "{}"), Catch::Contains("3 to 5 dims"));
  CHECK_THROWS_WITH(made("f32[8,4,7] R", "f32[6,4,3] R", R"({"stride": [1, 1]})"),
                    Catch::Contains("expected 1 numbers, found 2"));
  // A window of 1 + 2 * 4 and a padded input of as many and of one fewer.
  CHECK(made("f32[8,4,7] R", "f32[6,4,5] R", R"({"dilation": [2], "padding": [1]})") ==
        "f32[8,6,1]");
  for (const char* too_much :
       {R"({"dilation": [2]})", R"({"stride": [0]})", R"({"dilation": [0]})"})
    CHECK_THROWS_WITH(made("f32[8,4,8] R", "f32[6,4,5] R", too_much),
                      Catch::Contains("do not fit the input"));
}

TEST_CASE("arguments: a pool's kernel, stride and padding at the edge of what fits") {
  auto made = [](int kernel, int stride, int padding, int dilation, bool up = false) {
    return outputs_of(decided(
        "max_pool2d_with_indices", {"f32[2,3,9,9] R"},
        fmt::format(R"({{"kernel_size": [{0}, {0}], "stride": [{1}, {1}], "padding": [{2}, {2}],
                        "dilation": [{3}, {3}], "ceil_mode": {4}}})",
                    kernel, stride, padding, dilation, up)));
  };
  auto both = [](int size) { return fmt::format("f32[2,3,{0},{0}] i64[2,3,{0},{0}]", size); };
  CHECK(made(4, 2, 2, 1) == both(5));
  CHECK(made(5, 2, 2, 1) == both(5));
  CHECK(made(1, 1, 0, 1) == both(9));
  // A window of all nine; rounding up adds a last one, but for one that starts behind the input.
  CHECK(made(5, 1, 0, 2) == both(1));
  CHECK(made(2, 2, 0, 1, true) == both(5));
  CHECK(made(2, 2, 0, 1, false) == both(4));
  CHECK(made(2, 5, 1, 1, true) == both(2));
  CHECK(made(3, 10, 1, 1, true) == both(1));
  struct Wrong {
    int kernel, stride, padding, dilation;
  };
  for (auto [kernel, stride, padding, dilation] :
       {Wrong{4, 2, 3, 1}, Wrong{5, 2, 3, 1}, Wrong{1, 1, 1, 1}, Wrong{3, 2, -1, 1},
        Wrong{0, 2, 0, 1}, Wrong{3, 0, 0, 1}, Wrong{3, 2, 0, 0}}) {
    CAPTURE(kernel, stride, padding, dilation);
    CHECK_THROWS_WITH(made(kernel, stride, padding, dilation),
                      Catch::Contains("at most half the kernel"));
  }
  CHECK_THROWS_WITH(made(10, 1, 0, 1), Catch::Contains("do not fit the input"));
}

TEST_CASE("arguments: batches of a matmul meet from the end, those of one element with any") {
  auto made = [](const char* a, const char* b) { return outputs_of(decided("matmul", {a, b})); };
  CHECK(made("f32[1,4,8] R", "f32[1,3,8,2] R") == "f32[1,3,4,2]");
  CHECK(made("f32[1,4,8] R", "f32[3,1,8,2] R") == "f32[3,1,4,2]");
  CHECK(made("f32[5,1,4,8] R", "f32[3,8,2] R") == "f32[5,3,4,2]");
  CHECK(made("f32[1,3,4,8] R", "f32[5,1,8,2] R") == "f32[5,3,4,2]");
  CHECK_THROWS_WITH(made("f32[2,4,8] R", "f32[1,3,8,2] R"), Catch::Contains("do not fit"));
}

TEST_CASE("arguments: an equation may name tensors without dims") {
  for (auto [equation, a, b] : {std::tuple(",i->i", "f32[] R", "f32[8] S(0)"),
                                std::tuple("i,->i", "f32[8] S(0)", "f32[] R")}) {
    Decision made = decided("einsum", {a, b}, nlohmann::json{{"equation", equation}}.dump(), true);
    CHECK(outputs_of(made) == "f32[8]");
    CHECK(text(made.outputs[0]->placements) == "S(0)");
  }
}

TEST_CASE("arguments: scales lie as what they scale") {
  auto in = [](const char* a, const char* b, const char* scale_a, const char* scale_b) {
    Decision made = decided("_scaled_mm", {a, b, scale_a, scale_b}, R"({"out_dtype": "bf16"})");
    std::string out;
    for (const auto& wanted : made.wanted) out += text(*wanted) + " ";
    return out + "-> " + text(made.outputs[0]->placements);
  };
  const char *a = "f8e4m3fn[16,32] S(0)", *b = "f8e4m3fn[32,16] S(1)";
  CHECK(in(a, "f8e4m3fn[32,16] R", "f32[16,1] S(0)", "f32[1,16] R") == "S(0) R S(0) R -> S(0)");
  CHECK(in("f8e4m3fn[16,32] R", b, "f32[16,1] R", "f32[1,16] S(1)") == "R S(1) R S(1) -> S(1)");
  CHECK(in(a, "f8e4m3fn[32,16] R", "f32[] R", "f32[] R") == "S(0) R R R -> S(0)");
}

TEST_CASE("arguments: a part is put back along the dims that it has") {
  auto in = [](const Decision& decision) {
    return text(*decision.wanted[0]) + " " + text(*decision.wanted[1]) + " -> " +
           text(decision.outputs[0]->placements);
  };
  std::string dims = R"({"dim1": 0, "dim2": 2})";
  CHECK(in(decided("diagonal_scatter", {"f32[4,8,4] S(1)", "f32[8,4] S(0)"}, dims)) ==
        "S(1) S(0) -> S(1)");
  dims = R"({"dim1": 1, "dim2": 2})";
  CHECK(in(decided("diagonal_scatter", {"f32[8,4,4] S(0)", "f32[8,4] S(0)"}, dims)) ==
        "S(0) S(0) -> S(0)");
  CHECK(in(decided("select_scatter", {"f32[4,8,4] S(2)", "f32[4,4] S(1)"}, R"({"dim": 1})")) ==
        "S(2) S(1) -> S(2)");
}

TEST_CASE("arguments: tensors that are missing, or of other ranks than the call's others") {
  const struct {
    const char* op;
    std::vector<std::string> inputs;
    const char *attributes, *refusal;
  } rows[] = {
      {"mm", {"f32[8,4] R"}, R"({"mat2": 2.0})", "mm needs a tensor mat2"},
      {"add.out", {"f32[8] R", "f32[8] R"}, "{}", "add.out: expected 3 tensors, found 2"},
      {"_linalg_eigh.eigenvalues",
       {"f32[4,4] R"},
       "{}",
       "_linalg_eigh.eigenvalues: expected 3 tensors, found 1"},
      {"stack", {}, "{}", "stack: expected a list of tensors without None"},
      {"embedding_dense_backward",
       {"f32[] R", "i64[8] S(0)"},
       R"({"num_weights": 16})",
       "embedding_dense_backward: expected a gradient with one dim more than the indices, found [] "
       "and [8]"},
  };
  for (const auto& row : rows)
    CHECK_THROWS_WITH(decided(row.op, row.inputs, row.attributes), row.refusal);
}

TEST_CASE("arguments: a diagonal spans two dims") {
  for (const char* op : {"diagonal_copy", "diagonal_scatter", "diag_embed"}) {
    std::vector<std::string> inputs{"f32[8,4,2] S(1)", "f32[2,4] R"};
    inputs.resize(std::string(op) == "diagonal_scatter" ? 2 : 1);
    CAPTURE(op);
    CHECK_NOTHROW(decided(op, inputs, R"({"dim1": 0, "dim2": 1})"));
    CHECK_THROWS_WITH(decided(op, inputs, R"({"dim1": 1, "dim2": 1})"),
                      "attr dim2: expected another dim than dim1");
  }
}

TEST_CASE("arguments: a result has eight dims at most") {
  const std::string seven = "[1,1,1,1,1,1,2] R", eight = "[1,1,1,1,1,1,1,2] R";
  CHECK(outputs_of(decided("diag_embed", {"f32" + seven})) == "f32[1,1,1,1,1,1,2,2]");
  CHECK(outputs_of(decided("embedding", {"f32[4,3] R", "i64" + seven})) == "f32[1,1,1,1,1,1,2,3]");
  constexpr const char* kMore = "expected at most 8 dims, found more";
  CHECK_THROWS_WITH(decided("diag_embed", {"f32" + eight}), Catch::Contains(kMore));
  CHECK_THROWS_WITH(decided("embedding", {"f32[4,3] R", "i64" + eight}), Catch::Contains(kMore));
}

TEST_CASE("arguments: letters, lengths and numbers at the edge of what is taken") {
  for (const char* equation : {"az,zA->aA", "AZ,Zz", "ij,jk->ki"})
    CHECK_NOTHROW(decided("einsum", {"f32[4,8] R", "f32[8,2] R"},
                          fmt::format(R"({{"equation": "{}"}})", equation), true));
  for (const char* equation : {"a`,`c", "a{,{c", "a@,@c", "a[,[c"})
    CHECK_THROWS_WITH(
        decided("einsum", {"f32[4,8] R", "f32[8,2] R"},
                fmt::format(R"({{"equation": "{}"}})", equation), true),
        Catch::Contains("letters for each tensor, and each letter at most once in the output"));
  CHECK_THROWS_WITH(
      decided("einsum", {"f32[4,8] R", "f32[8,2] R"}, R"({"equation": "aab,bc"})", true),
      "einsum: expected a tensor of 3 dims, found [4,8]");
  CHECK(outputs_of(decided("einsum", {"f32[4,8] R", "f32[8,2] R", "f32[2,5] R"},
                           R"({"equation": "ij,jk,kl->il"})", true)) == "f32[4,5]");
  for (const auto& inputs : {std::vector<std::string>{"f32[4] R", "f32[] R"},
                             std::vector<std::string>{"f32[] R", "f32[4] R"}})
    CHECK_THROWS_WITH(decided("matmul", inputs), "matmul: expected tensors of at least one dim");
  CHECK(outputs_of(decided("topk", {"f32[4,8] R"}, R"({"k": 8})")) == "f32[4,8] i64[4,8]");
  CHECK_THROWS_WITH(decided("topk", {"f32[4,8] R"}, R"({"k": 9})"),
                    "attr k: expected 0 to 8, found 9");
  for (const char* dtype : {"f16", "bf16"})
    CHECK(outputs_of(decided("_fused_rms_norm", {fmt::format("{}[4,8] R", dtype)},
                             R"({"normalized_shape": [8]})")) ==
          fmt::format("{}[4,8] f32[4,1]", dtype));
}

TEST_CASE("arguments: a call has at most 65,536 outputs") {
  for (auto [op, shape, attributes] : std::initializer_list<std::array<const char*, 3>>{
           {"split.Tensor", "131072,1", R"({"split_size": 2})"},
           {"chunk", "65536,1", R"({"chunks": 65536})"},
           {"unbind.int", "65536,1", "{}"}})
    CHECK(decided(op, {fmt::format("f32[{}] R", shape)}, attributes).outputs.size() == 65536);
  for (auto [op, shape, attributes] : std::initializer_list<std::array<const char*, 3>>{
           {"split.Tensor", "131073,1", R"({"split_size": 2})"},
           {"split.Tensor", "9000000000000000000", R"({"split_size": 1})"},
           {"chunk", "65537,1", R"({"chunks": 65537})"},
           {"unbind.int", "65537,1", "{}"}})
    CHECK_THROWS_WITH(decided(op, {fmt::format("i8[{}] R", shape)}, attributes),
                      Catch::Contains("expected at most 65536 outputs of a call"));
}

TEST_CASE("arguments: a mask of what attention dropped is as long as its kernel's blocks") {
  for (auto [width, keys, blocks] : std::initializer_list<std::tuple<int, int, int>>{
           {64, 128, 128}, {64, 129, 256}, {64, 257, 512}, {65, 256, 256}, {65, 257, 384}}) {
    CAPTURE(width, keys);
    const std::string query = fmt::format("f32[2,2,6,{}] R", width),
                      key = fmt::format("f32[2,2,{},{}] R", keys, width);
    CHECK(text(decided("_scaled_dot_product_flash_attention", {query, key, key},
                       R"({"return_debug_mask": true})")
                   .outputs.back()
                   ->meta.shape) == fmt::format("2,2,6,{}", blocks));
  }
}

}  // namespace
}  // namespace reshard::test
