// SPDX-License-Identifier: BSD-3-Clause
// Tables, ratios and lanes: small values with the expected results written out.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/report/ratios.h"
#include "sim/report/sweep_report.h"
#include "sim/report/table.h"
#include "sim/report/writers/perfetto.h"

using namespace reshard;
using namespace reshard::sim;

TEST_CASE("a table aligns its columns and leaves no trailing blanks") {
  Table table({"name", ">bytes", "note"});
  table.add_row({"a", "10", "x"});
  table.add_row({"µs", "7", ""});
  CHECK(table.text() ==
        "name  bytes  note\n"
        "a        10  x\n"
        "µs        7\n");
  CHECK_THROWS_AS(table.add_row({"short"}), CheckFailure);
}

TEST_CASE(
    "a table fits its width: titles of figures first, then long cells, at blanks and commas") {
  Table table({"name", ">bytes in all", "note"});
  table.add_row({"a,b,c", "10 B", "some words that go on"});
  CHECK(table.text(80) ==
        "name   bytes in all  note\n"
        "a,b,c          10 B  some words that go on\n");
  CHECK(table.text(35) ==
        "name   bytes  note\n"
        "          in\n"
        "         all\n"
        "a,b,c   10 B  some words that go on\n");
  CHECK(table.text(24) ==
        "name   bytes  note\n"
        "          in\n"
        "         all\n"
        "a,b,c   10 B  some words\n"
        "              that go on\n");
  CHECK(wrapped("a,b,c", 2) == std::vector<std::string>{"a,", "b,", "c"});
  CHECK(wrapped("a,b c", 3, " ") == std::vector<std::string>{"a,b", "c"});
  CHECK(wrapped("", 5) == std::vector<std::string>{""});
}

TEST_CASE("notes below a row begin at its second column and end with the table") {
  Table table({">n", "name"});
  table.add_row({"1", "a"});
  table.add_note("one two");
  table.add_note("three");
  table.add_row({"12", "b"});
  CHECK(table.text() ==
        " n  name\n"
        " 1  a\n"
        "    one two\n"
        "    three\n"
        "12  b\n");
  CHECK(table.text(9) ==
        " n  name\n"
        " 1  a\n"
        "    one\n"
        "    two\n"
        "    three\n"
        "12  b\n");
  CHECK(table.rows() == 2);
}

TEST_CASE("words are broken where they alone are wider, figures never") {
  CHECK(wrapped("words that", 3) == std::vector<std::string>{"wor", "ds", "tha", "t"});
  CHECK(wrapped("words that", 3, " ", false) == std::vector<std::string>{"words", "that"});
  CHECK(wrapped("\u00b5\u00b5\u00b5", 2) == std::vector<std::string>{"\u00b5\u00b5", "\u00b5"});
  Table table({"name", ">bytes"});
  table.add_row({"abcdefghijklmno", "1234567890"});
  CHECK(table.text(20) ==
        "name           bytes\n"
        "abcdefgh  1234567890\n"
        "ijklmno\n");
}

TEST_CASE("what would move a terminal's cursor is not printed") {
  Table table({"name"});
  table.add_row({"a\x1b[31mb\nc\x7f"});
  CHECK(table.text() == "name\na\\x1b[31mb\\nc\\x7f\n");
  Facts facts;
  facts.add("name", "a\tb");
  CHECK(facts.text() == "name  a\\tb\n");
}

TEST_CASE("facts put their values in one column") {
  Facts facts;
  facts.add("time", "1 us");
  facts.add("ratio to bound", "1.0000");
  CHECK(facts.text() ==
        "time            1 us\n"
        "ratio to bound  1.0000\n");
}

