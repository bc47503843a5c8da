// SPDX-License-Identifier: BSD-3-Clause
// A Perfetto file is read back and checked against its importer's rules: slices of a thread never
// overlap, every begin has its end, counters return to 0, and the area under a counter is what its
// link carried.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "sim/report/writers/perfetto.h"
#include "sim/study/link_rates.h"
#include "sim/study/run_facts.h"
#include "sim/study/studies.h"
#include "tests/core/planners/planner_cases.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::kUs;

namespace {

// Four devices with a port of 1 GB/s each way and 1 us of latency.
Topology star() {
  NodeTemplate node;
  node.devices = 4;
  node.ports = {{"port", 1'000'000'000, 1'000'000'000}};
  RouteRule rule;
  rule.hops = {{Hop::Kind::SourceOut, 0}, {Hop::Kind::DestinationIn, 0}};
  rule.latency_ps = 1'000'000;
  rule.transport = Transport::NVLink;
  node.rules = {rule};
  node.rule_within = {0};
  return Topology("star", node, {}, 1);
}

// Two compute operations that overlap on rank 0, and two messages out of it: the first alone, the
// second overlapping it.
struct Scene {
  Workload workload;
  std::vector<std::string> labels;
  Timeline timeline;
};

Scene scene() {
  Scene out;
  for (int i = 0; i < 2; ++i)
    out.workload.operations.push_back({Compute{{Rank{0}}, 5 * kUs}, i, {}});
  for (int i = 1; i <= 2; ++i)
    out.workload.operations.push_back({PointToPoint{Rank{0}, Rank{i}, 1000}, 0, {}});
  out.labels = {"forward \"1\"", "forward 2", "send 1", "send 2"};
  out.timeline.end_ps = 9 * kUs + 1234;
  out.timeline.spans = {{OpId{0}, -1, Rank{0}, 0, 5 * kUs},
                        {OpId{1}, -1, Rank{0}, 2 * kUs, 7 * kUs},
                        {OpId{2}, -1, Rank{0}, 5 * kUs, 7 * kUs},
                        {OpId{3}, -1, Rank{0}, 6 * kUs, 9 * kUs + 1234}};
  out.timeline.flows = {{OpId{2}, -1, Rank{0}, Rank{1}, 1000, 5 * kUs, 7 * kUs},
                        {OpId{3}, -1, Rank{0}, Rank{2}, 1000, 6 * kUs, 9 * kUs + 1234}};
  return out;
}

std::string file_of(const Scene& scene, const Topology& topology) {
  std::ostringstream out;
  write_perfetto(out, scene.workload, scene.labels, scene.timeline, topology);
  return out.str();
}

// By link the counter's {picoseconds, GB/s}, read back from decimals.
using Counters = std::map<std::string, std::vector<std::pair<std::int64_t, double>>>;
Counters counters_of(const std::string& file) {
  Counters out;
  nlohmann::json read = nlohmann::json::parse(file);
  for (const auto& event : read["traceEvents"])
    if (event["ph"] == "C")
      out[event["name"]].push_back(
          {std::llround(event["ts"].get<double>() * 1e6), event["args"]["GB/s"]});
  return out;
}

// Bytes under each counter.
std::map<std::string, double> areas_of(const Counters& counters) {
  std::map<std::string, double> out;
  for (const auto& [name, points] : counters)
    for (std::size_t i = 1; i < points.size(); ++i)
      out[name] +=
          points[i - 1].second * static_cast<double>(points[i].first - points[i - 1].first) / 1000;
  return out;
}

}  // namespace

TEST_CASE("microseconds are printed from integers") {
  CHECK(microseconds_text(0) == "0.000");
  CHECK(microseconds_text(1'234'999) == "1.234");
  CHECK(microseconds_text(9'007'199'254'740'993'000) == "9007199254740.993");
}

TEST_CASE("slices of a thread do not overlap, and every kind of track is there") {
  Topology topology = star();
  nlohmann::json file = nlohmann::json::parse(file_of(scene(), topology));
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;
  std::set<std::string> names;
  for (const auto& event : file["traceEvents"]) {
    if (event["ph"] != "X") continue;
    names.insert(event["name"]);
    double start = event["ts"];
    slices[{event["pid"], event["tid"]}].push_back({start, start + event["dur"].get<double>()});
  }
  CHECK(names ==
        std::set<std::string>{"forward \"1\"", "forward 2", "send 1", "send 2", "send", "recv"});
  CHECK(slices.size() == 6);  // rank 0: three lanes of steps and "send"; ranks 1 and 2: "recv"
  for (auto& [thread, list] : slices) {
    std::sort(list.begin(), list.end());
    for (std::size_t i = 1; i < list.size(); ++i) CHECK(list[i - 1].second <= list[i].first + 1e-9);
  }
}

