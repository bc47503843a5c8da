// SPDX-License-Identifier: BSD-3-Clause
// The native trace format: what it can express, and one clear sentence with FILE:LINE for
// everything that it cannot.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/trace/line_reader.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::trace_of;

namespace {

const std::string kMeshesHeader =
    R"({"reshard_trace": 1, "topology": "dgx-h100:2", "meshes": {"a": "dp=2,tp=2", "b": {"mesh": )"
    R"("4", "ranks": "8-11"}}})";

std::string text_error(const std::string& text) {
  try {
    trace_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// The error of a trace whose third line this is.
std::string line_error(const std::string& line) {
  return text_error(kMeshesHeader + "\n\n" + line + "\n");
}

}  // namespace

TEST_CASE("Layouts of the header stand for their placements") {
  const std::string header =
      R"t({"reshard_trace": 1, "meshes": {"a": "2"}, "layouts": {"rows.1": "S(0)", )t"
      R"t("l0": "boxes(0: [0:3,:]; 1: [3:4,:])"}})t";
  const auto line = [](const std::string& from) {
    return R"t({"op": "redistribute", "shape": [4, 6], "dtype": "f32", "mesh": "a", "from": ")t" +
           from + R"t(", "to": "rows.1"})t";
  };
  Trace trace = trace_of(header, {line("l0")});
  const Request& request = std::get<TraceRedistribute>(trace.operations[0].body).requests->front();
  CHECK(request.source().placements_text() == "boxes(0: [0:3,0:6]; 1: [3:4,0:6])");
  CHECK(request.destination().placements_text() == "S(0)");
  CHECK_THAT(text_error(header + "\n" + line("l1") + "\n"),
             Catch::StartsWith("t.jsonl:2: from: expected"));
  for (const char* bad : {R"t(["S(0)"])t", R"t({"R": "S(0)"})t", R"t({"": "S(0)"})t",
                          R"t({"0a": "S(0)"})t", R"t({"r(0)": "S(0)"})t", R"t({"rows": 1})t"})
    CHECK_THAT(text_error(fmt::format("{{\"reshard_trace\": 1, \"layouts\": {}}}", bad)),
               Catch::StartsWith("t.jsonl:1: layouts: expected an object of placements by name"));
}

TEST_CASE("A trace says what its lines say") {
  Trace trace = trace_of(
      kMeshesHeader,
      {
          R"t({"op": "redistribute", "name": "w", "id": "w", "shape": [8, 6], "dtype": "bf16", )t"
          R"t("from": "S(0)S(1)", "to": "RS(1)", "mesh": "a"})t",
          R"t({"op": "redistribute", "shape": "8,6", "dtype": "bf16", "from": "S(0)R", )t"
          R"t("to": "S(0)", "mesh": "a", "to_mesh": "b", "stream": 3})t",
          R"({"op": "compute", "id": 7, "ranks": [3, 1], "duration_ps": 5, "after": "w"})",
          R"({"op": "send", "rank": 0, "peer": 9, "bytes": 10, "tag": 4, "after": ["w", 7, "w"]})",
          R"({"op": "recv", "rank": 9, "peer": 0, "bytes": 10, "tag": 4})",
          R"({"op": "collective", "kind": "all_reduce", "ranks": "0-3", "bytes": 64, "algorithm": )"
          R"("tree"})",
      });
  CHECK(trace.topology == "dgx-h100:2");
  CHECK(trace.findings.empty());
  REQUIRE(trace.operations.size() == 6);
  CHECK(trace.place_of(OpId{2}) == "t.jsonl:4");
  const Request& first = std::get<TraceRedistribute>(trace.operations[0].body).requests->front();
  CHECK(first.text() == "bf16[8,6] S(0)S(1) on dp=2,tp=2 -> RS(1)");
  CHECK(trace.line_of(OpId{0}).name == "w");
  const Request& second = std::get<TraceRedistribute>(trace.operations[1].body).requests->front();
  CHECK(second.destination().mesh().ranks() ==
        std::vector<Rank>{Rank{8}, Rank{9}, Rank{10}, Rank{11}});
  CHECK(trace.operations[1].stream == 3);
  CHECK(std::get<TraceCompute>(trace.operations[2].body).ranks ==
        std::vector<Rank>{Rank{3}, Rank{1}});
  CHECK(trace.operations[2].after == std::vector<OpId>{OpId{0}});
  CHECK(trace.operations[3].after == std::vector<OpId>{OpId{0}, OpId{2}});
  CHECK(std::get<TraceEnd>(trace.operations[3].body).other == 4);
  CHECK(std::get<TraceEnd>(trace.operations[4].body).other == 3);
  CHECK(std::get<TraceCollective>(trace.operations[5].body).algorithm == Algorithm::Tree);
  CHECK(highest_rank(trace) == 11);
}

