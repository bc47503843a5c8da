// SPDX-License-Identifier: BSD-3-Clause
// Exact times of small traces, and what the report counts. Star topology: 100 GB/s per port and
// direction (10 ps per byte), 1 us latency.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include <numeric>

#include "core/base/errors.h"
#include "sim/machines/presets.h"
#include "sim/replay/operation_bound.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::redistribute;
using reshard::test::Rig;
using reshard::test::trace_of;

namespace {

const std::string kHalves =
    R"({"reshard_trace": 1, "meshes": {"m": "4", "low": "2", "high": {"mesh": "2", "ranks": )"
    R"("2-3"}}})";
// Three flows through a port get a third of its rate each, floored to bytes per second: a last byte
// that is kFloor later.
constexpr std::int64_t kLatency = 1'000'000, kByte = 10, kFloor = 1;

std::string gather(int rows, const std::string& more = "") {
  return redistribute("u8", fmt::format("[{}, 1000]", rows), "S(0)", "R", "m", more);
}

// p2p, but of requests with 12 rows the last step is missing.
Plan plan_wrongly(const Demand& demand, const PlannerInput& input) {
  Plan plan = plan_p2p(demand, input);
  if (demand.requests().front().shape()[0] == 12) plan.steps.pop_back();
  return plan;
}
constexpr PlannerRow kWrong{.name = "wrong", .purpose = "", .make = plan_wrongly};

}  // namespace

TEST_CASE("No line's plan goes unproved") {
  auto topology = std::make_shared<const Topology>(test::star(4));
  auto refuses = [&](std::vector<int> rows) {
    std::vector<std::string> lines;
    for (int count : rows) lines.push_back(gather(count));
    Trace trace = trace_of(kHalves, lines);
    for (std::int64_t capacity : {0, 1, 4}) {
      Studies studies(topology, kWrong, {.cache_capacity = capacity});
      CHECK_THROWS_WITH(replay(trace, studies, {}),
                        Catch::Contains("destination") && Catch::Contains("u8[12,1000]"));
    }
  };
  refuses({12});
  refuses({12, 4, 8});
  refuses({4, 12, 8, 4});
  refuses({4, 8, 12});
  refuses({4, 8, 12, 12, 8});
  Studies studies(topology, kWrong, {});
  CHECK_NOTHROW(replay(trace_of(kHalves, {gather(4), gather(8)}), studies, {}));
}

// On so many ranks a plan is proved while others are made and timed.
TEST_CASE("No line's plan goes unproved on many ranks") {
  auto topology = std::make_shared<const Topology>(test::star(512));
  auto by = [&](std::vector<int> rows, ReplayOptions options) {
    std::vector<std::string> lines;
    for (int count : rows)
      lines.push_back(redistribute("u8", fmt::format("[{}, 4]", count), "S(0)R", "RR", "m"));
    Trace trace = trace_of(R"({"reshard_trace": 1, "meshes": {"m": "2x256"}})", lines);
    Studies studies(topology, kWrong, {.cache_capacity = 4});
    return replay(trace, studies, options);
  };
  for (bool moves : {false, true})
    for (std::vector<int> rows : {std::vector{12}, {12, 4, 8}, {4, 8, 6, 12}, {4, 12, 8, 12, 6, 2}})
      CHECK_THROWS_WITH(by(rows, {.move_bytes = moves}),
                        Catch::Contains("destination") && Catch::Contains("u8[12,4]"));
  CHECK(by({4, 8, 6, 2}, {}).time_ps > 0);
}

