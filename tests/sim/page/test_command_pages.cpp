// SPDX-License-Identifier: BSD-3-Clause
// Pages of replays, sweeps and validations show the same as their reports.
#include <algorithm>
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "core/base/units.h"
#include "sim/dispatch/dispatch.h"
#include "sim/page/pages.h"
#include "sim/page/panels/panels.h"
#include "sim/report/facts.h"
#include "tests/sim/page/page_cases.h"
#include "tests/sim/replay/replay_case.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

using List = std::vector<std::string>;

// The cells of a panel's rows, "a|b|c" each.
List rows_of(pugi::xml_node within) {
  List out;
  for (const auto& row : within.select_nodes(".//tbody/tr")) {
    std::string text;
    for (pugi::xml_node cell : row.node().children())
      text += (text.empty() ? "" : "|") + std::string(cell.text().get());
    out.push_back(text);
  }
  return out;
}

ReplayReport replayed(const Topology& topology) {
  test::Rig rig(topology);
  rig.options.critical_path = rig.options.work = true;
  return rig.replay(test::trace_of(
      R"({"reshard_trace": 1, "meshes": {"tp": "4"}})",
      {test::redistribute("f32", "[64, 64]", "S(0)", "S(1)", "tp", R"(, "name": "small")"),
       test::redistribute("f32", "[65536, 64]", "S(0)", "R", "tp", R"(, "name": "large <1>")"),
       test::redistribute("f32", "[64, 64]", "S(0)", "S(1)", "tp", R"(, "name": "again")")}));
}

}  // namespace

TEST_CASE("a replay's page has its operations, and kinds of them by time") {
  Topology topology = find_topology("dgx-h100:1");
  ReplayReport report = replayed(topology);
  std::string text = replay_page(report, topology);
  CHECK(text == replay_page(report, topology));
  ReadPage page(text);
  CHECK(page.figure("time") == duration_text(report.time_ps));
  CHECK(page.figure("bound") == duration_text(report.bound_ps));
  CHECK(page.figure("received") == bytes_text(report.bytes_received_total));
  CHECK(page.figure("operations") == "3");
  List rows = rows_of(page.panel("operations").child("details"));
  REQUIRE(rows.size() == 3);
  const ReplayRow& large = report.requests[1];
  CHECK(rows[1] == fmt::format("3|redistribute|large <1>|{}|{}|{}|{}|{}", large.planner,
                               duration_text(*large.start_ps),
                               duration_text(*large.end_ps - *large.start_ps),
                               bytes_text(large.bytes_received), large.text));
  List kinds = rows_of(page.panel("operations").child("div"));
  REQUIRE(kinds.size() == 2);
  CHECK(kinds[0].starts_with("1|" + large.text));
  CHECK(kinds[1].starts_with("2|" + report.requests[0].text));
  // Of each rank the redistribution in which it holds most.
  pugi::xml_node memory = page.panel("memory");
  CHECK(rows_of(memory)[0].starts_with("0-3|4.000 MiB|16.000 MiB|"));
  CHECK(page.count("//section[@id='timeline']//g[@class='lane']/rect") == 12);
}

TEST_CASE("a replay's page says what PyTorch gets wrong, and has no such panel where it does not") {
  Topology topology = find_topology("dgx-h100:1");
  ReplayReport report = replayed(topology);
  CHECK(!ReadPage(replay_page(report, topology)).panel("not-as-pytorch"));
  auto dispatched = std::make_shared<DispatchReport>();
  DispatchedCall call{7, "", "", "", nullptr, &find_operator("mm"), {}, {}};
  dispatched->calls = {call, call};
  report.dispatch = dispatched;
  CHECK(!ReadPage(replay_page(report, topology)).panel("not-as-pytorch"));
  dispatched->calls[1].decision.corrected = "PyTorch 2.15 hangs here";
  ReadPage page(replay_page(report, topology));
  CHECK(rows_of(page.panel("not-as-pytorch")) == List{"line 7|mm|PyTorch 2.15 hangs here"});
}

