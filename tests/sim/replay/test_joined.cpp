// SPDX-License-Identifier: BSD-3-Clause
// Joined lines: drawn traces keep their order, gain no wait, and run as the trace did; a job in
// order takes the time of its stages as lines.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/machines/presets.h"
#include "sim/network/order.h"
#include "sim/trace/jobs/joined.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/any_planner.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::Prng;
using reshard::test::trace_of;

namespace {

const std::string kOverlappingHeader =
    R"({"reshard_trace": 1, "topology": "dgx-h100", "meshes": {"all": "8", "left": "4", )"
    R"("right": {"mesh": "4", "ranks": "4-7"}, "odd": {"mesh": "3", "ranks": "1,6,3"}}})";

std::vector<std::string> draw_lines(Prng& prng) {
  static const std::vector<std::string> kMeshes{"all", "left", "right", "odd"};
  static const std::vector<std::string> kRanks{"0-7", "0-3", "5", "1,3,6"};
  std::vector<std::string> out;
  // Some traces are of one mesh or of one stream, so that sets are long; on many streams some have
  // one line.
  std::int64_t meshes = prng.between(1, 4), streams = prng.one_in(4) ? 6 : prng.between(1, 2);
  for (std::int64_t i = 0, count = prng.between(3, 12); i < count; ++i) {
    std::string more = fmt::format(R"(, "id": {}, "stream": {})", i, prng.below(streams));
    if (i > 0 && prng.one_in(4)) more += fmt::format(R"(, "after": {})", prng.below(i));
    if (prng.one_in(8)) more += R"(, "async": true)";
    const std::string& mesh = kMeshes[to_index(prng.below(meshes))];
    const std::string& ranks = prng.pick(kRanks);
    if (prng.one_in(5))
      out.push_back(fmt::format(R"({{"op": "compute", "ranks": "{}", "duration_ps": 3000{}}})",
                                ranks, more.substr(0, more.find(", \"async"))));
    else if (prng.one_in(8) && ranks.size() > 1)
      out.push_back(fmt::format(
          R"({{"op": "collective", "kind": "all_gather", "ranks": "{}", "bytes": 64{}}})", ranks,
          more));
    else
      out.push_back(test::redistribute(
          "u8", fmt::format("[{}]", prng.between(8, 9000)), prng.one_in(2) ? "S(0)" : "R", "R",
          mesh, prng.one_in(4) ? more + fmt::format(R"(, "name": "w{}")", prng.below(2)) : more));
  }
  return out;
}

using Matrix = std::vector<std::vector<bool>>;  // [a][b]: b comes after a

// By operation: whatever orders a part of one before a part of the other.
Matrix order_of(const Trace& trace, Studies& studies) {
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const TraceOperation& operation : trace.operations) {
    const auto* line = std::get_if<TraceRedistribute>(&operation.body);
    plans.push_back(line == nullptr ? nullptr
                                    : studies.of(*line->requests, {}, line->stages)->shared_plan());
  }
  Workload workload = workload_of(trace, plans, [](OpId) { return true; });
  Order order(workload);
  std::size_t n = trace.operations.size();
  Matrix out(n, std::vector<bool>(n, false));
  for (std::size_t op = 0; op < n; ++op)
    for (OpId before : workload.operations[op].after) out[to_index(before)][op] = true;
  for (std::size_t node = 0; node < order.nodes(); ++node)
    for (std::int32_t next : order.at_end(static_cast<std::int32_t>(node)))
      out[to_index(order.op_of(static_cast<std::int32_t>(node)))][to_index(order.op_of(next))] =
          true;
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (out[i][k] && out[k][j]) out[i][j] = true;
  return out;
}

// By operation of the trace: the operation of the joined one.
std::vector<std::size_t> numbers_in(const Trace& trace, const std::vector<JoinedSet>& sets) {
  std::vector<std::size_t> first(trace.operations.size());
  for (std::size_t op = 0; op < first.size(); ++op) first[op] = op;
  for (const JoinedSet& set : sets)
    for (OpId op : set) first[to_index(op)] = to_index(set.front());
  std::vector<std::size_t> out(first.size());
  for (std::size_t op = 0, next = 0; op < first.size(); ++op)
    out[op] = first[op] == op ? next++ : out[first[op]];
  return out;
}

ReplayReport run(const Trace& trace, const std::string& planner) {
  return test::Rig(find_topology("dgx-h100"), planner).replay(trace);
}

}  // namespace

