// SPDX-License-Identifier: BSD-3-Clause
// Traces carried through: lines that are joined, and what is said of those that could be.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/job/trace_job.h"
#include "sim/machines/presets.h"
#include "tests/sim/replay/replay_case.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::trace_of;

namespace {

const std::string kHeader =
    R"({"reshard_trace": 1, "topology": "dgx-h100", "meshes": {"all": "8"}})";

ReplayReport run(Trace trace, bool joined) {
  TraceJobOptions options;
  options.studies.transport.kind = TransportKind::Ideal;
  options.studies.cache_capacity = 64;
  options.replay.move_bytes = true;
  options.joined = joined;
  auto topology = std::make_shared<const Topology>(find_topology(trace.topology));
  return run_trace(trace, topology, find_planner("p2p"), options);
}

}  // namespace

TEST_CASE("a joined trace has the values of the trace, all proved and compared") {
  std::vector<std::string> lines;
  for (int i = 0; i < 5; ++i)
    lines.push_back(test::redistribute("f32", "[64, 48]", i % 2 == 0 ? "S(0)" : "P(sum)", "S(1)",
                                       "all", fmt::format(R"(, "name": "w{}")", i)));
  Trace trace = trace_of(kHeader, lines);
  ReplayReport apart = run(trace, false), together = run(trace, true);
  REQUIRE(apart.together);
  CHECK_FALSE(apart.together->joined);
  CHECK(apart.together->time_ps == together.time_ps);
  CHECK(apart.together->time_ps < apart.time_ps);
  REQUIRE(apart.together->sets.size() == 1);
  CHECK(apart.together->sets[0].lines == "2-6");
  CHECK(apart.together->count() == 5);
  REQUIRE(together.together);
  CHECK(together.together->joined);
  CHECK(together.requests.size() == 1);
  CHECK(together.requests[0].name == "lines 2-6");
  CHECK(together.bytes_received_total == apart.bytes_received_total);
  CHECK(together.data_checked == 1);
  CHECK(together.elements_checked == 5 * 64 * 48);
  // Where joining gains nothing it is not advised, and nothing is said of what is not there.
  CHECK_FALSE(run(trace_of(kHeader, {lines[0]}), true).together);
  CHECK_FALSE(run(trace_of(kHeader, {lines[0]}), false).together);
}
