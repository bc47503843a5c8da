// SPDX-License-Identifier: BSD-3-Clause
// Files of copies: what is said of them, what they cost, and which are refused.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/proof/proof.h"
#include "sim/check/check_file.h"
#include "sim/check/check_report.h"
#include "sim/check/copies_plan.h"
#include "sim/check/layout_report.h"
#include "tests/sim/check/check_lines.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

TEST_CASE("What is converted is copied by elements, not by bytes") {
  std::vector<std::string> lines = {
      "{'tensor': 'w', 'shape': [4, 2], 'dtype': 'bf16'}",
      "{'side': 'from', 'tensor': 'w', 'mesh': '1', 'dtype': 'f32', 'convert': true}",
      "{'side': 'to', 'tensor': 'w', 'mesh': '1', 'ranks': '1'}"};
  auto buffers = [](const char* end) {
    return fmt::format(
        "{{'from': {{'rank': 0, 'buffer': 'w'}}, 'to': {{'rank': 1, 'buffer': 'w'}}{}}}", end);
  };
  CheckReport report = report_of(read(with(lines, buffers(""))));
  CHECK(report.findings.empty());
  CHECK(report.copies.bytes == 16);
  report = report_of(read(with(lines, buffers(", 'bytes': 16"))));
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].kind == CopyFaultKind::WrongDtype);
  CHECK(report.findings[0].elements == 8);
  CHECK(report.findings[0].mistake == "w is copied in bytes, though a rank has to convert it");
  CHECK_THAT(check_text(report, 10, 100), Catch::Contains("which is f32"));
  std::vector<std::string> no_dtype = {
      lines[0], "{'side': 'from', 'tensor': 'w', 'mesh': '1', 'dtype': 'f32'}"};
  check_refused(no_dtype, "\"convert\": true next to it");
  check_refused(
      {lines[0], "{'side': 'from', 'tensor': 'w', 'mesh': '1', 'dtype': 'bf16', 'convert': true}"},
      "one dtype other than bf16");
  check_refused(with(lines,
                     "{'from': {'rank': 0, 'tensor': 'w'}, 'to': {'rank': 1, 'buffer': 'w'}, "
                     "'bytes': 16}"),
                "expected buffers at both ends");
  check_refused(with(lines,
                     "{'from': {'rank': 0, 'buffer': 'w', 'box': '0:4,:'}, 'to': {'rank': 1, "
                     "'buffer': 'w'}, 'count': 7}"),
                "from: count: expected 8, as the box has, found 7");
}

TEST_CASE("Findings name no buffer or tensor that is not at fault") {
  std::vector<std::string> lines = {
      "{'tensor': 'a', 'shape': [2, 2], 'dtype': 'bf16'}",
      "{'tensor': 'b', 'shape': [2, 2], 'dtype': 'bf16'}",
      "{'side': 'from', 'buffer': 'ab', 'mesh': '1', 'fused': ['a', 'b']}",
      "{'side': 'to', 'tensor': 'a', 'mesh': '1', 'ranks': '1'}",
      "{'from': {'rank': 0, 'tensor': 'a'}, 'to': {'rank': 1, 'tensor': 'a'}}"};
  auto finding = [&](const char* line) {
    CheckReport report = report_of(read(with(lines, line)));
    REQUIRE(report.findings.size() == 1);
    return std::pair(report.findings[0], finding_text(report, report.findings[0]));
  };
  auto [not_held, said] =
      finding("{'from': {'rank': 0, 'tensor': 'b'}, 'to': {'rank': 1, 'tensor': 'b'}}");
  CHECK(said == "not held: rank 1: b[:,:] is written, which the rank does not hold; line 7");
  auto [outside, said_too] = finding(
      "{'from': {'rank': 0, 'buffer': 'ab', 'offset': 7}, 'to': {'rank': 1, 'tensor': 'a', 'box': "
      "'0,:'}, 'count': 2}");
  CHECK(outside.tensor == ModelTensorId{-1});
  CHECK(said_too ==
        "out of buffer: rank 1: 2 elements are read from outside of 'ab' of rank 0; line 7");
}