TEST_CASE("Lines that say the same share one request, blank lines and CRLF do not matter") {
  std::string line = R"t({"op": "redistribute", "shape": [8], "dtype": "f32", )t"
                     R"t("from": "S(0)R", "to": "RR", "mesh": "a"})t";
  Trace trace = trace_of(kMeshesHeader + "\r\n \r\n" + line + "\r\n\n" + line);
  REQUIRE(trace.operations.size() == 2);
  CHECK(std::get<TraceRedistribute>(trace.operations[0].body).requests ==
        std::get<TraceRedistribute>(trace.operations[1].body).requests);
  CHECK(trace.line_of(OpId{1}).number == 5);
}

TEST_CASE("Text that is no trace is refused with its place") {
  CHECK(text_error("") ==
        "t.jsonl: expected a header such as {\"reshard_trace\": 1} as the first line, found an "
        "empty file");
  CHECK(text_error("[1]") == "t.jsonl:1: expected one JSON object, found a list of 1");
  CHECK(text_error("{\"reshard_trace\": 2}") ==
        "t.jsonl:1: reshard_trace: expected an integer from 1 to 1, found 2");
  CHECK(text_error("{\"topology\": \"x\"}") ==
        "t.jsonl:1: reshard_trace: expected an integer from 1 to 1, found no such field");
  CHECK(text_error("{\"reshard_trace\": 1, \"mesh\": {}}") ==
        "t.jsonl:1: 'mesh': expected a field of the header, found an unknown one");
  CHECK(line_error(R"({"op": "compute", "ranks": "0", "dura)") ==
        "t.jsonl:3: expected one JSON object, found no JSON at byte 38: the end of the line");
  CHECK(line_error("{\"op\": \"compute\"} x") ==
        "t.jsonl:3: expected one JSON object, found no JSON at byte 19: 'x'");
  CHECK(line_error("{\"op\": \"\xff\"}").substr(0, 63) ==
        "t.jsonl:3: expected one JSON object, found no JSON at byte 9: '");
  CHECK(line_error("{\"op\": 1e999}") ==
        "t.jsonl:3: expected one JSON object, found a number out of range");
  CHECK(line_error(R"({"op": "send", "op": "recv"})") ==
        "t.jsonl:3: expected each field once, found 'op' twice");
  CHECK(line_error(R"({"op": [[[[[[1]]]]]]})") ==
        "t.jsonl:3: expected at most 4 levels of nesting, found more");
  CHECK(line_error(R"({"op": [[[[1]]]]})") ==
        "t.jsonl:3: expected at most 4 levels of nesting, found more");
  CHECK(line_error(R"({"op": [[[1]]]})") ==
        "t.jsonl:3: op: expected tensor, call, redistribute, compute, send, recv, isend, irecv, "
        "collective or fault, found a list of 1");
  CHECK(line_error(std::string(1'000'000, '[')) ==
        "t.jsonl:3: expected at most 4 levels of nesting, found more");
  CHECK(line_error(R"({"op": "swim"})") ==
        "t.jsonl:3: op: expected tensor, call, redistribute, compute, send, recv, isend, irecv, "
        "collective or fault, found 'swim'");
  CHECK(line_error(R"({"name": "x"})") ==
        "t.jsonl:3: op: expected tensor, call, redistribute, compute, send, recv, isend, irecv, "
        "collective or fault, found no such field");
}

