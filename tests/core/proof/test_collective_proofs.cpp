// SPDX-License-Identifier: BSD-3-Clause
// Every plan that `rule` and `hybrid` make for many small requests is proved: all pairs of
// placements on small meshes, all shard orders, strided shards, uneven and empty shards, every
// reduction.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/traffic/accounting.h"

namespace reshard {
namespace {

// All lists of one placement per axis out of `choices`.
std::vector<std::vector<Placement>> placement_lists(const std::vector<Placement>& choices,
                                                    int axes) {
  std::vector<std::vector<Placement>> out{{}};
  for (int axis = 0; axis < axes; ++axis) {
    std::vector<std::vector<Placement>> next;
    for (const std::vector<Placement>& list : out)
      for (const Placement& placement : choices) {
        next.push_back(list);
        next.back().push_back(placement);
      }
    out = std::move(next);
  }
  return out;
}

// All stacks that the placements allow, in every order of the axes of each dim.
std::vector<ShardStacks> all_stacks(const std::vector<Placement>& placements, int dims) {
  std::vector<ShardStacks> out{ShardStacks(static_cast<std::size_t>(dims))};
  for (int dim = 0; dim < dims; ++dim) {
    std::vector<int> stack;
    for (std::size_t axis = 0; axis < placements.size(); ++axis)
      if (placements[axis].is_shard_like() && placements[axis].dim == dim)
        stack.push_back(static_cast<int>(axis));
    std::vector<ShardStacks> next;
    do {
      for (ShardStacks stacks : out) {
        stacks[static_cast<std::size_t>(dim)] = stack;
        next.push_back(std::move(stacks));
      }
    } while (std::next_permutation(stack.begin(), stack.end()));
    out = std::move(next);
  }
  return out;
}

struct Tally {
  std::int64_t proved = 0, forbidden = 0;
};

void prove_both(const Layout& source, const Layout& destination, Tally& tally) {
  std::optional<Request> request;
  try {
    request.emplace(source, destination);
  } catch (const InputError&) {
    ++tally.forbidden;
    return;
  }
  PlannerInput input;
  for (auto make : {plan_rule, plan_hybrid}) {
    Plan plan = make(*request, input);
    ProofResult result = check_plan(plan);
    if (!result.proved()) {
      INFO(plan.planner << ": " << request->text() << ": " << result.refutation->what << " in step "
                        << (result.refutation->step ? static_cast<int>(*result.refutation->step)
                                                    : -1));
      REQUIRE(result.proved());
    }
    ++tally.proved;
  }
}

// All pairs of layouts that `choices` give. `orders`: in every shard order too.
Tally prove_pairs(const std::vector<std::int32_t>& mesh, const Shape& shape,
                  const std::vector<Placement>& choices, bool orders, DType dtype = DType::F32) {
  MeshRef ref = std::make_shared<const Mesh>(Mesh::row_major(mesh));
  std::vector<Layout> layouts;
  for (const std::vector<Placement>& placements : placement_lists(choices, ref->axes())) {
    std::vector<ShardStacks> stacks = all_stacks(placements, shape.size());
    if (!orders) stacks.resize(1);
    for (const ShardStacks& stack : stacks)
      layouts.emplace_back(shape, dtype, ref, placements, stack);
  }
  Tally tally;
  for (const Layout& source : layouts)
    for (const Layout& destination : layouts) prove_both(source, destination, tally);
  return tally;
}

const Placement R = Placement::replicate(), S0 = Placement::shard(0), S1 = Placement::shard(1),
                S2 = Placement::shard(2), P = Placement::partial();
Placement strided(int dim, std::int64_t split_factor) {
  return Placement::strided_shard(dim, split_factor);
}

}  // namespace

TEST_CASE("plans on one axis are proved for every length and mesh size") {
  Tally sum;
  for (std::int32_t n : {1, 2, 3, 5, 8})
    for (std::int64_t length = 0; length <= 9; ++length) {
      Tally tally = prove_pairs({n}, {length}, {R, S0, strided(0, 2), strided(0, 3), P}, false);
      sum.proved += tally.proved;
      sum.forbidden += tally.forbidden;
    }
  // 25 pairs of which 2 (_S -> P) are forbidden where the axis has more than one rank, two
  // planners.
  CHECK(sum.proved == 10 * 2 * (25 + 4 * 23));
  CHECK(sum.forbidden == 10 * 4 * 2);
}

TEST_CASE("plans of 1-d tensors on two axes are proved, strided and in every shard order") {
  for (const std::vector<std::int32_t>& mesh :
       std::vector<std::vector<std::int32_t>>{{2, 2}, {2, 3}, {3, 2}, {4, 2}, {1, 3}, {3, 1}})
    for (std::int64_t length : {1, 5, 7, 12, 17}) {
      // 3 * 3 unsharded or singly sharded lists ... of 16 lists 9 have two shard-like axes, in two
      // orders: 25 layouts.
      Tally tally = prove_pairs(mesh, {length}, {R, S0, strided(0, 2), P}, true);
      CHECK(tally.proved + 2 * tally.forbidden == 2 * 20 * 20);
      CHECK(tally.proved > 500);
    }
}

TEST_CASE("plans of 2-d tensors on two axes are proved, strided and in every shard order") {
  for (const std::vector<std::int32_t>& mesh :
       std::vector<std::vector<std::int32_t>>{{2, 2}, {3, 2}, {2, 4}})
    for (const Shape& shape : {Shape{8, 8}, Shape{5, 3}, Shape{1, 7}, Shape{0, 4}}) {
      Tally tally = prove_pairs(mesh, shape, {R, S0, S1, strided(0, 2), strided(1, 3), P}, true);
      CHECK(tally.proved > 2000);
    }
}

TEST_CASE("plans on three axes are proved in every shard order") {
  for (const std::vector<std::int32_t>& mesh :
       std::vector<std::vector<std::int32_t>>{{2, 2, 2}, {2, 1, 3}}) {
    Tally one = prove_pairs(mesh, {13}, {R, S0, P}, true);
    CHECK(one.proved > 1000);
    Tally two = prove_pairs(mesh, {5, 6}, {R, S0, S1, P}, false);
    CHECK(two.proved > 3000);
  }
}

TEST_CASE("plans of 3-d tensors on three axes are proved") {
  Tally tally = prove_pairs({2, 2, 2}, {4, 3, 2}, {R, S0, S1, S2}, false);
  CHECK(tally.proved == 2 * 64 * 64);
}

TEST_CASE("plans with every reduction are proved") {
  const std::vector<std::pair<ReduceOp, DType>> cases{
      {ReduceOp::Sum, DType::BF16}, {ReduceOp::Avg, DType::F64},     {ReduceOp::Min, DType::F16},
      {ReduceOp::Max, DType::I32},  {ReduceOp::Product, DType::F32}, {ReduceOp::Band, DType::I8},
      {ReduceOp::Bor, DType::Bool}, {ReduceOp::Bxor, DType::U8},     {ReduceOp::Sum, DType::I64}};
  for (const auto& [op, dtype] : cases)
    for (const Shape& shape : {Shape{}, Shape{6}, Shape{7}}) {
      std::vector<Placement> choices{R, Placement::partial(op)};
      if (shape.size() > 0) choices.push_back(S0);
      Tally tally = prove_pairs({2, 3}, shape, choices, true, dtype);
      CHECK(tally.proved > 10);
    }
  // sum and avg mix.
  Tally mixed = prove_pairs({2, 3}, {7}, {R, P, Placement::partial(ReduceOp::Avg), S0}, true);
  CHECK(mixed.proved > 300);
}

TEST_CASE("plans on meshes with scattered ranks are proved") {
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("[[9,2],[4,7],[0,5]]"));
  Tally tally;
  std::vector<Layout> layouts;
  for (const std::vector<Placement>& placements : placement_lists({R, S0, S1, P}, 2))
    layouts.emplace_back(Shape{7, 5}, DType::F32, mesh, placements);
  for (const Layout& source : layouts)
    for (const Layout& destination : layouts) prove_both(source, destination, tally);
  CHECK(tally.proved == 2 * 16 * 16);
}

}  // namespace reshard