TEST_CASE("flows begin and end, arrows start and finish") {
  Topology topology = star();
  nlohmann::json file = nlohmann::json::parse(file_of(scene(), topology));
  std::map<std::string, int> count;
  for (const auto& event : file["traceEvents"]) ++count[event["ph"]];
  CHECK((count["b"] == 2 && count["e"] == 2 && count["s"] == 2 && count["f"] == 2));
  CHECK(count["C"] == 0);
}

TEST_CASE("a counter changes when its link's rate does, to the picosecond") {
  // 0 sends 1000 bytes to 1 and 1001 to 2 after 1 us of latency: half the port each to 3 us, then
  // one byte at the full rate.
  Topology topology = star();
  Workload workload;
  for (int i = 1; i <= 2; ++i)
    workload.operations.push_back({PointToPoint{Rank{0}, Rank{i}, 999 + i}, i, {}});
  LinkRates rates(topology.resource_count());
  Timeline timeline = run(workload, topology, {.record_flows = true, .observer = &rates});
  std::ostringstream out;
  timeline.work = rates.take();
  write_perfetto(out, workload, {}, timeline, topology);
  using Points = std::vector<std::pair<std::int64_t, double>>;
  CHECK(
      counters_of(out.str()) ==
      Counters{{"node0.gpu0.port.out", Points{{kUs, 1.0}, {3 * kUs + 1000, 0.0}}},
               {"node0.gpu1.port.in", Points{{kUs, 0.5}, {3 * kUs, 0.0}}},
               {"node0.gpu2.port.in", Points{{kUs, 0.5}, {3 * kUs, 1.0}, {3 * kUs + 1000, 0.0}}}});
  CHECK(out.str().find(R"("ts": 3.001000, "args": {"GB/s": 0}})") != std::string::npos);
}

TEST_CASE("the area under every counter is its link's bytes, by either transport") {
  auto topology = std::make_shared<const Topology>(find_topology("dgx-h100:2"));
  for (TransportKind transport : {TransportKind::Ideal, TransportKind::Nccl})
    for (const char* planner : {"rule", "p2p"}) {
      CAPTURE(text(transport), planner);
      StudyOptions options;
      options.transport.kind = transport;
      Studies studies(topology, find_planner(planner), options);
      auto study = studies.of(request_on("4x4", "320,331,13", "S(0)S(1)", "RS(0)"));
      std::ostringstream out;
      write_perfetto(out, *study);
      Counters counters = counters_of(out.str());
      std::map<std::string, double> areas = areas_of(counters);
      std::size_t used = 0;
      for (std::size_t id = 0; id < study->timeline().resources.size(); ++id) {
        std::int64_t bytes = study->timeline().resources[id].bytes;
        if (bytes == 0) continue;
        ++used;
        std::string name = topology->resource_name(id_of<ResourceId>(id));
        CAPTURE(name);
        CHECK(std::llround(areas[name]) == bytes);
        REQUIRE_FALSE(counters[name].empty());
        CHECK(counters[name].back().second == 0.0);
        CHECK(counters[name].size() <= LinkRates::kMostKnots);
      }
      CHECK((used > 16 && counters.size() == used));
    }
}

TEST_CASE("a large run is drawn within limits, and loses no bytes") {
  Topology topology = star();
  Scene large;
  large.workload.operations.push_back({PointToPoint{Rank{0}, Rank{1}, 1}, 0, {}});
  // One flow more than are drawn, each 1 us after the one before.
  auto count = static_cast<std::int64_t>(kMaxFlowsDrawn) + 1;
  for (std::int64_t i = 0; i < count; ++i)
    large.timeline.flows.push_back(
        {OpId{0}, -1, Rank{0}, Rank{1}, 3, 2 * i * kUs, 2 * i * kUs + kUs});
  large.timeline.end_ps = 2 * count * kUs;
  // 1 kB in each of many cells, more and more slowly.
  std::vector<WorkDone> knots{{0, 0}};
  for (std::size_t i = 1; i <= kMaxRatesDrawn; ++i)
    knots.push_back({knots.back().time_ps + static_cast<std::int64_t>(1000 + i),
                     knots.back().work + Int128{1000} * 1'000'000'000'000});
  large.timeline.work.resize(to_index(topology.resource_count()));
  large.timeline.work[0] = large.timeline.work[3] = knots;

  std::string text = file_of(large, topology);
  nlohmann::json file = nlohmann::json::parse(text);
  CHECK(file["metadata"]["flows"] == count);
  CHECK(file["metadata"]["flows_drawn"] == 0);
  std::map<std::string, std::int64_t> bytes, slices;
  for (const auto& event : file["traceEvents"])
    if (event["ph"] == "X") {
      bytes[event["name"]] += event["args"]["bytes"].get<std::int64_t>();
      ++slices[event["name"]];
    }
  for (const char* way : {"send", "recv"}) {
    CHECK(bytes[way] == 3 * count);
    // Two ranks in two directions share the limit: every other gap is closed, and more.
    CHECK((slices[way] > 0 && slices[way] <= static_cast<std::int64_t>(kMaxStretchesDrawn) / 4));
  }
  Counters counters = counters_of(text);
  CHECK(counters.size() == 2);
  for (const auto& [link, area] : areas_of(counters)) {
    CHECK(std::llround(area) == 1000 * static_cast<std::int64_t>(kMaxRatesDrawn));
    CHECK(counters[link].size() <= kMaxRatesDrawn / 2 + 2);
    CHECK(counters[link].size() > kMaxRatesDrawn / 4);
  }
}

