// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch's values do not cover: names and forms, refusals, results on empty tensors, forms
// that run only on GPUs, the same bits however a tensor is sharded, random numbers.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "core/base/errors.h"
#include "sim/operators/operators.h"
#include "sim/operators/random_stream.h"
#include "tests/support/attribute_list.h"

namespace reshard::sim {
namespace {

using test::with;

using Catch::Matchers::Contains;

Array floats(const Shape& shape, const std::vector<double>& values, DType dtype = DType::F32) {
  return Array::of(dtype, shape, values);
}
Array wholes(const Shape& shape, std::vector<std::int64_t> values, DType dtype = DType::I64) {
  return Array::of(dtype, shape, std::move(values));
}
ArrayArgument one(const Array& array) { return {false, {&array}}; }

// No two neighbours alike, none a fraction that a float holds exactly.
Array rough(const Shape& shape, double by = 0.37) {
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i) + by);
  return floats(shape, values);
}

ArrayResults call(std::string_view name, const std::vector<ArrayArgument>& arguments,
                  const OpAttributes& attributes = {}, RandomStream random = {}) {
  return compute(name, arguments, attributes, random);
}

TEST_CASE("operators are found by name, overload and form") {
  for (const char* name : {"add",
                           "add.Tensor",
                           "aten.add.Tensor",
                           "add_",
                           "add_.Scalar",
                           "add.out",
                           "max.dim",
                           "max.dim_max",
                           "_foreach_add.List",
                           "_foreach_add_.ScalarList",
                           "__ior__.Tensor",
                           "view_copy",
                           "relu.default",
                           "_fused_adamw_",
                           "copy_",
                           "_to_copy",
                           "sum.IntList_out",
                           "_foreach_norm.Scalar",
                           "t_",
                           "zero_"})
    CHECK(computes(name));
  for (const char* name : {"", ".", "_", "add__", "nonsense", "_foreach_", "_foreach_nonsense",
                           "add_add", "_copy", "__i", "masked_select"})
    CHECK_FALSE(computes(name));
  CHECK_THROWS_WITH(call("nonsense", {}), Contains("nonsense: expected an operator"));
}

TEST_CASE("what does not fit is refused in a sentence") {
  Array a = rough({2, 3}), b = rough({2, 2}), index = wholes({2}, {0, 5});
  CHECK_THROWS_WITH(call("add", {one(a), one(b)}), Contains("shapes that broadcast"));
  CHECK_THROWS_WITH(call("add", {one(a)}), Contains("a tensor as input 1, found none"));
  CHECK_THROWS_WITH(call("relu", {one(a), one(b)}), Contains("expected 1 tensors, found 2"));
  CHECK_THROWS_WITH(call("mm", {one(a), one(a)}), Contains("matrices that fit"));
  CHECK_THROWS_WITH(call("sum", {one(a)}, with({{"dim", OpValue(std::int64_t{2})}})),
                    Contains("dim 2 is out of range for 2 dims"));
  CHECK_THROWS_WITH(call("view", {one(a)}, with({{"size", OpValue(std::vector<std::int64_t>{4})}})),
                    Contains("expected a size of 6 elements"));
  CHECK_THROWS_WITH(call("embedding", {one(a), one(index)}), Contains("found 5"));
  CHECK_THROWS_WITH(call("cat", {one(a)}, with({{"dim", OpValue("x")}})), Contains("attr dim"));
  CHECK_THROWS_WITH(call("add_", {one(index), one(a)}), Contains("expected"));
  Array halves = floats({2}, {0.5, 1.5});
  CHECK_THROWS_WITH(call("add_", {one(index), one(halves)}), Contains("to write"));
  Array zero = wholes({}, {0});
  CHECK_THROWS_WITH(call("floor_divide", {one(index), one(zero)}), Contains("no zero"));
  CHECK_THROWS_WITH(call("repeat", {one(a)},
                         with({{"repeats", OpValue(std::vector<std::int64_t>{1 << 20, 1 << 20})}})),
                    Contains("at most 2^28 elements"));
}