TEST_CASE("A line with more values than ranks exist is refused before it is kept") {
  std::string line = R"({"op": "compute", "duration_ps": 0, "ranks": [0)";
  for (int i = 0; i < (1 << 20) + 64; ++i) line += ",0";
  CHECK(line_error(line + "]}") == "t.jsonl:3: expected at most 1048640 values, found more");
}

TEST_CASE("Fields of the wrong type or out of range are refused by name") {
  auto compute = [](const std::string& fields) {
    return line_error("{\"op\": \"compute\", " + fields + "}");
  };
  CHECK(compute(R"("ranks": "0")") ==
        "t.jsonl:3: duration_ps: expected an integer from 0 to 1000000000000000000, found no such "
        "field");
  CHECK(line_error(R"({"op": "send", "rank": 0, "peer": 1, "bytes": 1, "transport": "mpi"})") ==
        "t.jsonl:3: transport: expected " + transport_names() + ", found 'mpi'");
  CHECK(line_error(R"({"op": "send", "rank": 0, "peer": 1, "bytes": 1, "transport": 2})") ==
        "t.jsonl:3: transport: expected " + transport_names() + ", found 2");
  CHECK(compute(R"("ranks": "0", "duration_ps": 1, "transport": "nccl")") ==
        "t.jsonl:3: 'transport': expected a field of compute, found an unknown one");
  CHECK(compute(R"("ranks": "0", "duration_ps": -1)") ==
        "t.jsonl:3: duration_ps: expected an integer from 0 to 1000000000000000000, found -1");
  CHECK(compute(R"("ranks": "0", "duration_ps": 1.5)") ==
        "t.jsonl:3: duration_ps: expected an integer from 0 to 1000000000000000000, found 1.5");
  CHECK(compute(R"("ranks": "0", "duration_ps": 18446744073709551615)") ==
        "t.jsonl:3: duration_ps: expected an integer from 0 to 1000000000000000000, found "
        "18446744073709551615");
  CHECK(compute(R"("ranks": "0", "duration_ps": "5")") ==
        "t.jsonl:3: duration_ps: expected an integer from 0 to 1000000000000000000, found '5'");
  CHECK(compute(R"("ranks": 0, "duration_ps": 5)") ==
        "t.jsonl:3: ranks: expected ranks such as \"0-7\" or [0, 1, 2], found 0");
  CHECK(compute(R"("ranks": [], "duration_ps": 5)") ==
        "t.jsonl:3: ranks: expected ranks such as \"0-7\" or [0, 1, 2], found a list of 0");
  CHECK(compute(R"("ranks": [0, 1048576], "duration_ps": 5)") ==
        "t.jsonl:3: ranks: expected an integer from 0 to 1048575, found 1048576");
  CHECK(compute(R"("ranks": [2, 1, 2], "duration_ps": 5)") ==
        "t.jsonl:3: ranks: expected each rank once, found rank 2 twice");
  CHECK(compute(R"("ranks": "0", "duration_ps": 5, "stream": -1)") ==
        "t.jsonl:3: stream: expected an integer from 0 to 2147483647, found -1");
  CHECK(compute(R"("ranks": "0", "duration_ps": 5, "bytes": 1)") ==
        "t.jsonl:3: 'bytes': expected a field of compute, found an unknown one");
  CHECK(compute(R"("ranks": "0", "duration_ps": 5, "id": 1.5)") ==
        "t.jsonl:3: id: expected a string or an integer, found 1.5");
  CHECK(compute(R"("ranks": "0", "duration_ps": 5, "after": [null])") ==
        "t.jsonl:3: after: expected a string or an integer, found null");
  CHECK(line_error(R"({"op": "send", "rank": 3, "peer": 3, "bytes": 1})") ==
        "t.jsonl:3: peer: expected another rank, found the rank's own, 3");
  CHECK(line_error(R"({"op": "send", "rank": 3, "peer": 2, "bytes": 4611686018427387905})") ==
        "t.jsonl:3: bytes: expected an integer from 0 to 4611686018427387904, found "
        "4611686018427387905");
  CHECK(line_error(R"({"op": "collective", "kind": "permute", "ranks": "0-3", "bytes": 1})") ==
        "t.jsonl:3: kind: expected all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, "
        "reduce, gather, scatter or barrier, found 'permute'");
  CHECK(
      line_error(
          R"({"op": "collective", "kind": "all_gather", "ranks": "0-3", "bytes": 1, "algorithm": )"
          R"("tree"})") ==
      "t.jsonl:3: algorithm: expected one that all_gather has (ring, direct), found 'tree'");
  CHECK(line_error(R"({"op": "collective", "kind": "all_gather", "ranks": "0-3", "bytes": )"
                   R"(4611686018427387904})")
            .substr(0, 11) == "t.jsonl:3: ");
}

