// SPDX-License-Identifier: BSD-3-Clause
// Jobs of a trace: the order of their tensors, and lines that can be joined to one.
#include <catch2/catch.hpp>

#include <sstream>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/job/job_file.h"
#include "sim/trace/jobs/joined.h"
#include "tests/sim/replay/replay_case.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::trace_of;

namespace {

const std::string kHeader =
    R"({"reshard_trace": 1, "meshes": {"a": "4", "b": {"mesh": "4", "ranks": "4-7"}, )"
    R"("c": {"mesh": "2", "ranks": "2-3"}}})";

std::string request(const std::string& more) {
  return R"t({"shape": [8], "dtype": "f32", "from": "S(0)", "to": "R", "mesh": "a")t" + more + "}";
}
std::string job(const std::vector<std::string>& more) {
  std::string out;
  for (const std::string& each : more) out += (out.empty() ? "" : ", ") + request(each);
  return R"({"op": "redistribute", "requests": [)" + out + "]}";
}

Stages stages_of_line(const std::string& line) {
  return std::get<TraceRedistribute>(trace_of(kHeader, {line}).operations[0].body).stages;
}

Subject job_file(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  std::istringstream in(text);
  return parse_job(in, "r.jsonl");
}

std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string line(const std::string& mesh, const std::string& more = "") {
  return test::redistribute("f32", "[64]", "S(0)", "R", mesh, more);
}
std::string compute(const std::string& ranks, const std::string& more = "") {
  return R"({"op": "compute", "ranks": ")" + ranks + R"(", "duration_ps": 1000)" + more + "}";
}
std::string collective(const std::string& ranks, const std::string& more = "") {
  return R"({"op": "collective", "kind": "all_reduce", "bytes": 8, "ranks": ")" + ranks + "\"" +
         more + "}";
}

// "2-3 5-7": the lines of every set that can be joined.
std::string sets_of(const std::vector<std::string>& lines, const std::string& header = kHeader) {
  Trace trace = trace_of(header, lines);
  REQUIRE(trace.findings.empty());
  std::string out;
  for (const JoinedSet& set : joinable_sets(trace, false))
    out += (out.empty() ? "" : " ") + line_ranges(trace, set);
  return out;
}

}  // namespace

TEST_CASE("requests of a line come after those that they name") {
  TensorId a{0}, b{1}, c{2};
  CHECK(stages_of_line(job({"", "", ""})).empty());
  CHECK(stages_of_line(job({R"(, "id": "a")", R"(, "after": "a")", R"(, "after": ["a"])"})) ==
        Stages{{{a}, {}}, {{b, c}, {0}}});
  // An id can be a number and be named before it is given, and twice.
  CHECK(stages_of_line(job({R"(, "after": [7, "7"])", "", R"(, "id": 7)"})) ==
        Stages{{{b}, {}}, {{c}, {}}, {{a}, {1}}});
}

TEST_CASE("orders that are none are refused with line and field") {
  auto error = [](const std::vector<std::string>& more) {
    return error_of([&] { trace_of(kHeader, {job(more)}); });
  };
  CHECK(error({"", R"(, "after": "a")"}) ==
        "t.jsonl:2: requests[1].after: expected the id of a request of this job, found 'a', which "
        "none has");
  CHECK(error({R"(, "id": "a")", "", R"(, "id": "a")"}) ==
        "t.jsonl:2: requests[2].id: expected each id once, found 'a' again (first in requests[0])");
  CHECK(error({R"(, "id": "a", "after": "b")", R"(, "id": "b", "after": ["a"])"}) ==
        "t.jsonl:2: requests[0].after: expected no cycle, found 'a' after 'b' after 'a'");
  CHECK(error({R"(, "id": "a", "after": "a")"}) ==
        "t.jsonl:2: requests[0].after: expected no cycle, found 'a' after 'a'");
  CHECK(error({R"(, "id": "")"}) ==
        "t.jsonl:2: id: expected text of at least one character, found ''");
  CHECK(error({R"(, "after": 1.5)"}).substr(0, 17) == "t.jsonl:2: after:");
  // An order is of one job: lines of a trace have other ids.
  CHECK(error_of([] {
          trace_of(kHeader, {compute("0", R"(, "id": "x")"), job({R"(, "after": "x")"})});
        }).substr(0, 28) == "t.jsonl:3: requests[0].after");
}