TEST_CASE("folds over nothing give their identity") {
  Array none = floats({2, 0}, {}), integers = wholes({0}, {}, DType::I8);
  OpAttributes dim = with({{"dim", OpValue(std::int64_t{1})}});
  auto first = [](const ArrayResults& out) { return values<double>(*out.at(0)).at(0); };
  CHECK(first(call("amax", {one(none)}, dim)) == -INFINITY);
  CHECK(first(call("amin", {one(none)}, dim)) == INFINITY);
  CHECK(first(call("max", {one(none)})) == -INFINITY);
  CHECK(first(call("max", {one(integers)})) == -128);
  CHECK(first(call("min", {one(integers)})) == 127);
  CHECK(first(call("max.dim", {one(none)}, dim)) == -INFINITY);
  CHECK(values<std::int64_t>(*call("max.dim", {one(none)}, dim).at(1)) ==
        std::vector<std::int64_t>{0, 0});
  dim.set("ord", OpValue("inf"));
  CHECK(first(call("linalg_vector_norm", {one(none)}, dim)) == 0);
  dim.set("ord", OpValue("-inf"));
  CHECK(first(call("linalg_vector_norm", {one(none)}, dim)) == INFINITY);
}

TEST_CASE("floats of 8 bits round to what they hold") {
  auto rounded = [](DType dtype, double value) {
    return values<double>(Array::of(dtype, {}, std::vector<double>{value}))[0];
  };
  CHECK(rounded(DType::F8E4M3, 0.3) == 0.3125);
  CHECK(rounded(DType::F8E4M3, -1.0625) == -1);
  CHECK(rounded(DType::F8E4M3, 1.1875) == 1.25);
  CHECK(rounded(DType::F8E4M3, 460) == 448);
  CHECK(std::isnan(rounded(DType::F8E4M3, 500)));
  CHECK(rounded(DType::F8E4M3, 0x1p-9) == 0x1p-9);
  CHECK(rounded(DType::F8E4M3, 0x1p-11) == 0);
  CHECK(rounded(DType::F8E5M2, 0.3) == 0.3125);
  CHECK(rounded(DType::F8E5M2, 57344) == 57344);
  CHECK(std::isinf(rounded(DType::F8E5M2, 65000)));
  CHECK(rounded(DType::F8E5M2, -0x1p-16) == -0x1p-16);
}

TEST_CASE("decompositions are what they are made of") {
  Array a = rough({2, 4, 3}), square = rough({2, 3, 3});
  ArrayResults svd = call("_linalg_svd", {one(a)});
  auto scaled =
      call("mul", {one(*svd[0]), one(*call("unsqueeze", {one(*svd[1])},
                                           with({{"dim", OpValue(std::int64_t{1})}}))[0])});
  auto near = [](const Array& x, const Array& y) {
    std::vector<double> p = values<double>(x), q = values<double>(y);
    REQUIRE(p.size() == q.size());
    for (std::size_t i = 0; i < p.size(); ++i) CHECK(p[i] == Approx(q[i]).margin(1e-5));
  };
  near(*call("matmul", {one(*scaled[0]), one(*svd[2])})[0], a);
  Array lower = *call("tril", {one(square)})[0];
  Array upper =
      *call("transpose",
            {one(*call("tril", {one(square)}, with({{"diagonal", OpValue(std::int64_t{-1})}}))[0])},
            with({{"dim0", OpValue(std::int64_t{1})}, {"dim1", OpValue(std::int64_t{2})}}))[0];
  ArrayResults eigh = call("_linalg_eigh", {one(square)});
  Array symmetric = *call("add", {one(lower), one(upper)})[0];
  near(*call("matmul", {one(symmetric), one(*eigh[1])})[0],
       *call("mul", {one(*eigh[1]), one(*call("unsqueeze", {one(*eigh[0])},
                                              with({{"dim", OpValue(std::int64_t{1})}}))[0])})[0]);
}

