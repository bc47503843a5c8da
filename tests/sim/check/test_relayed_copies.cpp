// SPDX-License-Identifier: BSD-3-Clause
// Copies over relays, in an order of their own, and sources that change in between.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <map>

#include "core/base/errors.h"
#include "sim/check/check_report.h"
#include "sim/check/copies_plan.h"
#include "tests/sim/check/check_lines.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

namespace {

// w of 12 elements from rank 0 to rank 2, over 4 elements of rank 1.
const std::vector<std::string> kSides = {
    "{'tensor': 'w', 'shape': [4, 3], 'dtype': 'bf16'}",
    "{'side': 'from', 'tensor': 'w', 'mesh': '1'}",
    "{'side': 'to', 'tensor': 'w', 'mesh': '1', 'ranks': '2'}",
    "{'side': 'relay', 'buffer': 'staging', 'ranks': '1', 'shape': [4], 'dtype': 'bf16'}"};

std::string in(int element, int place, int count, const std::string& more) {
  return fmt::format(
      "{{'from': {{'rank': 0, 'buffer': 'w', 'offset': {}}}, 'to': {{'rank': 1, 'buffer': "
      "'staging', 'offset': {}}}, 'count': {}{}}}",
      element, place, count, more);
}

std::string out(int place, int element, int count, const std::string& more) {
  return fmt::format(
      "{{'from': {{'rank': 1, 'buffer': 'staging', 'offset': {}}}, 'to': {{'rank': 2, 'buffer': "
      "'w', 'offset': {}}}, 'count': {}{}}}",
      place, element, count, more);
}

std::vector<std::string> said(const std::vector<std::string>& lines) {
  CheckReport report = report_of(read(lines));
  std::vector<std::string> out;
  for (const Finding& finding : report.findings) out.push_back(finding_text(report, finding));
  return out;
}

std::vector<std::string> in_turn() {
  std::vector<std::string> lines = kSides;
  for (int bucket = 0; bucket < 3; ++bucket) {
    std::string before = bucket == 0 ? "" : fmt::format(", 'after': 'out{}'", bucket - 1);
    lines.push_back(in(4 * bucket, 0, 4, fmt::format(", 'id': 'in{}'{}", bucket, before)));
    lines.push_back(
        out(0, 4 * bucket, 4, fmt::format(", 'id': 'out{0}', 'after': ['in{0}']", bucket)));
  }
  return lines;
}

}  // namespace

TEST_CASE("Buckets go over a relay one after the other") {
  CHECK(said(in_turn()).empty());
  CHECK(read(in_turn()).bytes == 24);
  CHECK_THROWS_WITH(plan_of(read(in_turn())), Catch::Contains("found relays"));
  std::vector<std::string> lines = in_turn();
  lines[4 + 2] = in(4, 0, 4, ", 'id': 'in1', 'after': 'in0'");
  CHECK(said(lines) == std::vector<std::string>{
                           "torn: rank 2: w[0,:] is overwritten in 'staging' of rank 1 while line "
                           "7 may read it; lines 7, 8; 2 places"});
  lines = in_turn();
  lines[4 + 3] = out(0, 4, 4, ", 'id': 'out1'");
  // Nor does the next bucket wait for line 8.
  REQUIRE(said(lines).size() == 1);
  CHECK_THAT(said(lines).front(), Catch::Contains("while line 8 may not have written it yet") &&
                                      Catch::Contains("lines 8, 9, 10; 4 places"));
  lines = in_turn();
  lines[4 + 5] = out(1, 8, 3, ", 'after': 'in2'");
  CHECK(said(lines).size() == 3);  // two rows that are shifted by one, and a missing element
}

TEST_CASE("In the order of lines, what was written last is read") {
  std::vector<std::string> lines = kSides;
  lines.push_back(in(0, 0, 4, ""));
  lines.push_back(out(0, 0, 4, ""));
  lines.push_back(in(4, 0, 4, ""));
  lines.push_back(out(0, 4, 4, ""));
  lines.push_back(in(8, 0, 4, ""));
  lines.push_back(out(0, 8, 4, ""));
  std::string text = "{'reshard_check': 1, 'order': 'lines'}\n";
  for (const std::string& line : lines) text += line + "\n";
  std::replace(text.begin(), text.end(), '\'', '"');
  std::istringstream ordered(text);
  CHECK(check_copies(ordered, "t.copies").proved());
  CHECK_FALSE(read(lines).proved());  // all at once
}

TEST_CASE("A source that changes is read before or afterwards, not both") {
  std::vector<std::string> lines(kSides.begin(), kSides.end() - 1);
  auto copy = [](int row, const std::string& more) {
    return fmt::format(
        "{{'from': {{'rank': 0, 'tensor': 'w', 'box': '{0},:'}}, 'to': {{'rank': 2, "
        "'tensor': 'w', 'box': '{0},:'}}{1}}}",
        row, more);
  };
  auto change = [](const char* more) {
    return fmt::format("{{'update': 'step 2', 'ranks': '0'{}}}", more);
  };
  for (int row = 0; row < 3; ++row) lines.push_back(copy(row, fmt::format(", 'id': {}", row)));
  std::vector<std::string> before = lines;
  before.push_back(copy(3, ", 'id': 3"));
  before.push_back(change(", 'after': [0, 1, 2, 3]"));
  CHECK(said(before).empty());
  before.back() = change(", 'after': [0, 1, 3]");
  CHECK(said(before) == std::vector<std::string>{
                            "torn: rank 2: w[2,:] in 'w' may be read while 'step 2' changes it; "
                            "lines 7, 9"});
  before.back() = change(", 'buffer': 'other', 'after': [0]");
  CHECK(said(before).empty());
  std::vector<std::string> mixed = lines;
  mixed.push_back(change(", 'id': 'step', 'after': [0, 1, 2]"));
  mixed.push_back(copy(3, ", 'after': 'step'"));
  CHECK(said(mixed) ==
        std::vector<std::string>{"torn: rank 2: w[3,:] in 'w' is read after 'step 2', though "
                                 "others are read before it; lines 8, 9"});
  // Over a relay, too.
  std::vector<std::string> relayed = in_turn();
  relayed.push_back(change(", 'after': ['in0', 'in1', 'in2']"));
  CHECK(said(relayed).empty());
  relayed.back() = change(", 'after': ['in1']");
  CHECK(said(relayed).size() == 1);
}