TEST_CASE("lines of a requests file come after those that they name") {
  TensorId a{0}, b{1}, c{2}, d{3};
  auto alone = [](const std::string& more) {
    return R"t({"shape": [8], "dtype": "f32", "from": "S(0)", "to": "R", "mesh": "4")t" + more +
           "}";
  };
  CHECK(job_file({alone(""), alone("")}).stages.empty());
  CHECK(job_file({alone(R"(, "after": "z")"), alone(""), alone(R"(, "id": "z")")}).stages ==
        Stages{{{b}, {}}, {{c}, {}}, {{a}, {1}}});
  // A line can be a job of its own, with an order within it.
  std::string both = R"({"id": "j", "after": "z", "requests": [)" + alone(R"(, "id": "p")") + ", " +
                     alone(R"(, "after": "p")") + "]}";
  CHECK(job_file({alone(R"(, "id": "z")"), both, alone(R"(, "after": "j")")}).stages ==
        Stages{{{a}, {}}, {{b}, {0}}, {{c}, {1}}, {{d}, {2}}});
  CHECK(error_of([&] { job_file({alone(R"(, "after": "z")")}); }) ==
        "r.jsonl:1: after: expected the id of a line, found 'z', which no line has");
  CHECK(error_of([&] {
          job_file({alone(R"(, "id": 1, "after": 2)"), alone(R"(, "id": 2, "after": 1)")});
        }) == "r.jsonl:1: after: expected no cycle, found line 1 after line 2 after line 1");
  // What says when a line of a trace runs says nothing here.
  CHECK(error_of([&] { job_file({alone(R"(, "stream": 1)")}); }).substr(0, 18) ==
        "r.jsonl:1: 'stream");
}

TEST_CASE("neighbours on one stream with the same before and after them are a set") {
  CHECK(sets_of({line("a"), line("a"), line("a")}) == "2-4");
  CHECK(sets_of({line("a")}).empty());
  CHECK(sets_of({line("a"), compute("0"), line("a")}).empty());
  CHECK(sets_of({line("a"), line("a"), compute("0-3"), line("a"), line("a")}) == "2-3 5-6");
  // On other ranks, or on streams that do nothing else.
  CHECK(sets_of({line("a"), compute("7"), line("a")}) == "2,4");
  CHECK(sets_of({line("a"), compute("0", R"(, "stream": 1)"), line("a")}) == "2,4");
  CHECK(sets_of({line("a"), line("a", R"(, "stream": 1)")}) == "2-3");
  CHECK(sets_of({line("a"), line("a", R"(, "stream": 1)"), compute("0")}).empty());
  CHECK(sets_of({line("a"), line("a", R"(, "async": true)")}).empty());
  CHECK(sets_of({line("a"), line("a", R"(, "transport": "ideal")")}).empty());
  CHECK(sets_of({line("a", R"(, "async": true)"), line("a", R"(, "async": true)")}) == "2-3");
  // The same tensor twice is moved in turn.
  CHECK(sets_of({line("a", R"(, "name": "w")"), line("a", R"(, "name": "x")"),
                 line("a", R"(, "name": "w")"), line("a", R"(, "name": "y")")}) == "2-3 4-5");
}

TEST_CASE("lines of a set name the same lines, and the same name them") {
  CHECK(sets_of({compute("0", R"(, "id": "c")"), line("a", R"(, "after": "c")"),
                 line("a", R"(, "after": ["c"])")}) == "3-4");
  CHECK(
      sets_of({compute("7", R"(, "id": "c")"), line("a"), line("a", R"(, "after": "c")")}).empty());
  CHECK(sets_of({line("a", R"(, "id": 1)"), line("a", R"(, "after": 1)")}).empty());
  CHECK(sets_of({line("a", R"(, "id": 1)"), line("a"), compute("7", R"(, "after": 1)")}).empty());
  CHECK(sets_of({line("a", R"(, "id": 1)"), line("a", R"(, "id": 2)"),
                 compute("7", R"(, "after": [1, 2])")}) == "2-3");
  // Through another line.
  CHECK(sets_of({line("a", R"(, "id": 1)"), compute("7", R"(, "id": 2, "after": 1)"),
                 line("a", R"(, "after": 2)")})
            .empty());
}

TEST_CASE("lines on different ranks agree in what is before and after them, or are apart") {
  CHECK(sets_of({line("a"), line("b")}) == "2-3");
  CHECK(sets_of({line("a"), line("c"), line("a")}) == "2-4");
  // Ranks 4-7 compute before, ranks 0-3 do not.
  CHECK(sets_of({compute("4-7"), line("a"), line("b")}).empty());
  CHECK(sets_of({line("a"), line("b"), compute("4-7")}).empty());
  CHECK(sets_of({compute("0-7"), line("a"), line("b"), compute("0-7")}) == "3-4");
  // Lines on the same ranks agree whatever the others do.
  CHECK(sets_of({compute("4-7"), line("a"), line("a"), line("b"), line("b")}) == "3-4 5-6");
  CHECK(sets_of({line("c"), compute("1"), line("a")}).empty());
}