TEST_CASE("kernels of attention write more than is asked for") {
  Array q = rough({2, 2, 3, 4}), k = rough({2, 2, 5, 4}, 0.1), v = rough({2, 2, 5, 4}, 0.9);
  const std::string base = "_scaled_dot_product_";
  std::vector<ArrayArgument> in{one(q), one(k), one(v)};
  Array sums = *call(base + "efficient_attention", in)[1];
  CHECK(sums.shape == Shape{2, 2, 32});
  CHECK(std::isinf(values<double>(sums)[3]));
  CHECK(call(base + "cudnn_attention", in)[1]->shape == Shape{2, 2, 3, 1});
  CHECK(
      call(base + "flash_attention", in, with({{"return_debug_mask", OpValue(true)}}))[8]->shape ==
      Shape{2, 2, 3, 128});
}

TEST_CASE("draws without replacement are different") {
  Array weights = floats({2, 4}, {1, 2, 0, 1, 0, 1, 1, 1});
  OpAttributes all = with({{"num_samples", OpValue(std::int64_t{3})}});
  std::vector<std::int64_t> out =
      values<std::int64_t>(*call("multinomial", {one(weights)}, all)[0]);
  for (std::size_t row : {0u, 3u})
    CHECK(std::set<std::int64_t>(out.begin() + static_cast<int>(row),
                                 out.begin() + static_cast<int>(row) + 3)
              .size() == 3);
  CHECK(std::count(out.begin(), out.begin() + 3, 2) == 0);
  CHECK(std::count(out.begin() + 3, out.end(), 0) == 0);
}

TEST_CASE("a part of the rows gives the same bits as the whole") {
  Array x = rough({6, 33}), w = rough({33, 5}, 0.7);
  OpAttributes rows = with({{"dim", OpValue(std::int64_t{0})},
                            {"start", OpValue(std::int64_t{2})},
                            {"end", OpValue(std::int64_t{5})}});
  auto cut = [&](const Array& of) { return *call("slice", {one(of)}, rows).at(0); };
  Array part = cut(x);
  for (const char* name :
       {"mm", "add.Scalar", "gelu", "_softmax", "cumsum", "amax", "sum", "sort"}) {
    std::vector<ArrayArgument> whole{one(x)}, cut_one{one(part)};
    if (std::string_view(name) == "mm") whole.push_back(one(w)), cut_one.push_back(one(w));
    OpAttributes attributes = with({{"dim", OpValue(std::int64_t{-1})}, {"other", OpValue(0.3)}});
    CHECK(cut(*call(name, whole, attributes).at(0)) == *call(name, cut_one, attributes).at(0));
  }
}

TEST_CASE("attention of GPUs computes as that of CPUs") {
  Array q = rough({2, 2, 3, 4}), k = rough({2, 2, 5, 4}, 0.1), v = rough({2, 2, 5, 4}, 0.9),
        grad = rough({2, 2, 3, 4}, 0.5), bias = rough({1, 2, 3, 5}, 0.2);
  OpAttributes causal = with({{"is_causal", OpValue(true)}});
  const std::string base = "_scaled_dot_product_";
  ArrayResults cpu = call(base + "flash_attention_for_cpu", {one(q), one(k), one(v)}, causal);
  ArrayResults flash = call(base + "flash_attention", {one(q), one(k), one(v)}, causal);
  REQUIRE(flash.size() == 9);
  CHECK(flash[0] == cpu[0]);
  CHECK(flash[1] == cpu[1]);
  CHECK((flash[6] && flash[8] && !flash[2] && !flash[5] && !flash[7]));
  ArrayArgument absent{false, {nullptr}};
  ArrayResults slopes =
      call(base + "flash_attention_for_cpu_backward",
           {one(grad), one(q), one(k), one(v), one(*cpu[0]), one(*cpu[1])}, causal);
  CHECK(call(base + "flash_attention_backward",
             {one(grad), one(q), one(k), one(v), one(*cpu[0]), one(*cpu[1]), absent, absent,
              one(*flash[6]), absent},
             causal) == slopes);
  CHECK(call(base + "cudnn_attention_backward",
             {one(grad), one(q), one(k), one(v), one(*cpu[0]), one(*cpu[1])}, causal) == slopes);
  // A bias that was broadcast gets the sum of the gradients of its copies.
  ArrayResults biased = call(base + "efficient_attention", {one(q), one(k), one(v), one(bias)});
  REQUIRE(biased.size() == 4);
  OpAttributes wants =
      with({{"grad_input_mask", OpValue(std::vector<OpValue>{OpValue(true), OpValue(false),
                                                             OpValue(true), OpValue(true)})}});
  ArrayResults d = call(base + "efficient_attention_backward",
                        {one(grad), one(q), one(k), one(v), one(bias), one(*biased[0]),
                         one(*biased[1]), absent, absent},
                        wants);
  REQUIRE(d.size() == 4);
  CHECK_FALSE(d[1]);
  CHECK(d[3]->shape == bias.shape);
  double step = 1e-3, slope = 0;
  Array more = bias;
  std::get<std::vector<float>>(more.elements)[7] += static_cast<float>(step);
  std::vector<double> g = values<double>(grad), before = values<double>(*biased[0]),
                      after = values<double>(*call(base + "efficient_attention",
                                                   {one(q), one(k), one(v), one(more)})[0]);
  for (std::size_t i = 0; i < g.size(); ++i) slope += g[i] * (after[i] - before[i]) / step;
  CHECK(values<double>(*d[3])[7] == Approx(slope).margin(1e-3));
}

