// SPDX-License-Identifier: BSD-3-Clause
// Lines with several tensors: what the report says of each line and of all their tensors by kind.
// The machine is a star of 1 GB/s and 1 us, with links alone.
#include <catch2/catch.hpp>

#include <sstream>

#include "sim/machines/presets.h"
#include "sim/page/pages.h"
#include "sim/report/writers/replay_writer.h"
#include "tests/sim/network/networks.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::kUs;
using reshard::test::Rig;
using reshard::test::trace_of;

namespace {

const std::string kSingleRanksHeader =
    R"({"reshard_trace": 1, "meshes": {"0": {"mesh": "1", "ranks": [0]}, "1": {"mesh": "1", )"
    R"("ranks": [1]}, "2": {"mesh": "1", "ranks": [2]}, "3": {"mesh": "1", "ranks": [3]}}})";

std::string tensor(const std::string& name, int elements, int from, int to) {
  return R"({"name": ")" + name + R"(", "shape": [)" + std::to_string(elements) +
         R"(], "dtype": "f32", "from": "R", "to": "R", "mesh": ")" + std::to_string(from) +
         R"(", "to_mesh": ")" + std::to_string(to) + "\"}";
}

// The weight of a layer from `from` to rank 2, its bias to rank 3.
std::string layer(const std::string& number, int from, const std::string& more) {
  return R"({"op": "redistribute", "requests": [)" +
         tensor("layers." + number + ".w", 1000, from, 2) + ", " +
         tensor("layers." + number + ".b", 250, from, 3) + "]" + more + "}";
}

ReplayReport replayed_jobs(const std::vector<std::string>& lines) {
  return Rig(test::switched(4, 1'000'000'000, kUs)).replay(trace_of(kSingleRanksHeader, lines));
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

}  // namespace

TEST_CASE("stages in turn: each line by hand, and the kinds of tensors of both") {
  // Half of the port for each, 1000 bytes to 3 us, then the rest of the weight at all of it: 6 us.
  ReplayReport report =
      replayed_jobs({layer("0", 0, R"(, "id": "stage 0")"),
                     layer("1", 1, R"(, "id": "stage 1", "after": ["stage 0"])")});
  REQUIRE(report.time_ps == 12 * kUs);
  REQUIRE(report.requests.size() == 2);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const ReplayRow& row = report.requests[stage];
    CHECK(row.tensors == 2);
    CHECK(row.bytes_received == 5000);
    CHECK(row.start_ps == static_cast<std::int64_t>(stage) * 6 * kUs);
    CHECK(row.end_ps == static_cast<std::int64_t>(stage + 1) * 6 * kUs);
    CHECK(row.bound_ps == 6 * kUs);
  }
  CHECK(report.requests[0].text == "2 tensors of 2 kinds, 4.883 KiB, ranks 0 -> 2-3");
  CHECK(report.peak_bytes_max == 5000);  // the source

  REQUIRE(report.job);
  REQUIRE(report.job->kinds.size() == 2);
  const GroupFacts &weights = report.job->kinds[0], &biases = report.job->kinds[1];
  CHECK(weights.name == "layers.*.w");
  CHECK(weights.tensors == std::vector<std::size_t>{0, 2});
  CHECK(weights.use == TensorUse{8000, 0, 12 * kUs});
  CHECK(weights.bound.time_ps() == 9 * kUs);  // into rank 2
  CHECK(biases.name == "layers.*.b");
  CHECK(biases.use == TensorUse{2000, 0, 9 * kUs});
  CHECK(biases.bound.time_ps() == 3 * kUs);
  REQUIRE(report.job->full);
  CHECK(report.job->full->fullest.name == "node0.gpu2.port.in");
}

TEST_CASE("a message's first byte waits for both of its ranks") {
  // The bias has the port of rank 0 to itself, until rank 2 has done something else.
  ReplayReport report = replayed_jobs(
      {R"({"op": "compute", "ranks": "2", "duration_ps": 5000000})", layer("0", 0, "")});
  CHECK(report.time_ps == 10 * kUs);
  REQUIRE(report.job);
  CHECK(report.job->kinds[0].use == TensorUse{4000, 5 * kUs, 10 * kUs});
  CHECK(report.job->kinds[1].use == TensorUse{1000, 0, 2 * kUs});
}

TEST_CASE("equal jobs share a plan and keep their own names") {
  ReplayReport report = replayed_jobs({layer("first", 0, ""), layer("second", 0, "")});
  CHECK(report.different_requests == 1);
  REQUIRE(report.job);
  REQUIRE(report.job->kinds.size() == 4);
  CHECK(report.job->kinds[0].name == "layers.first.w");
  CHECK(report.job->kinds[1].name == "layers.second.w");
  CHECK(*report.job->kinds[0].use.last_ps < *report.job->kinds[1].use.last_ps);
}

TEST_CASE("a trace without jobs has no kinds of tensors") {
  ReplayReport report = replayed_jobs({R"({"op": "redistribute", "shape": [8], "dtype": "f32", )"
                                       R"("from": "R", "to": "R", "mesh": "0", "to_mesh": "1"})"});
  CHECK_FALSE(report.job);
  CHECK(report.requests[0].tensors == 1);
  CHECK(replay_json(report).find("\"kinds\"") == std::string::npos);
  CHECK(replay_table(report, false).find("job") == std::string::npos);
}

TEST_CASE("shipped jobs of hundreds of tensors: at most 80 columns, pages below 2 MB") {
  for (const char* name : {"llama3-70b-rl-sync", "qwen3-235b-rl-sync"}) {
    CAPTURE(name);
    Trace trace = read_trace(std::string("traces/") + name + ".jsonl");
    Topology topology = find_topology(trace.topology);
    Rig rig(topology, "packed");
    rig.options.move_bytes = false;
    rig.options.critical_path = rig.options.work = true;
    ReplayReport report = rig.replay(trace);
    REQUIRE(report.job);
    for (bool verbose : {false, true}) CHECK(widest_line(replay_table(report, verbose)) <= 80);
    std::string json = replay_json(report);
    CHECK(json.size() < 200'000);
    for (const std::string& text :
         {replay_table(report, true), json, replay_page(report, topology)})
      for (const GroupFacts& kind : report.job->kinds)
        CHECK(text.find(kind.name) != std::string::npos);
    CHECK(replay_page(report, topology).size() < 2'000'000);
    std::int64_t received = 0;
    for (const GroupFacts& kind : report.job->kinds) received += kind.use.received_bytes;
    CHECK(received == report.bytes_received_total);
  }
}
