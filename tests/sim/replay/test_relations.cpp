// SPDX-License-Identifier: BSD-3-Clause
// Relations between results that hold whatever the results are: the bound of two jobs that share no
// rank is at least the bound of each alone; a trace of one redistribution runs as that does alone.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::Prng;
using reshard::test::redistribute;
using reshard::test::Rig;
using reshard::test::trace_of;

namespace {

using Ranks = std::vector<std::int64_t>;

// Messages, collectives and redistributions of these ranks, which join all of them.
std::vector<std::string> drawn_lines(Prng& random, const std::string& mesh, const Ranks& ranks) {
  static const char* const kKinds[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"};
  static const char* const kPlacements[] = {"R", "S(0)", "S(1)"};
  std::vector<std::string> out;
  auto any = [&] { return ranks[to_index(random.below(static_cast<std::int64_t>(ranks.size())))]; };
  std::string list;
  for (std::int64_t rank : ranks) list += fmt::format("{}{}", list.empty() ? "" : ",", rank);
  for (std::int64_t i = random.below(5) + 1; i-- > 0;) {
    std::int64_t what = random.below(3), source = any(), destination = any(),
                 bytes = 1 + random.below(4'000'000);
    if (what == 0 && source != destination) {
      for (const char* op : {"send", "recv"})
        out.push_back(fmt::format(
            R"({{"op": "{}", "rank": {}, "peer": {}, "bytes": {}, "tag": {}, "stream": {}}})", op,
            op[0] == 's' ? source : destination, op[0] == 's' ? destination : source, bytes, i,
            i + 1));
    } else if (what == 1) {
      out.push_back(
          fmt::format(R"({{"op": "collective", "kind": "{}", "ranks": "{}", "bytes": {}}})",
                      kKinds[random.below(4)], list, bytes));
    } else {
      out.push_back(test::redistribute("u8", fmt::format("[{}, 512]", 1 + random.below(4000)),
                                       kPlacements[random.below(3)], kPlacements[random.below(3)],
                                       mesh));
    }
  }
  out.push_back(test::redistribute("u8", "[64, 512]", "S(0)", "R", mesh));
  return out;
}

}  // namespace

TEST_CASE("two traces of other ranks are bounded by no less together than each alone") {
  Topology topology = default_topology(32);
  std::int64_t raised = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Prng random(seed);
    Ranks all(32);
    std::iota(all.begin(), all.end(), 0);
    for (std::size_t i = all.size(); i-- > 1;)
      std::swap(all[i], all[to_index(random.below(static_cast<std::int64_t>(i) + 1))]);
    std::int64_t first = 2 + random.below(10), second = 2 + random.below(10);
    Ranks of_a(all.begin(), all.begin() + first),
        of_b(all.begin() + first, all.begin() + first + second);
    auto mesh = [](const Ranks& ranks) {
      return fmt::format(R"({{"mesh": "{}", "ranks": "{}"}})", ranks.size(), fmt::join(ranks, ","));
    };
    std::string header = fmt::format(R"({{"reshard_trace": 1, "meshes": {{"a": {}, "b": {}}}}})",
                                     mesh(of_a), mesh(of_b));
    std::vector<std::string> a = drawn_lines(random, "a", of_a), b = drawn_lines(random, "b", of_b),
                             both = a;
    both.insert(both.end(), b.begin(), b.end());
    auto bound = [&](const std::vector<std::string>& lines) {
      Rig rig(topology, "p2p");
      rig.options.move_bytes = false;
      ReplayReport report = rig.replay(trace_of(header, lines));
      REQUIRE(report.findings.empty());
      return report.bound_ps;
    };
    std::int64_t apart = std::max(bound(a), bound(b)), together = bound(both);
    CHECK(together >= apart);
    raised += together > apart ? 1 : 0;
  }
  CHECK(raised < 60);
}

TEST_CASE("A trace of one redistribution takes the run of its study, which is the trace's") {
  Topology topology = find_topology("dgx-a100:2");
  std::string header = R"({"reshard_trace": 1, "meshes": {"m": "4x4"}})";
  std::string line = redistribute("f32", "[64, 96]", "S(0)S(1)", "S(1)S(0)", "m");
  Rig rig(topology);
  rig.options = {.critical_path = true, .work = true};
  Trace alone = trace_of(header, {line}),
        two = trace_of(
            header, {line, R"({"op": "compute", "ranks": "15", "stream": 1, "duration_ps": 1})"});
  ReplayReport one = rig.replay(alone), other = rig.replay(two);
  REQUIRE(one.timeline.end_ps > 0);
  CHECK(one.timeline.end_ps == other.timeline.end_ps);
  CHECK(one.timeline.flows == other.timeline.flows);
  CHECK(one.timeline.spans.size() + 1 == other.timeline.spans.size());
  CHECK(one.path->parts.size() == other.path->parts.size());
  CHECK(one.timeline.work.size() == other.timeline.work.size());
  std::int64_t before = runs_begun();
  rig.replay(alone);
  CHECK(runs_begun() == before);
}