TEST_CASE("What layouts and requests refuse is placed in its line") {
  auto redistribute = [](const std::string& shape, const std::string& from, const std::string& to,
                         const std::string& more = "") {
    return line_error(
        "{\"op\": \"redistribute\", \"dtype\": \"f32\", \"mesh\": \"a\", \"shape\": " + shape +
        ", \"from\": \"" + from + "\", \"to\": \"" + to + "\"" + more + "}");
  };
  auto starts = [](const std::string& text, const std::string& with) {
    return text.substr(0, with.size()) == with;
  };
  CHECK(redistribute("[8]", "RR", "RR") == "no error");
  CHECK(redistribute("[8]", "S(0)R", "P(sum)R") == "no error");
  CHECK(starts(redistribute("[8]", "S(1)R", "RR"), "t.jsonl:3: from: expected a tensor dim"));
  CHECK(starts(redistribute("[8]", "RR", "R"), "t.jsonl:3: to: expected 2 placements"));
  CHECK(starts(redistribute("[8]", "S(0)R", "P(avg)R"),
               "t.jsonl:3: axis 0: S(0)->P(avg) is forbidden"));
  CHECK(starts(redistribute("[4611686018427387904, 4]", "RR", "RR"), "t.jsonl:3: "));
  CHECK(starts(redistribute("[-1]", "RR", "RR"), "t.jsonl:3: shape: expected an integer from 0"));
  CHECK(starts(redistribute("\"8,x\"", "RR", "RR"), "t.jsonl:3: shape: "));
  CHECK(redistribute("[8]", "RR", "RR", ", \"to_mesh\": \"c\"") ==
        "t.jsonl:3: to_mesh: expected the name of a mesh of the header, found 'c'");
  CHECK(redistribute("[8]", "RR", "RR", ", \"ranks\": \"0\"") ==
        "t.jsonl:3: 'ranks': expected a field of redistribute, found an unknown one");

  auto mesh = [](const std::string& text) {
    return text_error("{\"reshard_trace\": 1, \"meshes\": {\"m\": " + text + "}}");
  };
  for (const char* bad :
       {"\"0\"", "\"1000000000000\"", "\"2x0\"", "\"\"", "3", "null", "[2, 2]",
        "{\"ranks\": \"0-3\"}", "{\"mesh\": \"4\", \"ranks\": \"0-2\"}",
        "{\"mesh\": \"2\", \"ranks\": [0, 0]}", "{\"mesh\": \"2\", \"rank\": \"0-1\"}"}) {
    INFO(bad);
    CHECK(starts(mesh(bad), "t.jsonl:1: "));
  }
}