TEST_CASE("the metadata comes first, as readers of many files expect it") {
  Topology topology = star();
  std::string file = file_of(scene(), topology);
  CHECK(file.rfind("{\"distributedInfo\": {\"backend\": \"reshard\", \"rank\": 0, ", 0) == 0);
  CHECK(file == file_of(scene(), topology));
}

TEST_CASE("a measured run is drawn below each rank's prediction, in processes of its own") {
  Topology topology = star();
  Scene predicted = scene();
  Timeline run;
  run.end_ps = 21 * kUs;
  run.spans = {{OpId{0}, -1, Rank{0}, 0, 6 * kUs},
               {OpId{1}, -1, Rank{0}, 5 * kUs, 20 * kUs},
               {OpId{2}, -1, Rank{1}, kUs, 21 * kUs}};
  MeasuredRun measured{"mpi", run};
  std::ostringstream out;
  write_perfetto(out, predicted.workload, predicted.labels, predicted.timeline, topology,
                 &measured);
  nlohmann::json file = nlohmann::json::parse(out.str());
  CHECK((file["metadata"]["measured_by"] == "mpi" &&
         file["metadata"]["measured_end_ps"] == 21 * kUs));
  std::map<std::string, int> pid_of, place_of;
  for (const auto& event : file["traceEvents"])
    if (event["ph"] == "M" && event["name"] == "process_name")
      pid_of[event["args"]["name"]] = event["pid"];
  for (const auto& event : file["traceEvents"])
    for (const auto& [name, pid] : pid_of)
      if (event["ph"] == "M" && event["name"] == "process_sort_index" && event["pid"] == pid)
        place_of[name] = event["args"]["sort_index"];
  CHECK(place_of["measured rank 0"] == place_of["rank 0 (node0 gpu0)"] + 1);
  CHECK(place_of["rank 1 (node0 gpu1)"] == place_of["measured rank 0"] + 1);
  std::set<int> lanes;
  int slices = 0;
  for (const auto& event : file["traceEvents"]) {
    if (event["ph"] != "X" || event["pid"] != pid_of["measured rank 0"]) continue;
    lanes.insert(event["tid"].get<int>());
    ++slices;
  }
  CHECK((slices == 2 && lanes.size() == 2));  // they overlap
  // What is predicted is drawn as without a measurement.
  nlohmann::json alone = nlohmann::json::parse(file_of(predicted, topology));
  for (std::size_t i = 0; i < alone["traceEvents"].size(); ++i)
    CHECK(file["traceEvents"][i] == alone["traceEvents"][i]);
}

TEST_CASE("links are ordered by the time that their bytes need") {
  Topology topology = star();
  Timeline timeline = scene().timeline;
  timeline.resources.resize(static_cast<std::size_t>(topology.resource_count()));
  timeline.resources[3] = {1000, 2 * kUs};
  timeline.resources[0] = {2000, 4 * kUs};
  timeline.resources[5] = {1000, kUs};
  timeline.routes = {{2000, 2}};
  std::vector<LinkUse> links = busiest_links(timeline, topology, 2);
  REQUIRE(links.size() == 2);
  CHECK((links[0].name == "node0.gpu0.port.out" && links[0].bytes == 2000 &&
         links[0].busy_ps == 4 * kUs));
  CHECK(links[1].name == topology.resource_name(ResourceId{3}));
  CHECK(utilisation(links[0], 4 * kUs, 10'000) ==
        5000);  // 2000 B of the 4000 that 4 us at 1 GB/s carry
  std::vector<ClassUse> classes = use_by_class(timeline, topology);
  REQUIRE(classes.size() == 1);
  CHECK((classes[0].transport == Transport::NVLink && classes[0].bytes == 2000));
}
