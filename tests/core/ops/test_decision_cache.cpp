// SPDX-License-Identifier: BSD-3-Clause
// Decisions depend only on what their rule reads, and few are cached.
#include <catch2/catch.hpp>

#include <fstream>
#include <map>

#include "core/ops/decision_cache.h"
#include "core/ops/operator.h"
#include "core/ops/torch_moves.h"
#include "tests/core/ops/operator_cases.h"

namespace reshard::test {
namespace {

class CachedDecisions {
 public:
  explicit CachedDecisions(std::int64_t capacity = DecisionCache::kDefaultCapacity)
      : cache(capacity) {}

  const Decision& of(const char* op, const std::vector<const TensorSpec*>& in,
                     const OpAttributes& attributes = {}) {
    OpCall call{&find_operator(op), {}, attributes};
    for (const TensorSpec* tensor : in) call.arguments.push_back({false, {tensor}});
    return cache.of(call, 0, [&] {
      return decide(call, moves.sizes(), [&](const TensorSpec& from, const OpPlacements& to) {
        return moves.cost_us(from, to);
      });
    });
  }

  DecisionCache cache;
  TorchMoves moves{std::make_shared<const Mesh>(parse_mesh("4")), 1};
};

TensorSpec spec(Shape shape, OpPlacement placement) { return {{shape, DType::F32}, {placement}}; }

OpAttributes attribute(const char* name, OpValue value) {
  OpAttributes out;
  out.set(name, std::move(value));
  return out;
}

TEST_CASE("a scalar that no rule reads does not miss") {
  TensorSpec x = spec({16, 8}, OpPlacement::shard(0));
  CachedDecisions deciding;
  for (double value : {1.0, 2.0, 3.5}) {
    (void)deciding.of("pow.Tensor_Scalar", {&x}, attribute("exponent", OpValue(value)));
    (void)deciding.of("clamp", {&x}, attribute("max", OpValue(value)));
    (void)deciding.of("mul.Scalar", {&x}, attribute("other", OpValue(value)));
  }
  CHECK(deciding.cache.statistics().misses == 3);
  CHECK(deciding.cache.statistics().hits == 6);
  OpAttributes norm = attribute("normalized_shape", OpValue(std::vector<std::int64_t>{8}));
  for (double eps : {1e-5, 1e-6}) {
    norm.set("eps", OpValue(eps));
    OpCall call{&find_operator("native_layer_norm"), {{false, {&x}}}, norm};
    (void)deciding.cache.of(call, 0, [&] {
      return decide(call, deciding.moves.sizes(),
                    [](const TensorSpec&, const OpPlacements&) { return 0.0; });
    });
  }
  CHECK(deciding.cache.statistics().misses == 4);
}

TEST_CASE("what a rule reads does miss") {
  TensorSpec x = spec({16, 8}, OpPlacement::shard(0)), y = spec({16, 8}, OpPlacement::shard(1)),
             longer = spec({32, 8}, OpPlacement::shard(0));
  CachedDecisions deciding;
  for (std::int64_t dim : {0, 1}) {
    const Decision& sum = deciding.of("sum.dim_IntList", {&x}, attribute("dim", OpValue(dim)));
    CHECK(text(sum.outputs[0]->placements) == (dim == 0 ? "P(sum)" : "S(0)"));
  }
  (void)deciding.of("relu", {&x});
  (void)deciding.of("relu", {&y});
  (void)deciding.of("relu", {&longer});
  x.meta.dtype = DType::BF16;
  (void)deciding.of("relu", {&x});
  // An integer tensor and a number give a float, an integer an integer.
  x.meta.dtype = DType::I64;
  CHECK(deciding.of("add.Scalar", {&x}, attribute("other", OpValue(1.5))).outputs[0]->meta.dtype ==
        DType::F32);
  CHECK(deciding.of("add.Scalar", {&x}, attribute("other", OpValue(std::int64_t{1})))
            .outputs[0]
            ->meta.dtype == DType::I64);
  CHECK(deciding.cache.statistics().hits == 0);
  CHECK(deciding.cache.statistics().misses == 8);
}

bool alike(const Decision& a, const Decision& b) {
  return a.wanted == b.wanted && a.outputs == b.outputs && a.cost_us == b.cost_us;
}

TEST_CASE("calls of every kind get their own decision from one cache") {
  std::ifstream file("tests/torch/data/operators.jsonl");
  DecisionCache cache(20'000);
  std::map<std::string, std::pair<std::uint64_t, TorchMoves>> meshes;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("{\"call\"")) continue;
    OperatorCase asked = operator_case(line);
    if (asked.refused || asked.call.loss_parallel) continue;
    CAPTURE(line);
    auto mesh = std::make_shared<const Mesh>(parse_mesh(asked.mesh));
    auto& [number, moves] =
        meshes.try_emplace(asked.mesh, meshes.size(), TorchMoves(mesh, 1)).first->second;
    auto made = [&, &costs = moves] {
      return decide(asked.call, mesh->shape(), [&](const TensorSpec& from, const OpPlacements& to) {
        return costs.cost_us(from, to);
      });
    };
    CHECK(alike(cache.of(asked.call, number, made), made()));
  }
  CHECK(cache.statistics().misses > 6'000);
  CHECK(cache.statistics().hits > 50);
}

TEST_CASE("numbers, texts and lists that a rule reads tell calls apart") {
  TensorSpec x = spec({16, 8}, OpPlacement::partial(ReduceOp::Max));
  CachedDecisions deciding;
  OpAttributes attributes = attribute("threshold", OpValue(0.5));
  for (double value : {0.25, 0.75}) {
    attributes.set("value", OpValue(value));
    CHECK(text(*deciding.of("threshold", {&x}, attributes).wanted[0]) ==
          (value < 0.5 ? "P(max)" : "R"));
  }
  TensorSpec y = spec({16, 8}, OpPlacement::shard(0));
  for (const char* mode : {"trunc", "floor"})
    (void)deciding.of("div.Tensor_mode", {&y, &y},
                      attribute("rounding_mode", OpValue(std::string(mode))));
  for (std::int64_t dim : {0, 1})
    (void)deciding.of("amax", {&y}, attribute("dim", OpValue(std::vector<std::int64_t>{dim})));
  CHECK(deciding.cache.statistics().hits == 0);
}

TEST_CASE("the least recently used decision is dropped") {
  TensorSpec a = spec({16, 8}, OpPlacement::shard(0)), b = spec({16, 8}, OpPlacement::shard(1)),
             c = spec({16, 8}, OpPlacement::replicate());
  CachedDecisions deciding(2);
  for (const TensorSpec* tensor : {&a, &b, &a, &c, &a, &b}) (void)deciding.of("relu", {tensor});
  DecisionCacheStatistics statistics = deciding.cache.statistics();
  CHECK(statistics.hits == 2);
  CHECK(statistics.misses == 4);
  CHECK(statistics.evictions == 2);
  CHECK(statistics.entries == 2);
  CHECK(statistics.capacity == 2);
  CachedDecisions none(0);
  CHECK(text(*none.of("relu", {&a}).wanted[0]) == "S(0)");
  CHECK(text(*none.of("relu", {&a}).wanted[0]) == "S(0)");
  CHECK(none.cache.statistics().hits == 0);
  CHECK(none.cache.statistics().entries == 0);
}

}  // namespace
}  // namespace reshard::test