TEST_CASE("ratios have four decimals, rounded half up, and none at bound 0") {
  CHECK(ratio_text(ratio_e4(104, 100)) == "1.0400");
  CHECK(ratio_text(ratio_e4(1, 3)) == "0.3333");
  CHECK(ratio_text(ratio_e4(20'001, 20'000)) == "1.0001");  // 1.00005 goes up
  CHECK(ratio_text(ratio_e4(1'000'000'000'000'000'000, 1'000'000'000'000'000'000)) == "1.0000");
  CHECK_FALSE(ratio_e4(5, 0).has_value());
  CHECK(ratio_text(std::nullopt) == "-");
}

TEST_CASE("overlapping slices go to different lanes, touching ones share") {
  CHECK(pack_lanes({{0, 10}, {0, 5}, {5, 7}, {10, 12}, {11, 13}}) ==
        std::vector<std::int32_t>{0, 1, 1, 0, 1});
  CHECK(pack_lanes({{3, 3}, {3, 3}, {3, 9}}) ==
        std::vector<std::int32_t>{0, 0, 0});  // empty slices overlap nothing
  CHECK_THROWS_AS(pack_lanes({{5, 6}, {4, 5}}), CheckFailure);
}

TEST_CASE("stretches join what overlaps and part what touches") {
  std::vector<Stretch> found = stretches({{0, 4}, {2, 6}, {6, 8}, {9, 10}});
  REQUIRE(found.size() == 3);
  CHECK((found[0].start == 0 && found[0].end == 6 && found[0].first == 0 && found[0].count == 2));
  CHECK((found[1].start == 6 && found[1].end == 8 && found[1].count == 1));
  CHECK((found[2].start == 9 && found[2].end == 10 && found[2].first == 3));
}

TEST_CASE("gaps that are short enough are parts of a stretch") {
  std::vector<Slice> slices{{0, 4}, {4, 6}, {8, 9}, {12, 13}};
  CHECK(stretches(slices).size() == 4);
  std::vector<Stretch> found = stretches(slices, 3);
  REQUIRE(found.size() == 2);
  CHECK((found[0].start == 0 && found[0].end == 9 && found[0].first == 0 && found[0].count == 3));
  CHECK((found[1].start == 12 && found[1].end == 13 && found[1].first == 3));
}

TEST_CASE("p2p wins its communicators back after as many uses as all others allow") {
  auto row = [](const char* planner, std::int64_t time_ps, std::int64_t first_use_ps) {
    sim::SweepRow out;
    out.planner = planner;
    out.time_ps = time_ps;
    out.first_use_ps = first_use_ps;
    return out;
  };
  auto after = [&](std::vector<sim::SweepRow> rows) {
    sim::win_back(rows);
    CHECK_FALSE(rows[1].won_back_after);
    return rows[0].won_back_after.value_or(-1);
  };
  // 1000 + 10 n <= 400 + 25 n from n = 40 on.
  CHECK(after({row("p2p", 10, 1'000), row("rule", 25, 400)}) == 40);
  CHECK(after({row("p2p", 10, 1'001), row("rule", 25, 400)}) == 41);
  // The first use is enough where it costs no more.
  CHECK(after({row("p2p", 10, 400), row("rule", 25, 400)}) == 1);
  CHECK(after({row("p2p", 10, 400), row("rule", 10, 400)}) == 1);
  // Never: as fast and dearer, slower and dearer.
  CHECK(after({row("p2p", 10, 401), row("rule", 10, 400)}) == -1);
  CHECK(after({row("p2p", 11, 400), row("rule", 10, 400)}) == -1);
  // Of two others one allows it from 40 on, the other up to 30 and up to 50; auto does not count.
  CHECK(after({row("p2p", 10, 1'000), row("rule", 25, 400), row("hybrid", 9, 1'030)}) == -1);
  CHECK(after({row("p2p", 10, 1'000), row("rule", 25, 400), row("hybrid", 9, 1'050)}) == 40);
  CHECK(after({row("p2p", 10, 1'000), row("rule", 25, 400), row("auto", 1, 1)}) == 40);
}