TEST_CASE("A tied name must be written where it lies") {
  std::vector<std::string> lines = {
      "{'tensor': 'embed', 'shape': [8, 2], 'dtype': 'bf16'}",
      "{'tensor': 'lm_head', 'alias_of': 'embed'}",
      "{'side': 'from', 'tensor': 'embed', 'mesh': 'tp=2', 'placements': 'S(0)'}",
      "{'side': 'to', 'tensor': 'embed', 'mesh': 'tp=2', 'ranks': '2-3', 'placements': 'S(0)'}",
      "{'side': 'to', 'tensor': 'lm_head', 'mesh': 'tp=2', 'ranks': '4-5', 'placements': 'S(0)'}"};
  auto copy = [](int from, int to, const char* name, const char* box) {
    return fmt::format(
        "{{'from': {{'rank': {}, 'tensor': 'embed', 'box': '{}'}}, "
        "'to': {{'rank': {}, 'tensor': '{}', 'box': '{}'}}}}",
        from, box, to, name, box);
  };
  lines.push_back(copy(0, 2, "embed", "0:4,:"));
  lines.push_back(copy(1, 3, "embed", "4:8,:"));
  CheckReport report = report_of(read(lines));
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].kind == CopyFaultKind::Missing);
  CHECK(report.findings[0].elements == 16);
  CHECK(report.findings[0].mistake == "lm_head is tied to another name, and only that is written");
  lines.push_back(copy(0, 4, "lm_head", "0:4,:"));
  lines.push_back(copy(1, 5, "lm_head", "4:8,:"));
  report = report_of(read(lines));
  CHECK(report.findings.empty());
  CHECK(report.copies.bytes == 64);
}

TEST_CASE("What a file of copies cannot say is refused with its line") {
  check_refused({"{'tensor': 'w', 'shape': [4, 2]}"}, "dtype");
  check_refused({"{'tensor': 'w', 'alias_of': 'x'}"}, "expected a tensor of an earlier line");
  check_refused(with(kHeads, kHeads[0]), "expected each name once");
  check_refused(with(kHeads, "{'side': 'up', 'tensor': 'q', 'mesh': '2'}"), "side");
  check_refused(with(kHeads, "{'side': 'to', 'tensor': 'q', 'mesh': '2', 'placements': 'P(sum)'}"),
                "without Partial");
  check_refused(with(kHeads, "{'side': 'to', 'buffer': 'b', 'mesh': '2', 'fused': ['q:2 k:1 x3']}"),
                "expected sections that end together");
  check_refused(with(kHeads, "{'side': 'to', 'buffer': 'b', 'mesh': '2', 'fused': ['q:2 k:1']}"),
                "the rows of a unit");
  check_refused(with(kHeads,
                     "{'side': 'to', 'buffer': 'b', 'mesh': '3', 'fused': ['k x2 repeat'], "
                     "'placements': 'S(0)'}"),
                "share evenly");
  check_refused(with(kHeads, "{'side': 'to', 'tensor': 'q', 'mesh': '2', 'order': [0, 0]}"),
                "each of the dims");
  auto parts = [](const char* list) {
    return with(kHeads, fmt::format("{{'side': 'to', 'buffer': 'b', 'ranks': '0', 'shape': [4, 3], "
                                    "'dtype': 'bf16', 'parts': [{}]}}",
                                    list));
  };
  check_refused(
      parts("{'tensor': 'q', 'box': '0:3,:'}, {'tensor': 'k', 'box': '0:2,:', 'at': '2,0'}"),
      "do not overlap");
  check_refused(parts("{'tensor': 'q', 'box': '0:3,:', 'at': '2,0'}"), "expected a place");
  check_refused(parts("{'tensor': 'q', 'box': '0:3,:', 'offset': 5}"), "within its 12 elements");
  check_refused(parts("{'tensor': 'q', 'box': '0:2,:', 'offset': 0, 'strides': [2, 1]}"),
                "keep elements apart");
  check_refused(parts("{'tensor': 'q', 'box': '7:9,:'}"), "the end of a box");
  check_refused(parts("{'tensor': 'q', 'box': '8,:'}"), "an index below 8");
  check_refused(parts("{'tensor': 'q', 'box': '9:,:'}"), "the first index of a box");
  std::vector<std::string> model =
      with(with(kHeads, "{'side': 'both', 'tensor': 'q', 'mesh': '1'}"), "");
  model.pop_back();
  check_refused(
      with(
          model,
          "{'from': {'rank': 0, 'tensor': 'q'}, 'to': {'rank': 0, 'tensor': 'q', 'box': '0:4,:'}}"),
      "as many elements");
  check_refused(
      with(model, "{'from': {'rank': 0, 'buffer': 'x'}, 'to': {'rank': 0, 'tensor': 'q'}}"),
      "expected one that a rank has");
  check_refused(with(model,
                     "{'from': {'rank': 0, 'buffer': 'q', 'byte': 3}, 'to': {'rank': 0, 'buffer': "
                     "'q', 'byte': 0}, 'bytes': 2}"),
                "a multiple of 2");
  check_refused(
      with(model,
           "{'from': {'rank': 0, 'buffer': 'q'}, 'to': {'rank': 0, 'buffer': 'q'}, 'of': 1}"),
      "an unknown one");
  model.push_back("{'from': {'rank': 0, 'buffer': 'q'}, 'to': {'rank': 0, 'buffer': 'q'}}");
  CHECK(report_of(read(model)).findings.empty());
  check_refused(with(model, "{'tensor': 'z', 'shape': [1], 'dtype': 'bf16'}"),
                "before the first copy");
  std::istringstream empty, other("{\"reshard_trace\": 1}\n");
  CHECK_THROWS_WITH(check_copies(empty, "e"), Catch::Contains("an empty file"));
  CHECK_THROWS_WITH(check_copies(other, "o"), Catch::Contains("a reshard trace"));
}