TEST_CASE("attention says the weights of values, and groups heads by the counts of them") {
  const std::string base = "_scaled_dot_product_";
  Array q = rough({2, 4, 3, 4}), k = rough({2, 2, 5, 4}, 0.1), v = rough({2, 2, 5, 4}, 0.9);
  OpAttributes grouped = with({{"enable_gqa", OpValue(true)}});
  ArrayResults math = call(base + "attention_math", {one(q), one(k), one(v)}, grouped);
  REQUIRE(math.size() == 2);
  CHECK(math[1]->shape == Shape{2, 4, 3, 5});
  std::vector<double> weights = values<double>(*math[1]), out = values<double>(*math[0]),
                      rows = values<double>(v);
  // Batch 1, head 3, query 2: of the second KV head.
  double total = 0, first = 0;
  for (std::size_t j = 0; j < 5; ++j) {
    double weight = weights[((1 * 4 + 3) * 3 + 2) * 5 + j];
    total += weight;
    first += weight * rows[((1 * 2 + 1) * 5 + j) * 4];
  }
  CHECK(total == Approx(1));
  CHECK(out[((1 * 4 + 3) * 3 + 2) * 4] == Approx(first));
  for (const char* kernel : {"flash_attention", "efficient_attention", "cudnn_attention",
                             "flash_attention_for_cpu", "fused_attention_overrideable"})
    CHECK(call(base + kernel, {one(q), one(k), one(v)})[0] == math[0]);
  // What must be asked for is not guessed, and a batch of one serves all.
  CHECK_THROWS_WITH(call("scaled_dot_product_attention", {one(q), one(k), one(v)}),
                    Contains("one batch, or groups of heads"));
  Array key = rough({2, 5, 4}, 0.1), value = rough({1, 1, 5, 4}, 0.9);
  CHECK(call("scaled_dot_product_attention", {one(q), one(key), one(value)}, grouped)[0]->shape ==
        q.shape);
}

