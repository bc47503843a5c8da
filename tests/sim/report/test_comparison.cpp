// SPDX-License-Identifier: BSD-3-Clause
// Comparing two reports: what is paired with what, which unit a figure has, and what is refused.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "sim/report/comparison.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

Comparison compared(const std::string& a, const std::string& b) {
  return compare_reports(a, "a.json", b, "b.json");
}
std::string simulate(const std::string& fields) {
  return R"({"schema": "reshard.simulate/1")" + (fields.empty() ? "" : ", " + fields) + "}";
}

}  // namespace

TEST_CASE("comparison: figures have the unit of their name, texts stay texts") {
  Comparison found = compared(
      simulate(R"("time_ps": 1000000, "bound": {"cut_ps": 5, "limited_by": "cut"}, "ratio": 2.5,
                  "bytes_by_class": {"nvlink": 2048}, "measured_ps": {"median": 7000},
                  "algbw_bytes_per_s": 1000000000, "peak_bytes_max": 1, "checked": true)"),
      simulate(R"("time_ps": 1500000, "bound": {"cut_ps": 5, "limited_by": "volume"}, "ratio": 2,
                  "bytes_by_class": {"nvlink": 1024, "pcie": 1}, "measured_ps": {"median": null},
                  "algbw_bytes_per_s": 3000000000, "peak_bytes_max": 1, "checked": false)"));
  std::vector<std::string> lines;
  for (const ComparedFigure& each : found.figures)
    lines.push_back(each.name + ": " + (each.a ? each.a->text() : "-") + ", " +
                    (each.b ? each.b->text() : "-") + ", " + change_text(each.change()));
  CHECK(lines == std::vector<std::string>{
                     "time_ps: 1.000 us, 1.500 us, +50.0 %", "bound.cut_ps: 5 ps, 5 ps, +0.0 %",
                     "ratio: 2.5, 2, -20.0 %",
                     "bytes_by_class.nvlink: 2.000 KiB, 1.000 KiB, -50.0 %",
                     "bytes_by_class.pcie: -, 1 B, -", "measured_ps.median: 7.000 ns, -, -",
                     "algbw_bytes_per_s: 1.000 GB/s, 3.000 GB/s, +200.0 %",
                     "peak_bytes_max: 1 B, 1 B, +0.0 %"});
  REQUIRE(found.texts.size() == 2);
  CHECK(found.texts[0].name == "bound.limited_by");
  CHECK(found.texts[0].b == "volume");
  CHECK(found.texts[1].a == "true");
  CHECK(found.differs());
}

TEST_CASE("comparison: objects of lists are paired by what names them") {
  Comparison found = compared(
      simulate(R"("links": [{"name": "x", "bytes": 5, "busy_ps": 1}, {"name": "y", "bytes": 7}],
                  "steps": [{"kind": "copy", "bytes": 1}], "critical_path": [{"step": 1}],
                  "rows": [{"mesh": "2", "from": "R", "to": "S0", "planner": "p", "time_ps": 3},
                   {"mesh": "2", "from": "R", "to": "S0", "planner": "p", "time_ps": 4}])"),
      simulate(R"("links": [{"name": "z", "bytes": 1}, {"name": "x", "bytes": 50, "busy_ps": 2}],
                  "steps": [{"kind": "copy", "bytes": 9}, {"kind": "fill"}], "critical_path": [],
                  "rows": [{"mesh": "2", "from": "R", "to": "S0", "planner": "p", "time_ps": 3},
                   {"mesh": "2", "from": "R", "to": "S0", "planner": "p", "time_ps": 6}])"));
  REQUIRE(found.lists.size() == 3);
  const ComparedList& links = found.lists[0];
  CHECK(links.only_a == std::vector<std::string>{"y"});
  CHECK(links.only_b == std::vector<std::string>{"z"});
  REQUIRE(links.differing.size() == 2);
  // Times before bytes, though the bytes differ by more.
  CHECK(links.differing[0].figure.name == "busy_ps");
  CHECK(links.differing[1].figure.b->integer == 50);
  CHECK(links.differing[1].key == "x");
  const ComparedList& steps = found.lists[1];
  CHECK(steps.count_b == 2);
  CHECK(steps.only_b == std::vector<std::string>{"1"});
  CHECK(steps.differing.at(0).key == "0");
  const ComparedList& rows = found.lists[2];
  REQUIRE(rows.differing.size() == 1);
  CHECK(rows.differing[0].key == "2 R S0 p (2)");
}

TEST_CASE("comparison: the greatest difference of a unit comes first") {
  Comparison found =
      compared(simulate(R"("links": [{"name": "x", "bytes": 5}, {"name": "y", "bytes": 9}])"),
               simulate(R"("links": [{"name": "x", "bytes": 6}, {"name": "y", "bytes": 1}])"));
  CHECK(found.lists.at(0).differing.at(0).key == "y");
}

TEST_CASE("comparison: equal reports differ in nothing, plan and simulate may be mixed") {
  std::string report = simulate(R"("time_ps": 5, "links": [{"name": "x", "bytes": 5}])");
  CHECK_FALSE(compared(report, report).differs());
  CHECK(comparison_table(compared(report, report), 8, 80) ==
        "a  a.json\nb  b.json\n\nNothing differs.\n");
  CHECK_FALSE(compared(simulate(""), R"({"schema": "reshard.plan/1"})").differs());
}

TEST_CASE("comparison: what is no report is refused by name") {
  for (const char* wrong : {"", "{", "[]", "7", "{}", R"({"schema": 1})", R"({"schema": "x/1"})"})
    CHECK_THROWS_WITH(compared(simulate(""), wrong),
                      Catch::StartsWith("b.json: expected a report printed by reshard"));
  CHECK_THROWS_WITH(compared(simulate(""), R"({"schema": "reshard.sweep/1"})"),
                    "b.json: expected a report of 'simulate' as in a.json, found one of 'sweep'");
}

TEST_CASE("comparison: JSON holds all, exactly") {
  Comparison found = compared(simulate(R"("time_ps": 9007199254740993, "r": 0.5)"),
                              simulate(R"("time_ps": 9007199254740992, "links": [{"name": "x"}])"));
  auto json = nlohmann::json::parse(comparison_json(found));
  CHECK(json["differs"] == true);
  CHECK(json["figures"][0]["a"] == 9007199254740993);
  CHECK(json["figures"][1]["b"].is_null());
  CHECK(json["lists"][0]["only_b"][0] == "x");
  CHECK(json["a"]["file"] == "a.json");
}

TEST_CASE("comparison: limits to how much a figure may change") {
  Comparison found =
      compared(simulate(R"("time_ps": 1000000, "bytes_received_total": 0, "bound": {"cut_ps": 500},
                  "algbw_bytes_per_s": 1000, "peak_bytes_max": 4096, "ratio_to_bound": null)"),
               simulate(R"("time_ps": 1100000, "bytes_received_total": 1, "bound": {"cut_ps": 500},
                  "algbw_bytes_per_s": 900, "peak_bytes_max": 2048, "ratio_to_bound": null)"));
  auto passed = [&](const char* limits) {
    auto checked = checked_limits(found, parse_limits(limits, "--fail-on"), "--fail-on");
    return std::count_if(checked.begin(), checked.end(),
                         [](const CheckedLimit& limit) { return limit.is_passed; });
  };
  CHECK(passed("time>5%") == 1);
  CHECK(passed("time>10%") == 0);
  CHECK(passed("time>9.9%, time > 99ns ,time>100ns,time>0") == 3);
  CHECK(passed("bytes>0") == 1);
  CHECK(passed("bytes>1000%") == 1);  // from nothing
  CHECK(passed("bytes>1") == 0);
  CHECK(passed("peak>0%,peak<0%,peak<-49%,peak<-50%,peak<-1KiB") == 3);
  CHECK(passed("algbw_bytes_per_s<-5%") == 1);
  CHECK(passed("bound.cut_ps>0,bound.cut_ps<0") == 0);
  CHECK(checked_limits(found, parse_limits("time>5%", "f"), "f").front().found ==
        "time>5%: time_ps is 1.100 us, was 1.000 us (+10.0 %)");
  for (const char* wrong :
       {"", "time", "time>", ">5", "time>5%,", "time>x", "time>%", "time>1%%", "time>nan",
        "time>inf%", "tame>5%", "ratio>0", "time>5 parsecs", "time>--5", "time=5"}) {
    INFO(wrong);
    CHECK_THROWS_AS(passed(wrong), InputError);
  }
}