TEST_CASE("Right copies are a plan, which is proved and costs what it costs") {
  std::vector<std::string> lines = kHeads;
  lines.insert(lines.end(),
               {"{'side': 'from', 'buffer': 'qkv', 'mesh': '1', 'fused': ['q:2 k:1 v:1 x2']}",
                "{'side': 'to', 'buffer': 'q', 'mesh': '2', 'ranks': '0-1', 'fused': ['q'], "
                "'placements': 'S(0)'}",
                "{'from': {'rank': 0, 'tensor': 'q', 'box': '0:4,:'}, "
                "'to': {'rank': 0, 'tensor': 'q', 'box': '0:4,:'}}",
                "{'from': {'rank': 0, 'buffer': 'qkv', 'box': '4:8,:'}, "
                "'to': {'rank': 1, 'tensor': 'q', 'box': '4:8,:'}}"});
  CheckedCopies copies = read(lines);
  CheckReport report = report_of(read(lines));
  REQUIRE(report.findings.size() == 2);  // rows of k, and of v

  lines.back() =
      "{'from': {'rank': 0, 'tensor': 'q', 'box': '4:8,:'}, 'to': {'rank': 1, 'buffer': 'q'}}";
  copies = read(lines);
  REQUIRE(copies.proved());
  Plan plan = plan_of(copies);
  CHECK_FALSE(check_plan(plan).refutation);
  CHECK(plan.planner == "given");
  REQUIRE(plan.steps.size() == 2);
  CHECK(copy_of(plan.steps[StepId{0}])->moves.elements(0) == 12);
  CHECK(exchange_of(plan.steps[StepId{1}])->messages.size() == 1);
}

TEST_CASE("Drawn right copies are proved as plans, too") {
  test::Prng prng(8);
  for (int i = 0; i < 2000 / test::kOneOf; ++i) {
    test::DrawnModel model = test::draw_model(prng);
    std::vector<test::DrawnCopy> drawn = test::right_copies(model, prng);
    CheckedCopies copies;
    copies.tensors = std::move(model.tensors);
    copies.source = std::move(model.source);
    copies.destination = std::move(model.destination);
    copies.judge = std::make_unique<Judge>(*copies.source, *copies.destination);
    for (const test::DrawnCopy& copy : drawn) copies.judge->copy(copy.from, copy.to, 1);
    copies.faults = copies.judge->finish();
    INFO("case " << i);
    REQUIRE_FALSE(check_plan(plan_of(copies)).refutation);
  }
}

TEST_CASE("Without a rank, what only it has is lost") {
  std::vector<std::string> lines = {
      "{'tensor': 'w', 'shape': [8, 3], 'dtype': 'bf16'}",
      "{'tensor': 'b', 'shape': [4], 'dtype': 'f32'}",
      "{'side': 'from', 'tensor': 'w', 'mesh': '2x2', 'placements': 'RR'}",
      "{'side': 'from', 'buffer': 'b', 'ranks': '1', 'shape': [4], 'dtype': 'f32', 'parts': "
      "[{'tensor': 'b'}]}",
      "{'side': 'to', 'tensor': 'w', 'mesh': '1', 'ranks': '5'}",
      "{'side': 'to', 'buffer': 'b', 'ranks': '5', 'shape': [2], 'dtype': 'f32', 'parts': "
      "[{'tensor': 'b', 'box': '1:3', 'offset': 0}]}"};
  CheckedCopies copies = read(lines);
  std::vector<LostRank> lost =
      lost_without_each(StoredRequests(*copies.source, *copies.destination).requests());
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].rank == Rank{1});
  CHECK(lost[0].bytes == 8);
  REQUIRE(lost[0].tensors.size() == 1);
  CHECK(lost[0].tensors[0].name == "b");
  CHECK(lost[0].tensors[0].first == Box{{1}, {3}});

  lines[2] = "{'side': 'from', 'tensor': 'w', 'mesh': '4', 'placements': 'S(0)'}";
  copies = read(lines);
  lost = lost_without_each(StoredRequests(*copies.source, *copies.destination).requests());
  REQUIRE(lost.size() == 4);
  CHECK(lost[1].tensors.size() == 2);
  CHECK(lost[3].tensors[0].first == Box{{6, 0}, {8, 3}});
}

