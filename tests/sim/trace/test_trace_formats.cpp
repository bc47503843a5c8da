// SPDX-License-Identifier: BSD-3-Clause
// Formats are recognised by content; nccl-tests' matrix of bytes is one exchange; and what the
// builder makes of lines that mean several operations.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/traffic/accounting.h"
#include "core/traffic/workload.h"
#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "sim/trace/trace.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

Trace read_as(const std::string& text, std::string_view format = {}) {
  std::istringstream in(text);
  return parse_trace(in, "m.txt", format);
}

std::string format_error(const std::string& text, std::string_view format = {}) {
  try {
    read_as(text, format);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

ReplayReport replayed(const Trace& trace, const Topology& topology) {
  return test::Rig(topology).replay(trace);
}

}  // namespace

TEST_CASE("Content shows the format, what no format recognises is refused as a native trace") {
  CHECK(read_as("{\"reshard_trace\": 1}").operations.empty());
  CHECK(read_as("\n 0  8\t\r\n8 0\n").operations.size() == 4);
  CHECK(read_as("0", "alltoallv-matrix").operations.empty());
  CHECK(format_error("0") == "m.txt:1: expected one JSON object, found 0");
  CHECK(format_error("0 x\n") == "m.txt:1: expected one JSON object, found no JSON at byte 3: 'x'");
  CHECK(format_error("0 1\n1 0\n", "reshard") ==
        "m.txt:1: expected one JSON object, found no JSON at byte 3: '1'");
  CHECK(format_error("0 1\n1 0\n", "csv") ==
        "--format: expected one of reshard, alltoallv-matrix, found 'csv'");
}

TEST_CASE("Each line of a matrix is what a rank sends, what it keeps is no message") {
  Trace trace = read_as("7 10 0\n\n0 0 0\n30 20 9\n");
  REQUIRE(trace.operations.size() == 6);
  CHECK(trace.findings.empty());
  const auto& send = std::get<TraceEnd>(trace.operations[4].body);
  CHECK(send.side == TraceEnd::Side::Send);
  CHECK(send.rank == Rank{2});
  CHECK(send.peer == Rank{1});
  CHECK(send.bytes == 20);
  CHECK(send.other == 5);
  CHECK(trace.place_of(OpId{5}) == "m.txt:4");
}

TEST_CASE("Messages of a matrix share the ports from the start and wait for nothing else") {
  // Ports of 3 GB/s, 500 ps away. Rank 0 sends 1000 B to each of three, at a third of its port:
  // 1 us. Rank 3's 500 B to rank 1 have the other two thirds of that port: 250 ns.
  Topology topology = test::star(4, 3'000'000'000, 500);
  ReplayReport report =
      replayed(read_as("0 1000 1000 1000\n0 0 0 0\n0 0 0 0\n0 500 0 0\n"), topology);
  REQUIRE(report.others.size() == 4);
  CHECK(report.others[0].start_ps == 0);
  CHECK(report.others[0].end_ps == 1'000'500);
  CHECK(report.others[2].end_ps == 1'000'500);
  CHECK(report.others[3].start_ps == 0);
  CHECK(report.others[3].end_ps == 250'500);
  CHECK(report.time_ps == 1'000'500);
  CHECK(report.bound_ps == 1'000'500);
}

TEST_CASE("A plan of messages takes the time of its matrix") {
  Topology topology = find_topology("dgx-h100:2");
  test::Rig rig(topology, "p2p");
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("16", "", "mesh"));
  for (auto [from, to] : {std::pair{"S(0)", "S(1)"}, {"S(1)", "R"}, {"S(2)", "S(0)"}}) {
    Request request(parse_layout("96,100,64", "f32", mesh, from, "from"),
                    parse_layout("96,100,64", "f32", mesh, to, "to"));
    std::shared_ptr<const Plan> plan = rig.studies.of(request)->shared_plan();
    ReplayReport report = rig.replay(read_as(alltoallv_matrix(*plan).text));
    CHECK(report.time_ps == sim::run(workload_of(plan), topology).end_ps);
  }
}

TEST_CASE("A matrix that is not square, or not of bytes, is refused in its line") {
  CHECK(format_error("0 1\n1\n") == "m.txt:2: expected 2 columns, one for each rank, found 1");
  CHECK(format_error("0 1\n") == "m.txt:1: expected 2 lines, one for each rank, found 1");
  CHECK(format_error("0 1\n1 0\n0 0\n") ==
        "m.txt:3: expected 2 lines, one for each rank, found more");
  CHECK(format_error("0 1\n1 -1\n") ==
        "m.txt:2: column 2: expected bytes between 0 and 4611686018427387904, found '-1'");
  CHECK(format_error("0 1\n1x 0\n").substr(0, 17) == "m.txt:2: column 1");
  CHECK(format_error("", "alltoallv-matrix") ==
        "m.txt: expected a line of bytes for each rank, found an empty file");
  std::string wide(2 * 4097, '0');
  for (std::size_t i = 1; i < wide.size(); i += 2) wide[i] = ' ';
  CHECK(format_error(wide) == "m.txt:1: expected at most 4096 ranks, found more columns");
}

TEST_CASE("A line may stand for several operations: `after` it is after all of them") {
  TraceBuilder builder("t");
  auto compute = [&](std::int32_t rank, std::int64_t duration_ps) {
    builder.add(TraceCompute{{Rank{rank}}, duration_ps});
  };
  builder.at_line(7);
  builder.describe("late", "", {"both"});
  compute(2, 5);
  builder.at_line(3);
  builder.describe("both", "two", {});
  compute(0, 100);
  compute(1, 30);
  Trace trace = builder.finish();
  CHECK(trace.operations[0].after == std::vector<OpId>{OpId{1}, OpId{2}});
  CHECK(trace.operations[2].after.empty());
  CHECK(trace.place_of(OpId{2}) == "t:3");
  ReplayReport report = replayed(trace, test::star(3));
  REQUIRE(report.others.size() == 3);
  CHECK(report.others[0].start_ps == 100);
  CHECK(report.others[2].name == "two");
  CHECK(report.others[2].line == 3);
}

TEST_CASE("An operation names its tensors, equal ones once") {
  auto line = [](const std::string& name, int length) {
    return test::redistribute("f32", fmt::format("[{}]", length), "R", "S(0)", "a",
                              fmt::format(", \"name\": \"{}\"", name));
  };
  Trace trace =
      test::trace_of(R"({"reshard_trace": 1, "meshes": {"a": "2"}})",
                     {line("w", 8), line("", 8), line("v", 8), line("w", 8), line("w", 4)});
  std::vector<std::vector<std::int32_t>> named;
  for (const TraceOperation& operation : trace.operations) named.push_back(operation.tensors);
  CHECK(named == std::vector<std::vector<std::int32_t>>{{0}, {}, {1}, {0}, {2}});
  REQUIRE(trace.tensors.size() == 3);
  CHECK(trace.tensors[2].name == "w");
  CHECK(trace.tensors[2].shape == Shape{4});
  CHECK(trace.tensors[2].dtype == DType::F32);
}