TEST_CASE("drawn traces: joined lines come after what each came after, and before the same") {
  int ran = 0, sets = 0, several_ranks = 0, several_streams = 0, pairs = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Prng prng(seed);
    Trace trace = trace_of(kOverlappingHeader, draw_lines(prng));
    std::vector<JoinedSet> found = joinable_sets(trace, false);
    test::Rig rig(find_topology("dgx-h100"), "p2p");
    rig.options.move_bytes = false;
    if (found.empty() || !rig.replay(trace).findings.empty()) continue;
    CAPTURE(seed);
    ++ran;
    sets += static_cast<int>(found.size());
    for (const JoinedSet& set : found)
      for (OpId op : set) {
        const TraceOperation &own = trace.operations[op], &first = trace.operations[set.front()];
        several_ranks += ranks_of(own) != ranks_of(first);
        several_streams += own.stream != first.stream;
      }
    Trace together = joined(trace, found);
    Matrix before = order_of(trace, rig.studies), after = order_of(together, rig.studies);
    std::vector<std::size_t> now = numbers_in(trace, found);
    for (std::size_t a = 0; a < now.size(); ++a)
      for (std::size_t b = 0; b < now.size(); ++b) {
        if (now[a] == now[b]) continue;
        CAPTURE(a, b);
        CHECK(before[a][b] == after[now[a]][now[b]]);
        pairs += before[a][b] ? 1 : 0;
      }
    ReplayReport report = rig.replay(together);
    CHECK(report.findings.empty());
  }
  CHECK(ran > 300);
  CHECK(sets > 350);
  CHECK(several_ranks > 50);
  CHECK(several_streams > 20);
  CHECK(pairs > 1000);
}

TEST_CASE("lines on streams that do nothing else are joined") {
  auto line = [](int stream, const std::string& more = "") {
    return test::redistribute("u8", "[4096]", "S(0)", "R", "left",
                              fmt::format(R"(, "stream": {}{})", stream, more));
  };
  auto sizes = [](const std::vector<std::string>& lines) {
    std::vector<std::size_t> out;
    for (const JoinedSet& set : joinable_sets(trace_of(kOverlappingHeader, lines), false))
      out.push_back(set.size());
    return out;
  };
  auto compute = [](int stream, const std::string& ranks) {
    return fmt::format(R"({{"op": "compute", "ranks": "{}", "duration_ps": 3000, "stream": {}}})",
                       ranks, stream);
  };
  const std::vector<std::string> lines{line(0), line(2147483647), line(0), line(7)};
  CHECK(sizes(lines) == std::vector<std::size_t>{4});
  SECTION("not with one that waits or is waited for on its stream") {
    std::vector<std::string> more = lines;
    SECTION("behind") { more.push_back(compute(7, "2")); }
    SECTION("in front") { more.insert(more.begin(), compute(7, "2")); }
    CHECK(sizes(more) == std::vector<std::size_t>{});  // their communicator is that of line 7
  }
  SECTION("whatever other ranks do on these streams, which the joined line does not use") {
    std::vector<std::string> more = lines;
    more.push_back(compute(0, "6"));
    CHECK(sizes(more) == std::vector<std::size_t>{4});
    Trace trace = trace_of(kOverlappingHeader, more);
    Trace together = joined(trace, joinable_sets(trace, false));
    CHECK(together.operations.front().stream == 1);
  }
  SECTION("not around a line of the same name, which keeps its place") {
    const std::string named = R"(, "name": "w")";
    CHECK(sizes({line(0, named), line(0, named), line(1)}) == std::vector<std::size_t>{});
    // The communicator of `right` is used by nothing else.
    auto right = [](int stream) {
      return test::redistribute("u8", "[4096]", "S(0)", "R", "right",
                                fmt::format(R"(, "stream": {})", stream));
    };
    CHECK(sizes({line(0, named), line(0, named), right(1), right(2)}) ==
          std::vector<std::size_t>{2});
  }
  SECTION("nor is all that implicit order puts in turn") {
    CHECK(joinable_sets(trace_of(kOverlappingHeader, lines), true).empty());
  }
}

TEST_CASE("a job in stages takes the time of its stages as lines") {
  auto request = [](const std::string& mesh, const std::string& to, const std::string& more) {
    return R"t({"shape": [96, 64], "dtype": "f32", "from": "S(0)", "to": ")t" + to +
           R"(", "mesh": ")" + mesh + "\"" + more + "}";
  };
  auto line = [](const std::string& requests, const std::string& more = "") {
    return R"({"op": "redistribute", "requests": [)" + requests + "]" + more + "}";
  };
  for (const char* second : {"all", "left"})
    for (const PlannerRow* row : test::own_planners()) {
      const std::string planner(row->name);
      CAPTURE(second, planner);
      std::string first = request("all", "R", "") + ", " + request("all", "S(1)", ""),
                  then = request(second, "R", "");
      Trace in_order =
          trace_of(kOverlappingHeader, {line(request("all", "R", R"(, "id": 1)") + ", " +
                                             request("all", "S(1)", R"(, "id": 2)") + ", " +
                                             request(second, "R", R"(, "after": [2, 1])"))});
      ReplayReport job = run(in_order, planner),
                   lines = run(trace_of(kOverlappingHeader, {line(first), line(then)}), planner),
                   barrier = run(
                       trace_of(kOverlappingHeader, {line(first, R"(, "id": "f")"),
                                                     line(then, R"(, "after": "f", "stream": 1)")}),
                       planner);
      CHECK(job.time_ps == lines.time_ps);
      CHECK(job.bound_ps <= lines.bound_ps);
      CHECK(job.requests[0].text.find("in 2 stages") != std::string::npos);
      // All ranks end the first stage at one time, so that waiting for all of them costs nothing.
      CHECK(job.time_ps == barrier.time_ps);
      CHECK(job.elements_checked == lines.elements_checked);
    }
}