TEST_CASE("lines are not joined across what their communicators do") {
  CHECK(sets_of({line("a"), collective("0-3", R"(, "stream": 1)"), line("a")}).empty());
  CHECK(sets_of({line("a"), collective("0-2", R"(, "stream": 1)"), line("a")}) == "2,4");
  // The joined line would no longer be in turn with the collective.
  CHECK(sets_of({collective("0-3", R"(, "stream": 1)"), line("a"), line("c")}).empty());
  CHECK(sets_of({collective("0-3", R"(, "stream": 1)"), line("a"), line("a")}) == "3-4");
  CHECK(sets_of({line("a", R"(, "comm": "x")"), line("a")}).empty());
  CHECK(sets_of({line("a", R"(, "comm": "x")"), line("c", R"(, "comm": "x")")}) == "2-3");
  // Launched in the order of the lines, whatever their streams.
  std::string implicit = kHeader;
  implicit.insert(implicit.size() - 1, R"(, "launch_order_implicit": true)");
  std::string other = collective("0-2", R"(, "stream": 1)");
  CHECK(sets_of({line("a"), other, line("a")}, implicit).empty());
  CHECK(sets_of({line("a"), line("a"), other}, implicit) == "2-3");
}

TEST_CASE("calls and faults end every set") {
  std::string header =
      R"({"reshard_trace": 1, "meshes": {"a": "4", "b": {"mesh": "1", "ranks": [7]}}})";
  std::string tensor = R"({"op": "tensor", "tensor": "x", "shape": [4], "dtype": "f32", )"
                       R"("placements": "R", "mesh": "b"})",
              call = R"({"op": "call", "call": "neg", "in": ["x"], "out": ["y"]})",
              late = R"({"op": "fault", "rank": 7, "late_ps": 5})";
  CHECK(sets_of({tensor, line("a"), call, line("a")}, header).empty());
  CHECK(sets_of({tensor, line("a"), line("a"), call, line("a"), line("a")}, header) == "3-4 6-7");
  CHECK(sets_of({line("a"), late, line("a")}, header).empty());
}

TEST_CASE("a joined line takes the place of the lines") {
  Trace trace =
      trace_of(kHeader, {compute("0", R"(, "id": "c")"),
                         line("a", R"(, "name": "w", "id": 1, "after": "c")"),
                         line("c", R"(, "id": 2, "after": "c")"),
                         R"({"op": "send", "rank": 0, "peer": 4, "bytes": 8, "after": [1, 2]})",
                         R"({"op": "recv", "rank": 4, "peer": 0, "bytes": 8, "after": [1, 2]})"});
  std::vector<JoinedSet> sets = joinable_sets(trace, false);
  REQUIRE(sets == std::vector<JoinedSet>{{OpId{1}, OpId{2}}});
  Trace together = joined(trace, sets);
  REQUIRE(together.operations.size() == 4);
  const TraceOperation& one = together.operations[1];
  const auto& job = std::get<TraceRedistribute>(one.body);
  REQUIRE(job.requests->size() == 2);
  CHECK((*job.requests)[0].name() == "w");
  CHECK(job.stages.empty());
  CHECK(one.after == std::vector<OpId>{OpId{0}});
  CHECK(together.line_of(one).number == 3);
  CHECK(together.line_of(one).name == "lines 3-4");
  CHECK(together.communicators[to_index(one.communicator)].ranks == ranks_of(one));
  CHECK(together.operations[2].after == std::vector<OpId>{OpId{1}});
  CHECK(std::get<TraceEnd>(together.operations[2].body).other == 3);
  CHECK(std::get<TraceEnd>(together.operations[3].body).other == 2);
  // Without sets nothing changes.
  CHECK(joined(trace, {}).operations.size() == trace.operations.size());
}

TEST_CASE("lines with orders of their own keep them in the joined line") {
  Trace trace = trace_of(kHeader, {job({R"(, "id": "a")", R"(, "after": "a")"}), line("a"),
                                   job({R"(, "after": "z")", R"(, "id": "z")"})});
  std::vector<JoinedSet> sets = joinable_sets(trace, false);
  REQUIRE(sets.size() == 1);
  Stages stages = std::get<TraceRedistribute>(joined(trace, sets).operations[0].body).stages;
  CHECK(stages == Stages{{{TensorId{0}}, {}},
                         {{TensorId{1}}, {0}},
                         {{TensorId{2}}, {}},
                         {{TensorId{4}}, {}},
                         {{TensorId{3}}, {3}}});
}
