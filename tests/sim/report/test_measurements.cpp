// SPDX-License-Identifier: BSD-3-Clause
// Measurements are read back as written, and refused with the wrong line; medians are values that
// were measured.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "sim/report/measurements.h"
#include "sim/report/validate_report.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

Plan plan_of(const std::string& from, const std::string& to, const char* planner) {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({2, 2}));
  Topology topology = test::star(4);
  PlannerInput input;
  input.topology = &topology;
  return find_planner(planner).make(
      Request(parse_layout("5,6", "f32", mesh, from), parse_layout("5,6", "f32", mesh, to)), input);
}

Measurements measurements_of(const Plan& plan) {
  Measurements out{"0.1.0",        "mpi",  "Open MPI \"4.1.4\"", plan.request().text(),
                   plan.planner,   "star", plan.ranks,           2,
                   parts_of(plan), {}};
  for (int i = 0; i < 3; ++i) {
    Timeline run;
    for (const MeasuredPart& part : out.parts) {
      run.spans.push_back({OpId{0}, part.step, part.rank, run.end_ps, run.end_ps + 10 + i});
      run.end_ps += 7;
    }
    out.runs.push_back(run);
  }
  return out;
}

std::string written(const Measurements& measurements) {
  std::ostringstream out;
  write_measurements(out, measurements);
  return out.str();
}

Measurements parsed(const std::string& text) {
  std::istringstream in(text);
  return parse_measurements(in, "m.jsonl");
}

