// SPDX-License-Identifier: BSD-3-Clause
// Plans that processes prepare together, one thread per process.
#include <catch2/catch.hpp>

#include <algorithm>

#include "backends/launch/agreement.h"
#include "core/planners/planner.h"
#include "tests/backends/launch/threaded_meeting.h"

using namespace reshard;
using namespace reshard::backends::launch;

namespace {

Plan planned(const char* to, const char* shape = "8,8") {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({4}));
  return plan_p2p(
      Request(parse_layout(shape, "f32", mesh, "S(0)"), parse_layout(shape, "f32", mesh, to)), {});
}

// What each of the processes is told.
std::vector<std::string> reported(const std::vector<const Plan*>& plans,
                                  const std::vector<std::string>& troubles = {}) {
  return run_ranks(static_cast<std::int32_t>(plans.size()), [&](Meeting& meeting) {
    auto at = static_cast<std::size_t>(meeting.index());
    agree_on_plan(meeting, plans[at], troubles.empty() ? "" : troubles[at]);
  });
}

std::vector<std::string> all(std::size_t count, const std::string& what) {
  return std::vector<std::string>(count, what);
}

}  // namespace

TEST_CASE("one plan is agreed on, others are refused on all processes") {
  Plan plan = planned("S(1)"), other = planned("R"), third = planned("S(1)", "8,16");
  CHECK(reported({&plan}) == all(1, ""));
  CHECK(reported({&plan, &plan, &plan}) == all(3, ""));
  CHECK(reported({&plan, &other, &plan, &other}) ==
        all(4,
            "plan: expected the same on all ranks, found a different one on ranks 1,3 than on rank "
            "0: destination placements R, where rank 0 has S(1)"));
  CHECK(reported({&plan, &third, &other}) ==
        all(3,
            "plan: expected the same on all ranks, found a different one on rank 1 than on rank 0: "
            "shape 8,16, where rank 0 has 8,8"));
}

TEST_CASE("the first failure of any process is reported by all, after plans that differ") {
  Plan plan = planned("S(1)"), other = planned("R");
  CHECK(reported({&plan, &plan, &plan}, {"", "rank 1: no memory", "rank 2: no shards"}) ==
        all(3, "rank 1: no memory"));
  CHECK(reported({&plan, nullptr}, {"", "rank 1: plan: expected a plan, found NULL"}) ==
        all(2, "rank 1: plan: expected a plan, found NULL"));
  CHECK(reported({nullptr, &plan}, {"rank 0: plan: expected a plan, found NULL", ""}) ==
        all(2, "rank 0: plan: expected a plan, found NULL"));
  // Shards of another plan have other sizes: what differs is said, not what follows from it.
  CHECK(reported({&plan, &other}, {"", "rank 1: source shard: expected 64 bytes, found 256"})[0] ==
        "plan: expected the same on all ranks, found a different one on rank 1 than on rank 0: "
        "destination placements R, where rank 0 has S(1)");
  CHECK(reported({&plan}, {"alone"}) == all(1, "alone"));
}
