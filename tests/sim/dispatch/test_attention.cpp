// SPDX-License-Identifier: BSD-3-Clause
// Attention: every kernel on random heads, masks, shards and meshes computes on its ranks what a
// simple definition computes on the whole tensors.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/planners/planner.h"
#include "sim/dispatch/values/values.h"
#include "sim/operators/operators.h"
#include "tests/support/prng.h"

namespace reshard::sim {
namespace {

using test::Prng;

struct Sizes {
  std::int64_t batch, heads, key_heads, queries, keys, width;
};

struct Kernel {
  const char *name, *mask;  // null: it takes none
  int outputs;
};

const std::vector<Kernel> kForward{{"scaled_dot_product_attention", "attn_mask", 1},
                                   {"_scaled_dot_product_attention_math", "attn_mask", 2},
                                   {"_scaled_dot_product_flash_attention", nullptr, 9},
                                   {"_scaled_dot_product_efficient_attention", "attn_bias", 4},
                                   {"_scaled_dot_product_cudnn_attention", "attn_bias", 9},
                                   {"_scaled_dot_product_fused_attention_overrideable", "b", 9},
                                   {"_scaled_dot_product_flash_attention_for_cpu", "attn_mask", 2}};

// Where the mask stands among the arguments of the backward, and how many there are behind it; the
// output and its log-sum-exp come as they are listed.
struct Backward {
  const char* name;
  std::vector<const char*> behind;  // value: "o", "l", "m" or null
  int outputs;
  bool has_blocks = false, has_tail = false;  // of the log-sum-exp
};

const std::vector<Backward> kBackward{
    {"_scaled_dot_product_flash_attention_backward",
     {"o", "l", nullptr, nullptr, nullptr, nullptr},
     3},
    {"_scaled_dot_product_efficient_attention_backward",
     {"m", "o", "l", nullptr, nullptr},
     4,
     true},
    {"_scaled_dot_product_cudnn_attention_backward",
     {"o", "l", nullptr, nullptr, "m", nullptr, nullptr},
     3,
     false,
     true},
    {"_scaled_dot_product_fused_attention_overrideable_backward",
     {"m", "o", "l", nullptr, nullptr, nullptr, nullptr},
     4},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", {"o", "l", "m"}, 3}};

Sizes drawn_sizes(Prng& prng) {
  struct Heads {
    std::int64_t queries, keys;
  };
  static const std::vector<Heads> heads{{8, 8}, {8, 4}, {8, 2},  {8, 1},  {12, 3}, {12, 6},
                                        {6, 3}, {6, 2}, {10, 5}, {9, 3},  {16, 8}, {24, 8},
                                        {5, 5}, {3, 1}, {4, 2},  {12, 4}, {7, 7},  {6, 1}};
  Heads of = prng.pick(heads);
  return {prng.between(1, 4), of.queries,         of.keys,
          prng.between(1, 6), prng.between(1, 6), prng.between(1, 3)};
}

// A shape that broadcasts to the scores; of 2 or 4 dims where the kernel of CPUs looks at it.
Shape drawn_mask(Prng& prng, const Sizes& of, bool whole) {
  const std::vector<std::int64_t> scores{of.batch, of.heads, of.queries, of.keys};
  int dims = whole ? prng.pick<int>({2, 4}) : static_cast<int>(prng.between(2, 4));
  Shape out;
  for (int d = 4 - dims; d < 4; ++d)
    out.push_back(prng.one_in(3) ? 1 : scores[static_cast<std::size_t>(d)]);
  return out;
}

std::string drawn_placements(Prng& prng, const Shape& shape, int axes) {
  std::string out;
  for (int axis = 0; axis < axes; ++axis) {
    std::int64_t way = prng.below(12), dim = prng.below(std::max(shape.size(), 1));
    if (prng.one_in(2)) dim = std::min(1, shape.size() - 1);
    if (way < 3) {
      out += "R";
    } else if (way == 3) {
      out += "P(sum)";
    } else if (way == 4) {
      out += fmt::format("_S({},2)", dim);
    } else {
      out += fmt::format("S({})", dim);
    }
  }
  return out;
}

// A trace of one call.
struct Drawn {
  std::vector<nlohmann::json> tensors;
  nlohmann::json call{{"op", "call"}, {"in", nlohmann::json::array()}};
  std::string mesh;
  int axes = 1;

  void add(Prng& prng, const char* name, const Shape& shape) {
    std::vector<std::int64_t> sizes(shape.begin(), shape.end());
    tensors.push_back({{"op", "tensor"},
                       {"tensor", name},
                       {"shape", sizes},
                       {"dtype", "f64"},
                       {"placements", drawn_placements(prng, shape, axes)},
                       {"mesh", "m"}});
    call["in"].push_back(name);
  }
  std::string text() const {
    std::string out = nlohmann::json{{"reshard_trace", 1}, {"meshes", {{"m", mesh}}}}.dump() + "\n";
    for (const nlohmann::json& tensor : tensors) out += tensor.dump() + "\n";
    return out + call.dump() + "\n";
  }
};

Drawn started(Prng& prng, const char* name, int outputs) {
  Drawn out;
  out.mesh = prng.pick<std::string>({"2", "3", "4", "2x2", "2x3", "3x2", "5"});
  out.axes = out.mesh.size() > 1 ? 2 : 1;
  out.call["call"] = name;
  for (int i = 0; i < outputs; ++i) out.call["out"].push_back("y" + std::to_string(i));
  // States, and what is no tensor, has no name.
  for (int i = 2; i < outputs && !std::string(name).ends_with("backward"); ++i)
    out.call["out"][static_cast<std::size_t>(i)] = nullptr;
  return out;
}

Drawn forward(Prng& prng) {
  const Kernel& kernel = prng.pick(kForward);
  const Sizes of = drawn_sizes(prng);
  Drawn out = started(prng, kernel.name, kernel.outputs);
  out.add(prng, "q", {of.batch, of.heads, of.queries, of.width});
  const bool apart = kernel.outputs < 3 && !std::string(kernel.name).ends_with("cpu");
  const std::int64_t batch = apart && prng.one_in(4) ? 1 : of.batch;
  out.add(prng, "k", {batch, of.key_heads, of.keys, of.width});
  out.add(prng, "v", {batch, of.key_heads, of.keys, of.width});
  bool masks = kernel.mask && prng.one_in(2);
  if (masks) out.add(prng, "m", drawn_mask(prng, of, std::string(kernel.name).ends_with("cpu")));
  if (!(masks && apart) && prng.one_in(3)) out.call["attr"]["is_causal"] = true;
  if (prng.one_in(3)) out.call["attr"]["scale"] = 0.5;
  if (apart && of.key_heads > 1 && of.key_heads < of.heads) out.call["attr"]["enable_gqa"] = true;
  return out;
}

Drawn backward(Prng& prng) {
  const Backward& kernel = prng.pick(kBackward);
  const Sizes of = drawn_sizes(prng);
  const Shape out_shape{of.batch, of.heads, of.queries, of.width};
  Drawn out = started(prng, kernel.name, kernel.outputs);
  out.add(prng, "g", out_shape);
  out.add(prng, "q", out_shape);
  out.add(prng, "k", {of.batch, of.key_heads, of.keys, of.width});
  out.add(prng, "v", {of.batch, of.key_heads, of.keys, of.width});
  const bool masks = prng.one_in(2);
  for (const char* name : kernel.behind) {
    std::string what = name ? name : "";
    if (what == "o") {
      out.add(prng, "o", out_shape);
    } else if (what == "l") {
      Shape sums{of.batch, of.heads, kernel.has_blocks ? 32 : of.queries};
      if (kernel.has_tail) sums.push_back(1);
      out.add(prng, "l", sums);
    } else if (what == "m" && masks) {
      out.add(prng, "m", drawn_mask(prng, of, kernel.outputs == 3));
    } else {
      out.call["in"].push_back(nullptr);
    }
  }
  if (!masks && kernel.outputs == 4) out.call["out"][3] = nullptr;
  if (prng.one_in(3)) out.call["attr"]["is_causal"] = true;
  return out;
}

// ---- the plain definition

// Whole tensors by name, elements by coordinates; what is broadcast is read at 0.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const Array& array) : shape_(array.shape), values_(values<double>(array)) {}
  const Shape& shape() const { return shape_; }
  double at(std::initializer_list<std::int64_t> index) const { return values_[place(index)]; }
  double& at(std::initializer_list<std::int64_t> index) { return values_[place(index)]; }
  bool is_there() const { return !values_.empty(); }
  const std::vector<double>& all() const { return values_; }
  static Tensor like(const Tensor& other) {
    Tensor out = other;
    std::fill(out.values_.begin(), out.values_.end(), 0);
    return out;
  }

 private:
  std::size_t place(std::initializer_list<std::int64_t> index) const {
    std::size_t out = 0;
    auto from = index.begin() + (static_cast<int>(index.size()) - shape_.size());
    for (std::int64_t size : shape_) {
      std::int64_t at = *from++;
      out = out * static_cast<std::size_t>(size) + static_cast<std::size_t>(size == 1 ? 0 : at);
    }
    return out;
  }
  Shape shape_;
  std::vector<double> values_;
};

struct Plain {
  Tensor q, k, v, mask;
  double scale = 0;
  bool causal = false;

