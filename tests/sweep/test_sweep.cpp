// SPDX-License-Identifier: BSD-3-Clause
// Every small case through every planner, the proof and the store, compared with the oracle bit for
// bit. The number of cases is asserted exactly, so that none can drop out unnoticed. Split so that
// test runners can run parts in parallel. 2,793,418 runs in total.
#include <catch2/catch.hpp>

#include "tests/support/case_sets.h"
#include "tests/support/part.h"
#include "tests/sweep/sweep_run.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// Every planner of the registry: a new one is swept without a change here but to the counts.
std::vector<std::string_view> all_planners() {
  std::vector<std::string_view> names;
  for (const PlannerRow& row : planners()) names.push_back(row.name);
  return names;
}

SweepCounts sweep(std::string_view set_name) {
  const CaseSet& set = case_set(set_name);
  Sweep sweep(all_planners());
  for (const std::vector<std::int32_t>& mesh : set.meshes)
    all_small_cases(set.shapes, set.dtype, mesh, set.choices,
                    [&](const SmallLayout& source, const SmallLayout& destination) {
                      sweep.run(source, destination);
                    });
  CHECK(sweep.failures() == "");
  return sweep.counts();
}

void check_counts(const SweepCounts& found, const SweepCounts& expected) {
  INFO("found " << text(found));
  INFO("expected " << text(expected));
  CHECK(found == expected);
}

}  // namespace

// Per axis of at least 2 ranks, 2 of the 25 transitions (_S, _S -> P) are forbidden, so 23^axes of
// 25^axes pairs are requests; of 2-d, all.
TEST_CASE("sweep: 1-d on one axis and on two of two to eight ranks") {
  check_counts(sweep("1-d on one axis and on two of two to eight ranks"),
               {33'250, 4'940, 0, 169'860});
}
TEST_CASE("sweep: 1-d on 2x2x2, lengths 0 to 3") {
  check_counts(sweep("1-d on 2x2x2, lengths 0 to 3"), {62'500, 13'832, 0, 292'008});
}
TEST_CASE("sweep: 1-d on 2x2x2, lengths 4 to 6") {
  check_counts(sweep("1-d on 2x2x2, lengths 4 to 6"), {46'875, 10'374, 0, 219'006});
}
TEST_CASE("sweep: 1-d on 2x2x2, lengths 7 to 9") {
  check_counts(sweep("1-d on 2x2x2, lengths 7 to 9"), {46'875, 10'374, 0, 219'006});
}
TEST_CASE("sweep: 1-d beside an axis of size 1") {
  check_counts(sweep("1-d beside an axis of size 1"), {93'750, 7'000, 0, 520'500});
}
TEST_CASE("sweep: 2-d on one axis") {
  check_counts(sweep("2-d on one axis"), {4'608, 0, 0, 27'648});
}
TEST_CASE("sweep: 2-d on two axes, 0 to 2 rows") {
  check_counts(sweep("2-d on two axes, 0 to 2 rows"), {23'040, 0, 0, 138'240});
}
TEST_CASE("sweep: 2-d on two axes, 3 to 8 rows") {
  check_counts(sweep("2-d on two axes, 3 to 8 rows"), {23'040, 0, 0, 138'240});
}
TEST_CASE("sweep: 2-d beside an axis of size 1") {
  check_counts(sweep("2-d beside an axis of size 1"), {138'240, 0, 0, 829'440});
}

TEST_CASE("sweep: 1-d with different operators") {
  check_counts(sweep("1-d with different operators"), {5'184, 4'056, 0, 6'768});
}
TEST_CASE("sweep: 1-d with different operators beside an axis of size 1") {
  check_counts(sweep("1-d with different operators beside an axis of size 1"),
               {1'296, 844, 0, 2'712});
}

namespace {

void check_drawn(std::uint64_t seed, int draws, const SweepCounts& expected) {
  Sweep sweep(all_planners());
  for (int i = 0; i < draws / kOneOf; ++i) {
    Prng prng(seed + static_cast<std::uint64_t>(i));
    DrawnPair pair = draw_pair(prng);
    SmallLayout source(pair.source), destination(pair.destination);
    sweep.run(source, destination);
  }
  CHECK(sweep.failures() == "");
  if (kOneOf == 1) check_counts(sweep.counts(), expected);
}

}  // namespace

// Draw i has the seed of its test plus i.
TEST_CASE("sweep: 25,000 draws from seed 1") {
  check_drawn(1, 25'000, {25'000, 2'509, 20'067, 114'879});
}
TEST_CASE("sweep: 25,000 draws from seed 25,001") {
  check_drawn(25'001, 25'000, {25'000, 2'439, 20'255, 115'111});
}
