// SPDX-License-Identifier: BSD-3-Clause
// Every small case through every planner, the proof and the store, compared with the oracle bit for bit. How many cases ran is asserted exactly, so that none can drop out unseen. Split so
// that test runners can run parts side by side. 1,243,071 runs in all.
#include <catch2/catch.hpp>

#include "tests/sweep/sweep_run.h"

using namespace reshard;
using namespace reshard::test;

namespace {

const std::vector<Placement> kOneDim{Placement::replicate(), Placement::shard(0), Placement::strided_shard(0, 2), Placement::strided_shard(0, 3),
                                     Placement::partial()};
const std::vector<Placement> kTwoDims{Placement::replicate(), Placement::shard(0), Placement::shard(1), Placement::partial()};

std::vector<Shape> lengths(std::int64_t from, std::int64_t to) {
  std::vector<Shape> out;
  for (std::int64_t length = from; length <= to; ++length) out.push_back(Shape{length});
  return out;
}

std::vector<Shape> rectangles(std::initializer_list<std::int64_t> rows) {
  std::vector<Shape> out;
  for (std::int64_t row : rows)
    for (std::int64_t column : {0, 1, 2, 3, 5, 8}) out.push_back(Shape{row, column});
  return out;
}

struct Sides {
  std::vector<Shape> shapes;
  DType dtype;
  const std::vector<Placement>& choices;
};

// Every planner of the registry: a new one is swept without a change here but to the counts.
std::vector<std::string_view> all_planners() {
  std::vector<std::string_view> names;
  for (const PlannerRow& row : planners()) names.push_back(row.name);
  return names;
}

SweepCounts sweep(const Sides& sides, const std::vector<std::vector<std::int32_t>>& meshes) {
  Sweep sweep(all_planners());
  for (const std::vector<std::int32_t>& mesh : meshes)
    all_small_cases(sides.shapes, sides.dtype, mesh, sides.choices,
                    [&](const SmallLayout& source, const SmallLayout& destination) { sweep.run(source, destination); });
  CHECK(sweep.failures() == "");
  return sweep.counts();
}

void check_counts(const SweepCounts& found, const SweepCounts& expected) {
  INFO("found " << text(found));
  INFO("expected " << text(expected));
  CHECK(found == expected);
}

}  // namespace

// Per axis of at least 2 ranks, 3 of the 25 transitions (S, _S, _S -> P) are forbidden, so 22^axes of 25^axes pairs are requests; of 2-d, 14 of 16.
TEST_CASE("sweep: 1-d on one axis and on two of two to eight ranks") {
  auto meshes = single_axis_meshes(8);
  for (auto& mesh : factored_meshes(8, 2)) meshes.push_back(mesh);
  check_counts(sweep({lengths(0, 9), DType::F32, kOneDim}, meshes), {33'250, 7'260, 0, 103'960});
}
TEST_CASE("sweep: 1-d on 2x2x2, lengths 0 to 3") { check_counts(sweep({lengths(0, 3), DType::F32, kOneDim}, {{2, 2, 2}}), {62'500, 19'908, 0, 170'368}); }
TEST_CASE("sweep: 1-d on 2x2x2, lengths 4 to 6") { check_counts(sweep({lengths(4, 6), DType::F32, kOneDim}, {{2, 2, 2}}), {46'875, 14'931, 0, 127'776}); }
TEST_CASE("sweep: 1-d on 2x2x2, lengths 7 to 9") { check_counts(sweep({lengths(7, 9), DType::F32, kOneDim}, {{2, 2, 2}}), {46'875, 14'931, 0, 127'776}); }
TEST_CASE("sweep: 1-d beside an axis of size 1") {
  check_counts(sweep({lengths(0, 9), DType::BF16, kOneDim}, meshes_with_ones(8)), {93'750, 10'500, 0, 333'000});
}
TEST_CASE("sweep: 2-d on one axis") {
  check_counts(sweep({rectangles({0, 1, 2, 3, 5, 8}), DType::F64, kTwoDims}, single_axis_meshes(8)), {4'608, 504, 0, 16'416});
}
TEST_CASE("sweep: 2-d on two axes, 0 to 2 rows") {
  check_counts(sweep({rectangles({0, 1, 2}), DType::F32, kTwoDims}, factored_meshes(8, 2)), {23'040, 5'400, 0, 70'560});
}
TEST_CASE("sweep: 2-d on two axes, 3 to 8 rows") {
  check_counts(sweep({rectangles({3, 5, 8}), DType::F32, kTwoDims}, factored_meshes(8, 2)), {23'040, 5'400, 0, 70'560});
}
TEST_CASE("sweep: 2-d beside an axis of size 1") {
  check_counts(sweep({rectangles({0, 1, 2, 3, 5, 8}), DType::F16, kTwoDims}, meshes_with_ones(8)), {138'240, 16'128, 0, 488'448});
}

namespace {

SweepCounts sweep_drawn(std::uint64_t seed, int draws) {
  Sweep sweep(all_planners());
  for (int i = 0; i < draws; ++i) {
    Prng prng(seed + static_cast<std::uint64_t>(i));
    DrawnPair pair = draw_pair(prng);
    SmallLayout source(pair.source), destination(pair.destination);
    sweep.run(source, destination);
  }
  CHECK(sweep.failures() == "");
  return sweep.counts();
}

}  // namespace

// Draw i has the seed of its test plus i.
TEST_CASE("sweep: 25,000 draws from seed 1") { check_counts(sweep_drawn(1, 25'000), {25'000, 2'126, 13'430, 78'066}); }
TEST_CASE("sweep: 25,000 draws from seed 25,001") { check_counts(sweep_drawn(25'001, 25'000), {25'000, 2'035, 13'580, 78'280}); }