TEST_CASE("fused Adam unscales, and skips where a gradient is infinite") {
  Array p = rough({3}), g = rough({3}, 0.1), m = floats({3}, {0, 0, 0}), step = floats({}, {1}),
        half = floats({}, {2}), yes = floats({}, {1}), rate = floats({}, {0.5});
  Array doubled = *call("mul.Scalar", {one(g)}, with({{"other", OpValue(2.0)}})).at(0);
  auto list = [](const Array& array) { return ArrayArgument{true, {&array}}; };
  ArrayArgument none{true, {}}, absent{false, {nullptr}};
  OpAttributes lr = with({{"lr", OpValue(0.5)}});
  ArrayResults plain =
      call("_fused_adamw_", {list(p), list(g), list(m), list(m), none, list(step)}, lr);
  CHECK(call("_fused_adamw_",
             {list(p), list(doubled), list(m), list(m), none, list(step), one(half)}, lr) == plain);
  CHECK(call("_fused_adamw_.tensor_lr",
             {list(p), list(g), list(m), list(m), none, list(step), one(rate)}) == plain);
  CHECK(*call("_fused_adamw_",
              {list(p), list(g), list(m), list(m), none, list(step), absent, one(yes)},
              lr)[0] == p);
  Array bad = floats({2}, {1, INFINITY});
  ArrayResults checked = call("_amp_foreach_non_finite_check_and_unscale_",
                              {list(bad), one(floats({1}, {0})), one(half)});
  CHECK(values<double>(*checked.at(1)).at(0) == 1);
}

TEST_CASE("Philox gives its published words") {
  // From the paper's known answers, 4x32, ten rounds.
  CHECK(philox({0, 0, 0, 0}, {0, 0}) ==
        PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("element i of a random output is number offset + i of the stream") {
  Array like = rough({64}), part = rough({16});
  for (const char* name : {"rand_like", "randn_like", "uniform_", "normal_", "exponential_",
                           "bernoulli_.float", "native_dropout", "geometric_", "cauchy_"}) {
    OpAttributes attributes = with({{"p", OpValue(0.25)}});
    std::vector<double> all = values<double>(*call(name, {one(like)}, attributes, {7, 0}).at(0));
    std::vector<double> some = values<double>(*call(name, {one(part)}, attributes, {7, 16}).at(0));
    if (std::string_view(name) == "native_dropout") {
      all = values<double>(*call(name, {one(like)}, attributes, {7, 0}).at(1));
      some = values<double>(*call(name, {one(part)}, attributes, {7, 16}).at(1));
    }
    CHECK(std::equal(some.begin(), some.end(), all.begin() + 16));
    CHECK(all != values<double>(*call(name, {one(like)}, attributes, {8, 0}).back()));
  }
}

double mean_of(const Array& array) {
  double total = 0;
  for (double x : values<double>(array)) total += x;
  return total / static_cast<double>(array.count());
}

TEST_CASE("random numbers follow their distributions") {
  Array many = Array::zeros(DType::F64, {20000});
  auto made = [&](const char* name, const OpAttributes& attributes = {}) {
    return *call(name, {one(many)}, attributes, {3, 1}).at(0);
  };
  CHECK(mean_of(made("rand_like")) == Approx(0.5).margin(0.01));
  CHECK(mean_of(made("randn_like")) == Approx(0).margin(0.03));
  CHECK(mean_of(*call("square", {one(made("randn_like"))}).at(0)) == Approx(1).margin(0.03));
  CHECK(mean_of(made("exponential_", with({{"lambd", OpValue(2.0)}}))) == Approx(0.5).margin(0.02));
  CHECK(mean_of(made("bernoulli_", with({{"p", OpValue(0.25)}}))) == Approx(0.25).margin(0.01));
  CHECK(mean_of(made("geometric_", with({{"p", OpValue(0.25)}}))) == Approx(4).margin(0.1));
  Array die = made("randint_like",
                   with({{"low", OpValue(std::int64_t{1})}, {"high", OpValue(std::int64_t{7})}}));
  CHECK(mean_of(die) == Approx(3.5).margin(0.05));
  std::vector<double> sides = values<double>(die);
  CHECK(*std::min_element(sides.begin(), sides.end()) == 1);
  CHECK(*std::max_element(sides.begin(), sides.end()) == 6);
  // Never 1, however few bits hold it.
  Array narrow = Array::zeros(DType::BF16, {20000});
  std::vector<double> units = values<double>(*call("rand_like", {one(narrow)}).at(0));
  CHECK(*std::max_element(units.begin(), units.end()) < 1);
}

}  // namespace
}  // namespace reshard::sim