  std::int64_t key_head(std::int64_t head) const { return head / (q.shape()[1] / k.shape()[1]); }
  double score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (causal && j > i) return -INFINITY;
    double out = mask.is_there() ? mask.at({b, h, i, j}) : 0;
    for (std::int64_t c = 0; c < q.shape()[3]; ++c)
      out += q.at({b, h, i, c}) * k.at({b, key_head(h), j, c}) * scale;
    return out;
  }
  // visit(batch, head, query)
  template <class Visit>
  void each(Visit visit) const {
    for (std::int64_t b = 0; b < q.shape()[0]; ++b)
      for (std::int64_t h = 0; h < q.shape()[1]; ++h)
        for (std::int64_t i = 0; i < q.shape()[2]; ++i) visit(b, h, i);
  }
};

Tensor attended(const Plain& of) {
  Tensor out = Tensor::like(of.q);
  of.each([&](std::int64_t b, std::int64_t h, std::int64_t i) {
    double total = 0;
    for (std::int64_t j = 0; j < of.k.shape()[2]; ++j) total += std::exp(of.score(b, h, i, j));
    for (std::int64_t j = 0; j < of.k.shape()[2]; ++j)
      for (std::int64_t c = 0; c < of.q.shape()[3]; ++c)
        out.at({b, h, i, c}) +=
            std::exp(of.score(b, h, i, j)) / total * of.v.at({b, of.key_head(h), j, c});
  });
  return out;
}

struct Slopes {
  Tensor q, k, v, mask;
};

Slopes slopes(const Plain& of, const Tensor& grad, const Tensor& out, const Tensor& sums) {
  Slopes d{Tensor::like(of.q), Tensor::like(of.k), Tensor::like(of.v), Tensor::like(of.mask)};
  of.each([&](std::int64_t b, std::int64_t h, std::int64_t i) {
    const bool has_tail = sums.shape().size() == 4;
    const double sum = has_tail ? sums.at({b, h, i, 0}) : sums.at({b, h, i});
    const std::int64_t g = of.key_head(h);
    for (std::int64_t j = 0; j < of.k.shape()[2]; ++j) {
      const double weight = std::exp(of.score(b, h, i, j) - sum);
      double slope = 0;
      for (std::int64_t c = 0; c < of.q.shape()[3]; ++c)
        slope += weight * grad.at({b, h, i, c}) * (of.v.at({b, g, j, c}) - out.at({b, h, i, c}));
      for (std::int64_t c = 0; c < of.q.shape()[3]; ++c) {
        d.q.at({b, h, i, c}) += slope * of.scale * of.k.at({b, g, j, c});
        d.k.at({b, g, j, c}) += slope * of.scale * of.q.at({b, h, i, c});
        d.v.at({b, g, j, c}) += weight * grad.at({b, h, i, c});
      }
      if (of.mask.is_there()) d.mask.at({b, h, i, j}) += slope;
    }
  });
  return d;
}

void check_close(const std::vector<double>& found, const std::vector<double>& right) {
  REQUIRE(found.size() == right.size());
  double largest = 1;
  for (double x : right) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < right.size(); ++i)
    REQUIRE(std::abs(found[i] - right[i]) <= 1e-9 * largest);
}