TEST_CASE("A send waits for its recv, a stream for its turn, and an operation for its after") {
  Topology topology = test::star(4);
  Trace trace = trace_of(
      kHalves,
      {
          R"({"op": "compute", "id": "c", "ranks": "1", "duration_ps": 500})",
          R"({"op": "send", "id": "m", "rank": 0, "peer": 1, "bytes": 100000})",
          R"({"op": "compute", "name": "behind", "ranks": "0", "duration_ps": 300})",
          R"({"op": "compute", "name": "beside", "ranks": "0", "duration_ps": 300, "stream": 1})",
          R"({"op": "recv", "rank": 1, "peer": 0, "bytes": 100000})",
          R"({"op": "compute", "name": "last", "ranks": "2", "duration_ps": 40, "after": ["m"]})",
      });
  ReplayReport report = Rig(topology).replay(trace);
  // The message starts when rank 1 has computed.
  constexpr std::int64_t kArrived = 500 + kLatency + 100'000 * kByte;
  REQUIRE(report.others.size() == 5);
  CHECK(report.others[0].end_ps == 500);
  CHECK(report.others[1].op == "message");
  CHECK(report.others[1].text == "message from rank 0 to rank 1");
  CHECK(report.others[1].start_ps == 0);  // the sender is there
  CHECK(report.others[1].end_ps == kArrived);
  CHECK(report.others[1].bound_ps == kLatency + 100'000 * kByte);
  CHECK(report.others[2].start_ps == kArrived);
  CHECK(report.others[3].start_ps == 0);
  CHECK(report.others[4].start_ps == kArrived);
  CHECK(report.time_ps == kArrived + 300);
  CHECK(report.path_bound_ps == report.time_ps);
  CHECK(report.cut_bound_ps == kLatency + 100'000 * kByte);
  CHECK(report.operations == 6);
  CHECK(report.labels ==
        std::vector<std::string>{"c", "m", "behind", "beside", "recv (line 6)", "last"});
  CHECK(report.bytes_received_total == 100'000);
}

TEST_CASE("recvs keep their own line's place in their stream, before and behind other lines") {
  Topology topology = test::star(4);
  // Rank 1 receives the short message, computes, receives the long one; its sends stand in the
  // other order.
  Trace trace =
      trace_of(kHalves, {
                            R"({"op": "recv", "rank": 1, "peer": 0, "bytes": 10, "tag": 2})",
                            R"({"op": "compute", "ranks": "1", "duration_ps": 77})",
                            R"({"op": "recv", "rank": 1, "peer": 2, "bytes": 1000, "tag": 1})",
                            R"({"op": "send", "rank": 2, "peer": 1, "bytes": 1000, "tag": 1})",
                            R"({"op": "send", "rank": 0, "peer": 1, "bytes": 10, "tag": 2})",
                        });
  ReplayReport report = Rig(topology).replay(trace);
  CHECK(report.time_ps == (kLatency + 10 * kByte) + 77 + (kLatency + 1000 * kByte));
  CHECK(report.bound_ps == report.time_ps);
}

TEST_CASE("Bare collectives run as their expansion and have a bound from their meaning") {
  Topology topology = test::star(4);
  Trace trace = trace_of(
      kHalves, {R"({"op": "collective", "kind": "all_gather", "ranks": "0-3", "bytes": 100000})"});
  ReplayReport report = Rig(topology).replay(trace);
  // Ring: three rounds of one block. Each rank must receive three blocks through its port, whatever
  // the algorithm.
  CHECK(report.time_ps == 3 * (kLatency + 100'000 * kByte));
  CHECK(report.cut_bound_ps == kLatency + 3 * 100'000 * kByte);
  CHECK(report.path_bound_ps == kLatency + 3 * 100'000 * kByte);
  CHECK(report.bytes_received_total == 4 * 3 * 100'000);

  trace = trace_of(
      kHalves, {R"({"op": "collective", "kind": "all_gather", "ranks": "0-3", "bytes": 100000, )"
                R"("algorithm": "direct"})"});
  CHECK(Rig(topology).replay(trace).time_ps == kLatency + 3 * 100'000 * kByte + kFloor);
}

TEST_CASE("An operation may name what carries it, the report sets the time of links alone beside") {
  Topology topology = test::star(4);
  auto replayed = [&](const std::string& first, const std::string& second) {
    auto line = [](const std::string& transport) {
      std::string text =
          R"({"op": "collective", "kind": "all_reduce", "ranks": "0-3", "bytes": 8000)";
      return text + (transport.empty() ? "}" : ", \"transport\": \"" + transport + "\"}");
    };
    return Rig(topology).replay(trace_of(kHalves, {line(first), line(second)}));
  };
  std::int64_t ideal = replayed("", "").time_ps / 2, nccl = replayed("nccl", "nccl").time_ps / 2;
  CHECK(ideal == 6 * (kLatency + 2000 * kByte));
  CHECK(nccl > ideal);
  ReplayReport mixed = replayed("nccl", "");
  CHECK(mixed.time_ps == nccl + ideal);
  CHECK(mixed.ideal_time_ps == 2 * ideal);
  CHECK(mixed.transport == "several");
  CHECK(replayed("nccl", "nccl").transport == "nccl");
  CHECK(mixed.others[0].transport == "nccl");
  CHECK(mixed.others[1].transport == "ideal");
  CHECK(replayed("ideal", "").ideal_time_ps == 2 * ideal);
  // The same request by two transports is planned for each, and its bytes are moved for each.
  std::string request = redistribute("f32", "[64, 64]", "S(0)", "S(1)", "a");
  std::string by_nccl =
      redistribute("f32", "[64, 64]", "S(0)", "S(1)", "a", R"(, "transport": "nccl")");
  ReplayReport two = Rig(topology).replay(
      trace_of(R"({"reshard_trace": 1, "meshes": {"a": "4"}})", {request, by_nccl, by_nccl}));
  CHECK(two.different_requests == 2);
  CHECK(two.cache->misses == 2);
  CHECK(two.requests[1].transport == "nccl");
}

TEST_CASE("Switches that reduce lower the bound of a transport that uses them, and of no other") {
  Topology topology = find_topology("dgx-h100:1");
  auto line = [](const char* transport) {
    return redistribute("f32", "[64, 4096]", "P(sum)", "R", "a",
                        std::string(R"(, "transport": ")") + transport + "\"");
  };
  ReplayReport report = Rig(topology).replay(
      trace_of(R"({"reshard_trace": 1, "meshes": {"a": "8"}})", {line("ideal"), line("nccl")}));
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("8"));
  Request request(parse_layout("64,4096", "f32", mesh, "P(sum)"),
                  parse_layout("64,4096", "f32", mesh, "R"));
  std::int64_t links = bound_of(request, topology, Switches::Forward).time_ps(),
               switches = bound_of(request, topology, Switches::Reduce).time_ps();
  CHECK(switches < links);
  REQUIRE(report.requests.size() == 2);
  CHECK(report.requests[0].bound_ps == links);
  CHECK(report.requests[1].bound_ps == switches);
  Studies studies(std::make_shared<const Topology>(topology), find_planner("p2p"));
  CHECK(studies.of(request, TransportKind::Ideal)->bound().time_ps() == links);
  CHECK(studies.of(request, TransportKind::Nccl)->bound().time_ps() == switches);
}

TEST_CASE("Every kind of collective stays above its bound on every group") {
  Topology topology = test::star(5);
  for (const char* kind : {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"})
    for (const char* ranks : {"0", "0-1", "4,2,0", "0-4"})
      for (const char* algorithm : {"ring", "direct"}) {
        Trace trace = trace_of(
            kHalves, {std::string(R"({"op": "collective", "kind": ")") + kind + R"(", "ranks": ")" +
                      ranks + R"(", "bytes": 9001, "algorithm": ")" + algorithm + "\"}"});
        ReplayReport report = Rig(topology).replay(trace);
        INFO(kind << " " << ranks << " " << algorithm);
        CHECK(report.bound_ps <= report.time_ps);
        CHECK((report.bound_ps > 0) == (std::string(ranks) != "0"));
      }
}

TEST_CASE(
    "Redistributions on one stream follow each other, each different one is planned, proved and "
    "moved once") {
  Topology topology = test::star(4);
  Rig rig(topology, "p2p");
  Trace trace = trace_of(kHalves, {gather(400, R"(, "name": "a")"), gather(400, R"(, "name": "b")"),
                                   gather(800, R"(, "id": "c")"), gather(400)});
  ReplayReport report = rig.replay(trace);
  // Each rank receives three quarters of the tensor through its port.
  constexpr std::int64_t kSmall = kLatency + 300'000 * kByte + kFloor,
                         kLarge = kLatency + 600'000 * kByte + kFloor;
  CHECK(report.time_ps == 3 * kSmall + kLarge);
  // No rank can do with less than its bytes, and one latency: the path and the summed cut agree.
  CHECK(report.path_bound_ps == kLatency + (3 * 300'000 + 600'000) * kByte);
  CHECK(report.cut_bound_ps == report.path_bound_ps);
  REQUIRE(report.requests.size() == 4);
  CHECK(report.requests[0].name == "a");
  CHECK(report.requests[1].line == 3);
  CHECK(report.requests[1].start_ps == kSmall);
  CHECK(report.requests[1].end_ps == 2 * kSmall);
  CHECK(report.requests[1].bytes_received == 4 * 300'000);
  CHECK(report.requests[1].bound_ps == kLatency + 300'000 * kByte);
  CHECK(report.requests[1].planner == "p2p");
  CHECK(report.requests[2].text == "u8[800,1000] S(0) on 4 -> R");
  CHECK(report.labels == std::vector<std::string>{"a", "b", "c", "redistribute (line 5)"});
  CHECK(report.different_requests == 2);
  CHECK(report.data_checked == 2);
  CHECK(report.data_full_size == 2);
  CHECK(report.elements_checked == 4 * 400'000 + 4 * 800'000);
  REQUIRE(report.cache);
  CHECK(report.cache->hits == 2);
  CHECK(report.cache->misses == 2);
  CHECK(report.bytes_received_total == 4 * (3 * 300'000 + 600'000));
  // The bytes of one link: port out and in carry the same here.
  REQUIRE(report.links.size() == 8);
  CHECK(report.links[0].name == "node0.gpu0.port.out");
  CHECK(report.links[0].bytes == 1'500'000);
  CHECK(report.links[0].busy_ps == report.time_ps - 4 * kLatency);
  CHECK(utilisation(report.links[0], report.time_ps, 1'000'000) ==
        (std::int64_t{15'000'000} * 1'000'000 + report.time_ps / 2) / report.time_ps);
  REQUIRE(report.classes.size() == 1);
  CHECK(report.classes[0].transport == Transport::NVLink);
  CHECK(report.classes[0].bytes == report.bytes_received_total);
  CHECK(report.classes[0].flows == 4 * 12);
}

TEST_CASE("Operations of different ranks overlap, and the bound knows it") {
  Topology topology = test::star(4);
  std::string low = redistribute("u8", "[100000]", "S(0)", "R", "low");
  std::string high = redistribute("u8", "[100000]", "S(0)", "R", "high");
  ReplayReport report = Rig(topology, "p2p").replay(trace_of(kHalves, {low, high}));
  CHECK(report.time_ps == kLatency + 50'000 * kByte);
  CHECK(report.bound_ps == report.time_ps);
}

TEST_CASE(
    "Where a rank is done early, its next operation starts early and the bound does not forbid "
    "it") {
  Topology topology = test::star(4);
  // First all bytes go from ranks 0,1 to 2,3 and nothing comes back; ranks 0 and 1 are senders of
  // one, receivers of none.
  std::string across =
      redistribute("u8", "[200000]", "S(0)", "S(0)", "low", ", \"to_mesh\": \"high\"");
  std::string nothing = redistribute("u8", "[4]", "S(0)", "S(0)", "m");
  std::string compute = R"({"op": "compute", "ranks": "0-3", "duration_ps": 11})";
  ReplayReport report = Rig(topology, "p2p").replay(trace_of(kHalves, {nothing, across, compute}));
  CHECK(report.time_ps == kLatency + 100'000 * kByte + 11);
  CHECK(report.bound_ps <= report.time_ps);
  CHECK(report.bound_ps >= kLatency + 11);
  // From the source's buffer to the destination's takes no time.
  CHECK(report.requests[0].start_ps == 0);
  CHECK(report.requests[0].end_ps == 0);
  CHECK(report.requests[0].bytes_received == 0);
}

TEST_CASE(
    "The data budget is shared by the different requests, and what does not fit is moved smaller") {
  Topology topology = test::star(4);
  Rig rig(topology, "p2p");
  Trace trace = trace_of(kHalves, {gather(400), gather(800), gather(1600), gather(400)});
  ReplayReport full = rig.replay(trace);
  CHECK(full.data_budget_bytes == (std::int64_t{2} << 30) / 3);
  CHECK(full.data_full_size == 3);
  // gather(r) keeps r * 1000 source bytes and four times as many destination bytes: 2 MB for 400
  // rows.
  Rig small(topology, "p2p");
  ReplayReport shrunk = small.replay(trace, 3 * 2'000'000);
  CHECK(shrunk.data_budget_bytes == 2'000'000);
  CHECK(shrunk.data_checked == 3);
  CHECK(shrunk.data_full_size == 1);
  CHECK(shrunk.elements_checked == 3 * 4 * 400'000);
  CHECK(shrunk.time_ps == full.time_ps);
  CHECK_FALSE(shrunk.digest == full.digest);
}

TEST_CASE("The digest tells timelines and data apart and nothing else") {
  Topology topology = test::star(4);
  auto digest = [&](const std::string& line, const char* planner = "p2p",
                    std::int64_t capacity = 100) {
    Rig rig(topology, planner, capacity);
    return rig.replay(trace_of(kHalves, {line, line})).digest.hex();
  };
  std::string base = digest(gather(400));
  CHECK(digest(gather(400)) == base);
  CHECK(digest(gather(400, R"(, "name": "x", "stream": 3)")) == base);
  CHECK(digest(gather(400), "p2p", 0) == base);  // without a cache
  CHECK(digest(gather(401)) != base);
  CHECK(digest(gather(400), "rule") != base);  // a ring in rounds
  // The same time, other bytes.
  std::string moved = redistribute("u8", "[1000, 400]", "S(0)", "R", "m");
  CHECK(digest(moved) == base);  // dense rows in the same order hold the same bytes
  std::string typed = redistribute("i16", "[400, 500]", "S(0)", "R", "m");
  CHECK(digest(typed) != base);
}

TEST_CASE("Unless bytes are to be moved nothing is moved and the report says so") {
  Topology topology = test::star(4);
  Rig rig(topology, "p2p");
  rig.options.move_bytes = false;
  ReplayReport report = rig.replay(trace_of(kHalves, {gather(400)}));
  CHECK(report.different_requests == 1);
  CHECK(report.data_checked == 0);
  CHECK(report.elements_checked == 0);
  CHECK(report.data_budget_bytes == 0);
}

TEST_CASE("What a planner refuses is placed in its line") {
  Topology topology = test::star(4);
  Rig rig(topology, "rule");
  std::string across = redistribute("u8", "[8]", "S(0)", "S(0)", "low", ", \"to_mesh\": \"high\"");
  CHECK_THROWS_AS(rig.replay(trace_of(kHalves, {gather(400), across})), InputError);
  CHECK_THROWS_WITH(rig.replay(trace_of(kHalves, {gather(400), across})),
                    Catch::StartsWith("t.jsonl:3: "));
}

TEST_CASE("Progress is told stage by stage and ends where it says") {
  Topology topology = test::star(4);
  Rig rig(topology, "p2p");
  std::vector<std::string> stages;
  bool in_range = true;
  rig.options.progress = [&](std::string_view stage, std::int64_t done, std::int64_t total) {
    if (stages.empty() || stages.back() != stage) stages.emplace_back(stage);
    in_range = in_range && done >= 0 && done <= total;
  };
  rig.replay(trace_of(kHalves, {gather(400), gather(800)}));
  CHECK(stages == std::vector<std::string>{"planning", "moving data", "timing"});
  CHECK(in_range);
}

TEST_CASE("A trace without operations takes no time") {
  Topology topology = test::star(4);
  ReplayReport report = Rig(topology).replay(trace_of(kHalves, {}));
  CHECK(report.time_ps == 0);
  CHECK(report.bound_ps == 0);
  CHECK(report.links.empty());
  CHECK(report.requests.empty());
}

TEST_CASE("a reduce_scatter's ranks need only their own part, and send all others") {
  // In by a quarter of the rate out: 1,000 bytes take 4 us, the 2,000 that leave take 2.
  NodeTemplate node = test::star(3).node();
  node.ports = {{"port", 1'000'000'000, 250'000'000}};
  node.rules[0].latency_ps = 0;
  Topology topology("star", node, {}, 1);
  std::vector<Rank> ranks{Rank{0}, Rank{1}, Rank{2}};
  OperationBounds bounds(topology);
  Operation scatter{
      BareCollective{CollectiveKind::ReduceScatter, Algorithm::Ring, ranks, 1'000}, 0, {}};
  CHECK(bounds.of(scatter, Switches::Reduce)->time_ps == 4'000'000);
  // All to all of 16 in two nodes: what enters a node takes longer than what enters a rank.
  Topology two = find_topology("dgx-h100:2");
  ReplayReport report = test::Rig(two).replay(trace_of(
      R"({"reshard_trace": 1})",
      {R"({"op": "collective", "kind": "all_to_all", "ranks": "0-15", "bytes": 1000000})"}));
  // 64 MB by eight ways of 50 GB/s.
  CHECK(report.path_bound_ps >= 160'000'000);
  CHECK(report.path_bound_ps == report.bound_ps);
}