TEST_CASE("All lines together may name 2^25 ranks") {
  std::string line = R"({"op": "compute", "ranks": "0-1048575", "duration_ps": 1})";
  std::string text = R"({"reshard_trace": 1})";
  for (int i = 0; i < 33; ++i) text += "\n" + line;
  CHECK(text_error(text) ==
        "t.jsonl:34: expected at most 33554432 ranks over all lines, found more");
}

namespace {

// A stream of one letter without end, which counts what is taken from it.
class Endless : public std::streambuf {
 public:
  std::size_t taken = 0;

 private:
  std::streamsize xsgetn(char* to, std::streamsize count) override {
    std::fill_n(to, count, 'x');
    taken += static_cast<std::size_t>(count);
    return count;
  }
  int_type underflow() override { return 'x'; }
};

}  // namespace

TEST_CASE("A line without end is refused at 64 MiB") {
  Endless letters;
  std::istream in(&letters);
  CHECK_THROWS_WITH(parse_trace(in, "t.jsonl"),
                    "t.jsonl:1: expected lines of at most 64 MiB, found a longer one");
  CHECK(letters.taken <= (std::size_t{64} << 20) + (std::size_t{1} << 17));
}

TEST_CASE("Lines are cut at newlines wherever blocks end") {
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += std::string(static_cast<std::size_t>(i * 7), 'a') + (i % 2 == 0 ? "\n" : "\r\n");
  text += "last";
  std::istringstream in(text);
  LineReader reader(in, "f");
  std::string line;
  for (int i = 0; i < 300; ++i) {
    REQUIRE(reader.next(line));
    REQUIRE(line == std::string(static_cast<std::size_t>(i * 7), 'a'));
  }
  REQUIRE(reader.next(line));
  CHECK(line == "last");
  CHECK(reader.line_number() == 301);
  CHECK_FALSE(reader.next(line));
}

TEST_CASE("Of a long trace every line counts, and the first wrong one is named") {
  std::vector<std::string> lines(40'000,
                                 R"({"op": "compute", "ranks": "0-7", "duration_ps": 5000})");
  lines.front() = kMeshesHeader;
  auto text_of = [&lines] {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  };
  Trace trace = trace_of(text_of());
  REQUIRE(trace.operations.size() == lines.size() - 1);
  for (std::size_t i = 0; i < trace.operations.size(); ++i)
    REQUIRE(trace.line_of(id_of<OpId>(i)).number == static_cast<std::int64_t>(i) + 2);
  lines[38'000] = "{";
  CHECK(text_error(text_of()) ==
        "t.jsonl:38001: expected one JSON object, found no JSON at byte 2: the end of the line");
  lines[37'999] = R"({"op": "sleep"})";
  CHECK(text_error(text_of()).substr(0, 18) == "t.jsonl:38000: op:");
  lines[100] = R"({"op": {"a": 1, "b": {"a": 2}, "a": 3}})";
  CHECK(text_error(text_of()) == "t.jsonl:101: expected each field once, found 'a' twice");
}

TEST_CASE("Missing files and directories are refused") {
  CHECK_THROWS_WITH(read_trace("no/such.jsonl"),
                    "no/such.jsonl: expected a trace, found no such file");
  CHECK_THROWS_WITH(read_trace("traces"), "traces: expected a trace, found a directory");
}

TEST_CASE("The example of the format's page is a trace that runs") {
  std::ifstream page("traces/README.md");
  std::string line, text;
  // The first of the page's.
  while (std::getline(page, line) && (text.empty() || line.starts_with("{\"")))
    if (line.starts_with("{\"")) text += line + "\n";
  Trace trace = trace_of(text);
  CHECK(trace.operations.size() == 5);
  Topology topology = test::star(16);
  ReplayReport report = test::Rig(topology).replay(trace, 1 << 20);
  CHECK(report.findings.empty());
  CHECK(report.requests.size() == 1);
  CHECK(report.others.size() == 3);
  CHECK(report.time_ps > 2'500'000'000);
}