TEST_CASE("What cannot be in order is refused") {
  auto refused = [](const std::string& line, const char* what) {
    check_refused(with(kSides, line), what);
  };
  refused(in(0, 0, 1, ", 'after': 'nobody'"), "ids of earlier lines, found 'nobody'");
  refused(in(0, 0, 1, ", 'after': [[1]]"), "the id of an earlier line");
  refused("{'side': 'relay', 'buffer': 'w', 'ranks': '0', 'shape': [1], 'dtype': 'bf16'}",
          "a name that rank 0 has not");
  refused("{'side': 'relay', 'buffer': 'staging', 'ranks': '1', 'shape': [1], 'dtype': 'bf16'}",
          "each name once on rank 1");
  refused("{'update': 'x', 'ranks': '0', 'rows': 1}", "rows");
  check_refused(with(with(kSides, in(0, 0, 1, ", 'id': 7")), in(0, 1, 1, ", 'id': 7")),
                "each id once, found '7' again");
  std::vector<std::string> bytes = kSides;
  check_refused(with(kSides,
                     "{'from': {'rank': 0, 'buffer': 'w', 'offset': 0, 'extents': [2, 2], "
                     "'strides': [3, 1]}, 'to': {'rank': 1, 'buffer': 'staging', 'offset': "
                     "0, 'extents': [2, 2], 'strides': [1, 1]}}"),
                "strides that overlap");
  bytes[3] = "{'side': 'relay', 'buffer': 'staging', 'ranks': '1', 'shape': [8], 'dtype': 'u8'}";
  check_refused(with(bytes,
                     "{'from': {'rank': 0, 'buffer': 'w', 'byte': 0}, 'to': {'rank': 1, 'buffer': "
                     "'staging', 'byte': 0}, 'bytes': 8}"),
                "a relay of the dtype that it gets, found u8 for bf16");
}

// All copies in order, each from anywhere to anywhere: what arrives is what it would be.
TEST_CASE("Drawn copies over relays, compared with moving the numbers") {
  Prng prng(5);
  int wrong = 0, right = 0;
  for (int i = 0; i < 20'000 / kOneOf; ++i) {
    std::string text =
        "{'reshard_check': 1, 'order': 'lines'}\n"
        "{'tensor': 'w', 'shape': [2, 3], 'dtype': 'bf16'}\n"
        "{'side': 'from', 'tensor': 'w', 'mesh': '1'}\n"
        "{'side': 'to', 'tensor': 'w', 'mesh': '1', 'ranks': '2'}\n"
        "{'side': 'relay', 'buffer': 'r', 'ranks': [1, 3], 'shape': [6], 'dtype': 'bf16'}\n";
    std::map<int, Numbers> memory{
        {0, {0, 1, 2, 3, 4, 5}}, {1, Numbers(6, -1)}, {2, Numbers(6, -1)}, {3, Numbers(6, -1)}};
    Numbers times(6, 0);
    auto move = [&](int from, std::int64_t at, int to, std::int64_t there, std::int64_t rows,
                    std::int64_t columns, std::int64_t step) {
      const char* names[] = {"w", "r", "w", "r"};
      text += fmt::format(
          "{{'from': {{'rank': {}, 'buffer': '{}', 'offset': {}, 'extents': [{}, {}], 'strides': "
          "[{}, 1]}}, 'to': {{'rank': {}, 'buffer': '{}', 'offset': {}}}, 'count': {}}}\n",
          from, names[from], at, rows, columns, step, to, names[to], there, rows * columns);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
          std::int64_t place = there + r * columns + c;
          memory[to][to_index(place)] = memory[from][to_index(at + r * step + c)];
          if (to == 2) ++times[to_index(place)];
        }
    };
    auto draw = [&](int from, int to) {
      std::int64_t rows = prng.between(1, 2), columns = prng.between(1, 3),
                   step = prng.between(columns, 3);
      std::int64_t room = 6 - ((rows - 1) * step + columns);
      move(from, prng.between(0, room), to, prng.between(0, 6 - rows * columns), rows, columns,
           step);
    };
    bool plain = prng.one_in(3);
    if (plain) move(0, 0, 1, 0, 2, 3, 3);
    for (std::int64_t n = prng.between(0, plain ? 1 : 3); n > 0; --n) draw(0, 1);
    if (prng.one_in(4)) draw(1, 3);
    if (prng.one_in(4)) draw(3, 1);
    if (plain || prng.one_in(2))
      for (int half = 0; half < 2; ++half) move(1, 3 * half, 2, 3 * half, 1, 3, 3);
    else
      draw(1, 2);
    std::replace(text.begin(), text.end(), '\'', '"');
    std::istringstream lines(text);
    INFO(text);
    bool is_right = memory[2] == Numbers{0, 1, 2, 3, 4, 5} && times == Numbers(6, 1);
    REQUIRE(check_copies(lines, "t.copies").proved() == is_right);
    (is_right ? right : wrong)++;
  }
  CHECK(right > 1'000 / kOneOf);
  CHECK(wrong > 5'000 / kOneOf);
}