TEST_CASE("a replay's page says who came late, what waited for its turn, and what policies cost") {
  Topology topology = find_topology("dgx-h100:1");
  ReplayReport report = replayed(topology);
  CHECK(!ReadPage(replay_page(report, topology)).panel("waits"));
  CHECK(!ReadPage(replay_page(report, topology)).panel("communicators"));
  report.late = {{OpId{1}, Rank{3}, 9'000, 2'000, 6'000}};
  report.reordered = Reordered{{{Rank{0}, OpId{2}, OpId{1}, 500, 0, "needless", "x"},
                                {Rank{2}, OpId{2}, OpId{1}, 5'000, 4'000, "again", "large"}},
                               {},
                               report.time_ps,
                               1};
  report.communicators.resize(2);
  report.communicators[1].hang = "it waits";
  ReadPage page(replay_page(report, topology));
  CHECK(rows_of(page.panel("waits")) == List{"line 3|3|9.000 ns|2.000 ns|6.000 ns",
                                             "again|line 4|2|large|line 3|5.000 ns|4.000 ns"});
  List policies = rows_of(page.panel("communicators"));
  REQUIRE(policies.size() == 2);
  CHECK(policies[0].ends_with("|0|0 ps"));
  CHECK(policies[1].ends_with("|-|hangs"));
}

TEST_CASE("a comparison's page names whose figures are whose, and folds long lists") {
  auto report = [](std::int64_t time_ps) {
    std::string links;
    for (int i = 0; i < 30; ++i)
      links +=
          fmt::format(R"({}{{"name": "link{}", "busy_ps": {}}})", i > 0 ? "," : "", i, time_ps + i);
    return fmt::format(R"({{"schema": "reshard.simulate/1", "time_ps": {}, "peak_bytes_max": 64,
                            "links": [{}]}})",
                       time_ps, links);
  };
  ReadPage page(
      compare_page(compare_reports(report(1'000'000), "old.json", report(500'000), "new.json")));
  CHECK(page.figure("time of b") == "500.000 ns");
  CHECK(page.figure("peak memory") == "64 B");
  CHECK(page.count("//li[.='b: new.json']") == 1);
  pugi::xml_node links = page.panel("list0");
  CHECK(links.child("h2").text().get() == std::string("Links"));
  CHECK(rows_of(links.child("div")).size() == 12);
  CHECK(rows_of(links.child("details")).size() == 30);
}

TEST_CASE("a sweep's page has a row per planner and one per pair") {
  SweepReport report;
  report.shape = Shape{8, 8};
  report.dtype = DType::F32;
  report.topology = "star";
  report.meshes = {"2"};
  report.planners = {"rule", "p2p"};
  report.pairs = 3;
  report.planned = 2;
  report.rows = {{"2", "R", "S(0)", "rule", 100, 4, 100, {}, ""},
                 {"2", "R", "S(0)", "p2p", 300, 4, 100, {}, ""},
                 {"2", "S(0)", "S(1)", "rule", 400, 4, 100, {}, ""},
                 {"2", "S(0)", "S(1)", "p2p", std::nullopt, std::nullopt, 100, {}, "why not"}};
  ReadPage page(sweep_page(report));
  CHECK(page.figure("requests") == "3");
  CHECK(page.figure("planned and proved") == "2");
  CHECK(rows_of(page.panel("planners")) ==
        List{"2|rule|2|1|0|2.0000|4.0000|S(0) -> S(1)|-", "2|p2p|1|0|1|3.0000|3.0000|R -> S(0)|-"});
  CHECK(rows_of(page.panel("pairs")) ==
        List{"2|R|S(0)|100 ps|1.0000|3.0000", "2|S(0)|S(1)|100 ps|4.0000|refused"});
}

TEST_CASE("a validation's page has predicted beside measured") {
  StudiedRun run = studied(request_on("4", "64,64", "S(0)", "S(1)"), "dgx-h100:1", "rule");
  std::vector<Timeline> runs;
  for (std::int64_t times : {2, 3, 7}) {
    Timeline timeline = run.study->timeline();
    for (Span& span : timeline.spans) {
      span.start_ps *= times;
      span.end_ps *= times;
    }
    timeline.end_ps *= times;
    runs.push_back(timeline);
  }
  ValidateReport report(run.report);
  report.backend = "mpi";
  report.iterations = 3;
  report.measured = times_of(runs, run.report.steps.size());
  report.values.shards = {{TensorId{0}, Rank{0}, 1000, Digest{}, std::nullopt, std::nullopt}};
  report.values.shards[0].wrong =
      PatternMismatch{.count = 5, .index = 0, .expected = 1, .found = 2};
  ReadPage page(validate_page(report, *run.study, runs[1]));
  CHECK(page.figure("measured") == duration_text(3 * run.report.time_ps));
  CHECK(page.figure("predicted") == duration_text(run.report.time_ps));
  CHECK(page.figure("measured to predicted") == "3.0000");
  CHECK(page.figure("wrong elements") == "5");
  CHECK(page.panel("measured-timeline"));
  List rows = rows_of(page.panel("measured"));
  REQUIRE(rows.size() == run.report.steps.size() + 1);
  std::int64_t ps = run.report.time_ps;
  CHECK(rows.back() == fmt::format("all|{}|{}|{}|{}|3.0000", duration_text(ps),
                                   duration_text(3 * ps), duration_text(2 * ps),
                                   duration_text(7 * ps)));
}

TEST_CASE("bars of a validation share a scale only where the machine is the one predicted") {
  StudiedRun run = studied(request_on("4", "64,64", "S(0)", "S(1)"), "dgx-h100:1", "rule");
  for (bool same : {false, true}) {
    ValidateReport report(run.report);
    report.models_this_machine = same;
    report.measured.steps.resize(run.report.steps.size());
    report.measured.total = {4 * run.report.time_ps, run.report.time_ps, 9 * run.report.time_ps};
    pugi::xml_document document;
    Node panel = add(document, "section");
    draw_measured(panel, report);
    auto width = [&](const char* of) {
      return panel.select_node(fmt::format("//rect[@class='{}']/@width", of).c_str())
          .attribute()
          .as_double();
    };
    CHECK(width("measured") / width("predicted") == Approx(same ? 4 : 1));
    CHECK(panel.select_nodes("p").size() == (same ? 0u : 1u));
    // A line to the greatest would leave the picture.
    CHECK(panel.select_node("//line/@x2").attribute().as_double() <=
          panel.select_node("//svg/@width").attribute().as_double());
  }
}

TEST_CASE("a line to more than the picture holds ends in an arrow, which the legend explains") {
  StudiedRun run = studied(request_on("4", "64,64", "S(0)", "S(1)"), "dgx-h100:1", "rule");
  for (std::int64_t most : {1, 2}) {
    ValidateReport report(run.report);
    report.measured.steps.resize(run.report.steps.size());
    report.measured.total = {100, 100, 100 * most};
    pugi::xml_document document;
    Node panel = add(document, "section");
    draw_measured(panel, report);
    CHECK(panel.select_nodes("//path[@class='spread']").size() == (most > 1 ? 1u : 0u));
    CHECK(panel.select_nodes("//li[starts-with(.,'arrow:')]").size() == (most > 1 ? 1u : 0u));
  }
}

TEST_CASE("why a plan was not taken") {
  using Alternative = Explanation::Alternative;
  std::vector<Alternative> alternatives = {
      {.planner = "slow", .time_ps = 3'000'000, .peak_bytes = 1024},
      {.planner = "best",
       .time_ps = 1'000'000,
       .first_use_ps = 500'000,
       .peak_bytes = 2048,
       .taken = true},
      {.planner = "like", .time_ps = 1'500'000, .peak_bytes = 2048},
      {.planner = "fat", .time_ps = 1'500'000, .peak_bytes = 4096},
      {.planner = "huge", .peak_bytes = 1 << 20},
      {.planner = "none", .refusal = "planner none: does not do such requests"}};
  pugi::xml_document document;
  Node panel = add(document, "section");
  draw_alternatives(panel, alternatives, 750'000);
  CHECK(rows_of(panel) == List{"slow|3.000 us|4.0000|1.000 KiB|2.0000 times as long",
                               "best|1.500 us|2.0000|2.000 KiB|taken",
                               "like|1.500 us|2.0000|2.000 KiB|equal; the first one is taken",
                               "fat|1.500 us|2.0000|4.000 KiB|as fast, but needs more memory",
                               "huge|-|-|1.000 MiB|needs more memory than the limit",
                               "none|-|-|-|planner none: does not do such requests"});
  auto bars = panel.select_nodes("//svg/rect");
  REQUIRE(bars.size() == 4);
  auto number = [](const pugi::xpath_node& of, const char* name) {
    return of.node().attribute(name).as_double();
  };
  CHECK(number(bars[1], "width") == Approx(number(bars[0], "width") / 2).margin(0.01));
  CHECK(std::string(bars[1].node().attribute("class").value()) == "taken");
  pugi::xml_node bound = panel.select_node("//line[@class='bound']").node();
  CHECK(bound.attribute("x1").as_double() - number(bars[0], "x") ==
        Approx(number(bars[0], "width") / 4).margin(0.01));
}

TEST_CASE("auto says what it weighed") {
  StudiedRun run = studied(request_on("2x4", "64,64", "S(0)S(1)", "RS(0)"), "dgx-h100:1");
  const auto& alternatives = run.report.alternatives;
  REQUIRE(alternatives.size() == planners().size() - 1);
  std::size_t taken = 0;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    CHECK(alternatives[i].planner == planners()[i].name);
    if (!alternatives[i].taken) continue;
    ++taken;
    CHECK(alternatives[i].planner == run.report.planner);
    CHECK(alternatives[i].time_ps == run.report.time_ps);
    CHECK(alternatives[i].peak_bytes == run.report.bytes.peak_max);
  }
  CHECK(taken == 1);
}
