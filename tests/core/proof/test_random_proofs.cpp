// SPDX-License-Identifier: BSD-3-Clause
// Random requests of every kind, up to 8 dims and 5 axes, through `rule` and `hybrid` to the proof.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "tests/support/prng.h"

namespace reshard {
namespace {

using test::Prng;

Layout random_layout(Prng& random, const Shape& shape, const MeshRef& mesh, ReduceOp op) {
  std::vector<Placement> placements;
  ShardStacks stacks(static_cast<std::size_t>(shape.size()));
  for (int axis = 0; axis < mesh->axes(); ++axis) {
    switch (random.below(shape.size() == 0 ? 2 : 6)) {
      case 0:
        placements.push_back(Placement::replicate());
        break;
      case 1:
        placements.push_back(
            Placement::partial(op == ReduceOp::Sum && random.one_in(3) ? ReduceOp::Avg : op));
        break;
      case 2:
        placements.push_back(Placement::strided_shard(static_cast<int>(random.below(shape.size())),
                                                      random.between(1, 5)));
        break;
      default:
        placements.push_back(Placement::shard(static_cast<int>(random.below(shape.size()))));
    }
    if (placements.back().is_shard_like())
      stacks[static_cast<std::size_t>(placements.back().dim)].push_back(axis);
  }
  for (std::vector<int>& stack : stacks) random.shuffle(stack);
  return Layout(shape, DType::F32, mesh, placements, stacks);
}

MeshRef random_mesh(Prng& random) {
  std::vector<std::int32_t> shape;
  std::int32_t size = 1;
  for (std::int64_t axes = random.between(1, 5); axes > 0; --axes) {
    shape.push_back(static_cast<std::int32_t>(random.between(1, size > 12 ? 2 : 4)));
    size *= shape.back();
  }
  std::vector<Rank> ranks;
  for (std::int32_t rank = 0; rank < size; ++rank) ranks.push_back(Rank{rank * 2 + 1});
  if (random.one_in(2)) random.shuffle(ranks);
  return std::make_shared<const Mesh>(shape, ranks);
}

Shape random_shape(Prng& random) {
  Shape shape;
  std::int64_t elements = 1;
  for (std::int64_t dims = random.one_in(4) ? random.between(0, 8) : random.between(1, 3); dims > 0;
       --dims) {
    shape.push_back(random.one_in(20) ? 0 : random.between(1, elements > 64 ? 2 : 17));
    elements *= std::max<std::int64_t>(1, shape[shape.size() - 1]);
  }
  return shape;
}

}  // namespace

TEST_CASE("random requests are planned right") {
  const std::uint64_t seed = 20251;
  Prng random(seed);
  int proved = 0, direct = 0;
  const std::vector<ReduceOp> ops{ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max,
                                  ReduceOp::Product};
  for (int draw = 0; draw < 4000; ++draw) {
    MeshRef mesh = random_mesh(random);
    Shape shape = random_shape(random);
    ReduceOp op = random.pick(ops);
    Layout source = random_layout(random, shape, mesh, op),
           destination = random_layout(random, shape, mesh, op);
    try {
      Request request(source, destination);
      for (auto make : {plan_rule, plan_hybrid}) {
        Plan plan = make(request, {});
        ProofResult result = check_plan(plan);
        INFO("seed " << seed << " draw " << draw << " " << plan.planner << ": " << request.text()
                     << " " << source.text() << ": "
                     << (result.proved() ? "" : result.refutation->what));
        REQUIRE(result.proved());
        ++proved;
        for (const Step& step : plan.steps)
          direct += std::holds_alternative<ExchangeStep>(step.body) ? 1 : 0;
      }
    } catch (const InputError&) {
      // _S -> P and its like.
    }
  }
  CHECK(proved > 3000);
  // Both branches of hybrid were seen.
  CHECK(direct > 300);
  CHECK(direct < proved / 2);
}

}  // namespace reshard