TEST_CASE("Which ranks have elements of a tensor, and where") {
  std::vector<std::string> lines = kHeads;
  lines.insert(lines.end(),
               {"{'tensor': 'tied', 'alias_of': 'k'}",
                "{'side': 'from', 'buffer': 'qkv', 'mesh': '1', 'fused': ['q:2 k:1 v:1 x2']}",
                "{'side': 'to', 'tensor': 'k', 'mesh': '2', 'ranks': '4-5', 'placements': 'S(1)', "
                "'order': [1, 0]}"});
  CheckedCopies model = read(lines);
  auto rows_of = [&](const char* what, int rank) {
    WhereQuery query = parse_where(what, *model.tensors, "WHAT");
    if (rank >= 0) query.rank = Rank{rank};
    std::vector<LayoutRow> out;
    add_rows(*model.source, "from", query, out);
    add_rows(*model.destination, "to", query, out);
    return out;
  };
  std::vector<LayoutRow> found = rows_of("tied[1:3,0]", -1);
  REQUIRE(found.size() == 3);  // k's rows 0 to 1, then 2 to 3, and column 0 on rank 4
  CHECK((found[0].side == "from" && found[0].buffer == "qkv"));
  CHECK(found[0].box == Box{{1, 0}, {2, 1}});
  CHECK(found[0].place.offset == 15);
  CHECK(found[1].box == Box{{2, 0}, {3, 1}});
  CHECK(found[1].place.offset == 36);
  CHECK((found[2].rank == Rank{4} && found[2].place.offset == 1));
  CHECK(found[2].place.strides[0] == 1);
  CHECK(rows_of("k", 5).size() == 1);
  CHECK(rows_of("v", 5).empty());
  CHECK_THAT(layout_text(found, *model.tensors, 1, 80), Catch::Contains("and 2 more"));
  auto nowhere = [&](const char* what, int rank) {
    WhereQuery query = parse_where(what, *model.tensors, "WHAT");
    query.rank = Rank{rank};
    return nowhere_text(*model.source, *model.destination, {query});
  };
  CHECK(nowhere("v", 5) == "rank 5 has none of it, but rank 0\n");
  CHECK(nowhere("tied[1:3,0]", 5) == "rank 5 has none of it, but rank 0 and 1 more\n");
  CHECK_THROWS_AS(rows_of("w", -1), InputError);
  CHECK_THROWS_AS(rows_of("k[4,:]", -1), InputError);
  CHECK_THROWS_AS(rows_of("k[0]", -1), InputError);
}

TEST_CASE("Names can have what blocks end at") {
  CheckedCopies of = read({"{'tensor': 'a b:1 x2', 'shape': [3], 'dtype': 'f32'}",
                           "{'tensor': 'w', 'shape': [3], 'dtype': 'f32'}",
                           "{'side': 'from', 'tensor': 'a b:1 x2', 'mesh': '1'}",
                           "{'side': 'to', 'tensor': 'w pad4', 'mesh': '1', 'ranks': '1'}"});
  CHECK(numbers_of(*of.source, 0, "a b:1 x2") == Numbers{0, 1, 2});
  CHECK(numbers_of(*of.destination, 1, "w pad4") == Numbers{3, 4, 5, -1});
}

TEST_CASE("A file of copies without anything to judge is refused") {
  std::vector<std::string> lines = {"{'tensor': 'w', 'shape': [3], 'dtype': 'f32'}",
                                    "{'side': 'from', 'tensor': 'w', 'mesh': '1'}"};
  CHECK_THROWS_WITH(report_of(read(lines)),
                    "t.copies: expected buffers of side \"to\", found none");
  lines[0] = "{'tensor': 'w', 'shape': [0], 'dtype': 'f32'}";
  CHECK(report_of(read(lines)).findings.empty());
}