// ---- a run

std::shared_ptr<const Plan> plan_of(const Request& request) {
  return std::make_shared<const Plan>(make_plan(find_planner("p2p"), request, {}));
}

struct Run {
  Trace trace;
  DispatchReport report;
};

Run run_of(const std::string& text, DispatchMode mode) {
  std::istringstream in(text);
  Run out{parse_trace(in, "t.jsonl"), {}};
  DispatchOptions options;
  options.mode = mode;
  options.time_ps = [](const Request& request) {
    return 1'000 + element_count(request.source().local_shape(0)) +
           element_count(request.destination().local_shape(0));
  };
  out.report = dispatch(out.trace, options);
  check_values(out.trace, out.report, plan_of);
  return out;
}

// What the operator gives of the whole tensors, and those by name.
struct Whole {
  std::map<std::string, Tensor> tensors;
  ArrayResults results;
};

Whole whole_of(const Drawn& drawn, const Run& run) {
  Whole out;
  std::map<std::string, Array> arrays;
  for (std::size_t i = 0; i < drawn.tensors.size(); ++i) {
    std::string name = drawn.tensors[i]["tensor"];
    arrays[name] = assemble(declared(*run.report.tensors[i])).array;
    out.tensors[name] = Tensor(arrays[name]);
  }
  std::vector<ArrayArgument> arguments;
  for (const nlohmann::json& name : drawn.call["in"])
    arguments.push_back({false, {name.is_null() ? nullptr : &arrays.at(name)}});
  out.results = compute(drawn.call["call"].get<std::string>(), arguments,
                        run.report.calls[0].op_line->attributes, {});
  return out;
}

