// SPDX-License-Identifier: BSD-3-Clause
// All pairs of placements on two small nodes: planned, proved, moved at full size and compared.
// tests/bench/near_the_limit.py measures plans by the same pairs with large tensors.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "core/planners/planner.h"
#include "sim/machines/presets.h"
#include "sim/store/data_check.h"
#include "sim/study/studies.h"
#include "tests/core/planners/planner_cases.h"
#include "tests/support/part.h"

using namespace reshard;

namespace {

std::vector<std::string> pairs_of_axes(const std::vector<std::string>& placements) {
  std::vector<std::string> out;
  for (const std::string& first : placements)
    for (const std::string& second : placements) out.push_back(first + second);
  return out;
}

// Of one mesh; returns how many plans were moved.
int move_all(const char* mesh, const char* planner) {
  const std::vector<std::string> plain = pairs_of_axes({"R", "S(0)", "S(1)", "S(2)"});
  std::vector<std::string> sources = plain;
  for (const char* second : {"R", "S(0)", "S(1)", "S(2)"})
    sources.push_back(std::string("P(sum)") + second);
  sim::StudyOptions options;
  options.transport.kind = TransportKind::Ideal;
  sim::Studies studies(std::make_shared<const Topology>(sim::find_topology("dgx-h100:2")),
                       find_planner(planner), options);
  int moved = 0, drawn = 0;
  for (const std::string& from : sources)
    for (const std::string& to : plain) {
      if (drawn++ % test::kOneOf != 0) continue;
      INFO(planner << " on " << mesh << ": " << from << " -> " << to);
      Request request = request_on(mesh, "32,32,16", from, to);
      sim::DataReport report =
          sim::move_and_check(studies.of(request)->shared_plan(), {}, 1 << 30, 1 << 30);
      REQUIRE(report.full_size);
      CHECK(report.elements >= 32 * 32 * 16);
      ++moved;
    }
  return moved;
}

}  // namespace

TEST_CASE("two nodes: every pair by packed and graph is what the request defines") {
  for (const char* mesh : {"2x8", "4x4", "8x2"})
    for (const char* planner : {"packed", "graph"}) {
      int moved = move_all(mesh, planner);
      if (test::kOneOf == 1) CHECK(moved == 320);
    }
}