std::string refusal_of(const std::string& text) {
  try {
    parsed(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

constexpr const char* kHeader =
    R"({"reshard_measurements":1,"version":"0.1.0","backend":"mpi","library":"l",)"
    R"("request":"r","planner":"p2p","topology":"t","ranks":"0-1","warm_up":2,"iterations":1})";
constexpr const char* kCopy0 = R"({"step":0,"rank":0,"kind":"copy","bytes":16})";
constexpr const char* kExchange0 =
    R"({"step":1,"rank":0,"kind":"exchange","sent":[[1,16]],"received":[]})";
constexpr const char* kRun0 = R"({"iteration":0,"time_ps":30})";
constexpr const char* kSpan0 = R"({"iteration":0,"step":0,"rank":0,"start_ps":1,"end_ps":2})";
constexpr const char* kSpan1 = R"({"iteration":0,"step":1,"rank":0,"start_ps":2,"end_ps":30})";

std::string lines(std::initializer_list<const char*> list) {
  std::string out;
  for (const char* line : list) out += std::string(line) + "\n";
  return out;
}

}  // namespace

TEST_CASE("measurements are read back as they were written, for every kind of step") {
  std::set<std::string> kinds;
  for (auto [from, to, planner] :
       {std::tuple{"S(0)S(1)", "S(1)S(0)", "p2p"}, std::tuple{"P(sum)S(1)", "S(0)R", "rule"},
        std::tuple{"S(0)S(1)", "RR", "rule"}, std::tuple{"P(sum)P(sum)", "RR", "rule"},
        std::tuple{"P(sum)R", "RR", "p2p"}, std::tuple{"S(0)S(0)", "S(1)S(0)", "rule"}}) {
    Measurements original = measurements_of(plan_of(from, to, planner));
    for (const MeasuredPart& part : original.parts) kinds.insert(part.kind);
    std::string text = written(original);
    Measurements back = parsed(text);
    CHECK((back.version == original.version && back.backend == original.backend &&
           back.library == original.library));
    CHECK((back.request == original.request && back.planner == original.planner &&
           back.topology == original.topology));
    CHECK((back.ranks == original.ranks && back.warm_up == original.warm_up &&
           back.parts == original.parts));
    REQUIRE(back.runs.size() == original.runs.size());
    for (std::size_t i = 0; i < back.runs.size(); ++i)
      CHECK((back.runs[i].end_ps == original.runs[i].end_ps &&
             back.runs[i].spans == original.runs[i].spans));
    CHECK(written(back) == text);
  }
  for (const char* kind :
       {"copy", "exchange", "reduce", "all_gather", "reduce_scatter", "all_reduce"})
    CHECK(kinds.count(kind) == 1);
}

TEST_CASE("parts say what each rank carries") {
  std::vector<MeasuredPart> parts = parts_of(plan_of("S(0)R", "RR", "rule"));
  // 5 rows over 2 are 3 and 2, padded to 3: an all_gather of 3 x 6 f32 per rank, among ranks of one
  // column.
  auto gather = std::find_if(parts.begin(), parts.end(), [](const MeasuredPart& part) {
    return part.kind == "all_gather" && part.rank == Rank{1};
  });
  REQUIRE(gather != parts.end());
  CHECK(gather->group == std::vector<Rank>{Rank{1}, Rank{3}});
  CHECK(gather->bytes == 72);
  parts = parts_of(plan_of("S(0)R", "RR", "p2p"));
  auto exchange = std::find_if(parts.begin(), parts.end(), [](const MeasuredPart& part) {
    return part.kind == "exchange" && part.rank == Rank{2};
  });
  REQUIRE(exchange != parts.end());
  std::int64_t received = 0;
  for (const auto& [peer, bytes] : exchange->received) received += bytes;
  CHECK(received == 72);  // the three rows that it lacks
}

TEST_CASE("what is wrong in a file of measurements is said with its line") {
  CHECK(refusal_of(lines({kHeader, kCopy0, kExchange0, kRun0, kSpan0, kSpan1})) == "accepted");
  CHECK(refusal_of("") ==
        "m.jsonl: expected a header such as {\"reshard_measurements\": 1} as the first line, found "
        "an empty file");
  CHECK(refusal_of(lines({kCopy0})) ==
        "m.jsonl:1: reshard_measurements: expected an integer from 1 to 1, found no such field");
  CHECK(refusal_of(lines({kHeader, kCopy0, kCopy0})) ==
        "m.jsonl:3: expected parts in ascending order of step and rank, found step 0, rank 0");
  CHECK(refusal_of(lines({kHeader, kCopy0, kSpan0})) ==
        "m.jsonl:3: time_ps: expected the iteration's own line first, found that of a part");
  CHECK(refusal_of(lines({kHeader, kCopy0, kRun0})) ==
        "m.jsonl:3: expected 1 parts of iteration 0, found 0");
  CHECK(refusal_of(lines({kHeader, kCopy0, kRun0, kSpan0, kSpan1})) ==
        "m.jsonl:5: expected 1 parts of the iteration, found more");
  CHECK(refusal_of(lines({kHeader, kCopy0, kRun0, kSpan0, kCopy0})) ==
        "m.jsonl:5: iteration: expected only lines of iterations after the first of them, found "
        "another");
  CHECK(refusal_of(lines({kHeader, kCopy0, kRun0, kSpan0, kRun0})) ==
        "m.jsonl:5: iteration: expected 1 iterations, as in the header, found more");
  CHECK(refusal_of(lines({kHeader, kCopy0})) ==
        "m.jsonl: iterations: expected 1, as in the header, found 0");
  CHECK(refusal_of(lines({kHeader, R"({"step":0,"rank":2,"kind":"copy","bytes":16})"})) ==
        "m.jsonl:2: rank: expected one of the header's ranks, found 2");
  CHECK(refusal_of(lines({kHeader, R"({"step":0,"rank":0,"kind":"move","bytes":16})"})) ==
        "m.jsonl:2: kind: expected the kind of a step such as \"exchange\", found 'move'");
  CHECK(refusal_of(lines({kHeader, R"({"step":0,"rank":0,"kind":"copy","bytes":16,"x":1})"})) ==
        "m.jsonl:2: 'x': expected a field of a part of a step, found an unknown one");
  for (const char* sent :
       {"[[0,16]]", "[[1,0]]", "[[1,16],[1,16]]", "[[2,16]]", "[1]", "[[1,-1]]", "7"})
    CHECK(refusal_of(
              lines({kHeader, (R"({"step":0,"rank":0,"kind":"exchange","received":[],"sent":)" +
                               std::string(sent) + "}")
                                  .c_str()}))
              .rfind("m.jsonl:2: sent: expected messages such as", 0) == 0);
  CHECK(refusal_of(lines(
            {kHeader, R"({"step":0,"rank":0,"kind":"all_gather","group":"1","bytes":16})"})) ==
        "m.jsonl:2: group: expected ranks of the header, the part's own among them, found others");
  CHECK(refusal_of(lines({kHeader, kCopy0, kRun0,
                          R"({"iteration":0,"step":0,"rank":0,"start_ps":3,"end_ps":2})"})) ==
        "m.jsonl:4: end_ps: expected an integer from 3 to 1000000000000000000, found 2");
}

TEST_CASE(
    "a step lasts from its first part's start to its last part's end, and medians were measured") {
  CHECK(spread_of({5}) == Spread{5, 5, 5});
  CHECK(spread_of({9, 1, 5}) == Spread{5, 1, 9});
  CHECK(spread_of({9, 1, 5, 3}) == Spread{3, 1, 9});
  std::vector<Timeline> runs(3);
  for (std::size_t i = 0; i < 3; ++i) {
    auto late = static_cast<std::int64_t>(i == 1 ? 100 : 10 * i);
    runs[i].spans = {{OpId{0}, 0, Rank{0}, 5, 20},
                     {OpId{0}, 0, Rank{1}, 2, 30 + late},
                     {OpId{0}, 2, Rank{0}, 40, 41}};
    runs[i].end_ps = 50 + late;
  }
  MeasuredTimes times = times_of(runs, 4);
  REQUIRE(times.steps.size() == 4);
  CHECK(times.steps[0] == Spread{48, 28, 128});
  CHECK_FALSE(times.steps[1].has_value());
  CHECK(times.steps[2] == Spread{1, 1, 1});
  CHECK(times.total == Spread{70, 50, 150});
  CHECK(times.median_run == 2);
}