void check_definition(const Drawn& drawn, const Run& run) {
  Whole whole = whole_of(drawn, run);
  std::map<std::string, Tensor>& t = whole.tensors;
  const OpAttributes& op_line = run.report.calls[0].op_line->attributes;
  Plain plain{t["q"], t["k"], t["v"], t["m"]};
  plain.scale = op_line.number("scale", 1 / std::sqrt(static_cast<double>(t["q"].shape()[3])));
  plain.causal = op_line.boolean("is_causal", false);
  if (!t["g"].is_there())
    return check_close(values<double>(*whole.results[0]), attended(plain).all());
  Slopes d = slopes(plain, t["g"], t["o"], t["l"]);
  check_close(values<double>(*whole.results[0]), d.q.all());
  check_close(values<double>(*whole.results[1]), d.k.all());
  check_close(values<double>(*whole.results[2]), d.v.all());
  if (whole.results.size() > 3 && plain.mask.is_there())
    check_close(values<double>(*whole.results[3]), d.mask.all());
}

TEST_CASE("drawn attentions give on their ranks what the definition gives of the whole") {
  Prng prng(33);
  int whole_keys = 0, corrected = 0, cut = 0;
  for (int i = 0; i < 1'600; ++i) {
    Drawn drawn = prng.one_in(2) ? forward(prng) : backward(prng);
    CAPTURE(drawn.text());
    for (DispatchMode mode : {DispatchMode::Torch, DispatchMode::Best}) {
      Run run = run_of(drawn.text(), mode);
      for (const TraceFinding& finding : run.report.findings) FAIL(finding.what);
      REQUIRE(run.report.calls_computed == 1);
      if (mode == DispatchMode::Torch) check_definition(drawn, run);
      const Decision& decision = run.report.calls[0].decision;
      std::size_t query = drawn.tensors[0]["tensor"] == "g" ? 1 : 0;
      bool cuts_heads = !axes_cutting(*decision.wanted[query], 1).empty();
      whole_keys += cuts_heads && axes_cutting(*decision.wanted[query + 1], 1).empty();
      corrected += !decision.corrected.empty();
      cut += cuts_heads;
    }
  }
  CHECK(cut > 400);
  CHECK(whole_keys > 20);
  CHECK(corrected > 100);
}

}  // namespace
}  // namespace reshard::sim
