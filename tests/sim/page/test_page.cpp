// SPDX-License-Identifier: BSD-3-Clause
// Pages as files: well-formed, self-contained, the same every time, small; and their large figures
// are the report's.
#include <algorithm>
#include <catch2/catch.hpp>

#include "core/base/units.h"
#include "core/plan/join.h"
#include "sim/page/page.h"
#include "sim/picture/markup.h"
#include "tests/sim/page/page_cases.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

StudiedRun two_nodes() {
  return studied(request_on("2x8", "4096,8192", "S(0)S(1)", "S(1)S(0)"), "dgx-h100:2");
}

// What browsers would fetch: nothing may be named but by '#'.
void check_alone(const std::string& page) {
  std::size_t names = 0;
  for (std::size_t at = page.find("http"); at != std::string::npos;
       at = page.find("http", at + 1)) {
    std::string_view here = std::string_view(page).substr(at, 26);
    bool known = here == "http://www.w3.org/2000/svg" || here.starts_with("http-equiv=");
    CHECK(known);
    ++names;
  }
  CHECK(names >= 2);
  for (const char* word : {"src=", "url(", "@import", "<link", "fetch(", "XMLHttp", "href=\"/"})
    CHECK(page.find(word) == std::string::npos);
}

}  // namespace

TEST_CASE("a page is one file, well-formed, and the same every time") {
  std::string text = two_nodes().page();
  ReadPage page(text);
  CHECK(text.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
  CHECK(page.count("/html/head/meta[@http-equiv='Content-Security-Policy']") == 1);
  CHECK(page.count("/html/body/header/h1") == 1);
  CHECK(page.count("/html/body/main/section/h2") == page.count("/html/body/nav/a"));
  for (const char* id : {"timeline", "alternatives", "traffic", "links", "memory", "steps"})
    CHECK(page.panel(id));
  check_alone(text);
  CHECK(text == two_nodes().page());
  CHECK(text.size() < 200'000);
}

TEST_CASE("HTML's elements close as HTML wants it: by an end tag unless they are void") {
  Page page("test", "title");
  Node panel = page.add_panel("one", "One");
  add(panel, "div");
  add(panel, "br");
  add(add_svg(panel, 1, 1, "picture"), "rect");
  std::string text = page.text();
  CHECK(text.find("<div></div>") != std::string::npos);
  CHECK(text.find("<br />") != std::string::npos);
  CHECK(text.find("<rect />") != std::string::npos);
  std::string run = two_nodes().page();
  for (const char* tag : {"<div ", "<span ", "<td ", "<p ", "<ul ", "<th ", "<dd ", "<section "})
    for (std::size_t at = run.find(tag); at != std::string::npos; at = run.find(tag, at + 1))
      CHECK(run[run.find('>', at) - 1] != '/');
}

TEST_CASE("names are text, whatever they hold") {
  const std::string name = "</title><script>alert(\"1\")</script>&amp; ]]> '\x01\xff\xc3\xa9";
  Page page("test", name);
  add(page.add_panel("one", name, name), "p", {{"title", name}}, name);
  std::string text = page.text();
  ReadPage read(text);
  CHECK(read.count("//script") == 1);
  const std::string kept =
      "</title><script>alert(\"1\")</script>&amp; ]]> '\xEF\xBF\xBD\xEF\xBF\xBD\xc3\xa9";
  CHECK(read.document.select_node("//h1").node().text().get() == kept);
  CHECK(read.document.select_node("//section/p[@title]").node().text().get() == kept);
  CHECK(read.document.select_node("//section/p/@title").attribute().value() == kept);
}

TEST_CASE("what is no character of XML becomes one that is") {
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(xml_text("plain \t\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") ==
        "plain \t\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(xml_text(std::string_view("a\0b\x1f", 4)) == "a" + bad + "b" + bad);
  CHECK(xml_text("\xc3") == bad);                                // cut off
  CHECK(xml_text("\xc0\x80") == bad + bad);                      // longer than need be
  CHECK(xml_text("\xe0\x9f\xbf") == bad + bad + bad);            // so is this
  CHECK(xml_text("\xed\xa0\x80") == bad + bad + bad);            // half of a pair
  CHECK(xml_text("\xef\xbf\xbe") == bad + bad + bad);            // U+FFFE
  CHECK(xml_text("\xf4\x90\x80\x80") == bad + bad + bad + bad);  // above the last
  CHECK(xml_text("\xc3"
                 "a") == bad + "a");
}

TEST_CASE("the figures on top are the report's") {
  StudiedRun run = two_nodes();
  ReadPage page(run.page());
  CHECK(page.figure("time") == duration_text(run.report.time_ps));
  CHECK(page.figure("bound") == duration_text(run.report.bound.time_ps()));
  CHECK(page.figure("ratio to bound") ==
        ratio_text(ratio_e4(run.report.time_ps, run.report.bound.time_ps())));
  CHECK(page.figure("received, fullest rank") == bytes_text(run.report.bytes.received_max));
  CHECK(page.figure("peak memory") == bytes_text(run.report.bytes.peak_max));
  // A row per planner but auto, and the one that was taken is the plan's.
  CHECK(page.count("//section[@id='alternatives']//tbody/tr") == planners().size() - 1);
  CHECK(page.document.select_node("//tr[@class='taken']/td").node().text().get() ==
        run.report.planner);
  CHECK(page.count("//section[@id='steps']//tbody/tr") == run.report.steps.size());
}

TEST_CASE("of several tensors each kind has its picture, of many kinds the first") {
  Studies studies(std::make_shared<const Topology>(find_topology("dgx-h100:1")),
                  find_planner("p2p"));
  auto request = [](std::size_t kind) {
    return request_on("2", std::to_string(8 * (kind + 1)), "S(0)", "R");
  };
  for (std::size_t kinds : {1u, 2u, 9u}) {
    std::vector<Plan> plans;
    for (std::size_t t = 0; t < 2 * kinds; ++t)
      plans.push_back(studies.of(request(t % kinds))->plan());
    std::shared_ptr<Study> study = studies.of(std::make_shared<const Plan>(join(plans)));
    RunReport report = report_on(*study);
    ReadPage page(run_page("simulation", report, *study));
    pugi::xml_node panel = page.panel("sharding");
    CHECK(panel.select_nodes(".//svg").size() == std::min<std::size_t>(kinds, 8));
    std::string text = page.document.select_node("//h1").node().text().get(),
                sentence = panel.child("p").text().get();
    CHECK(text == (kinds == 9 ? "18 tensors of 9 kinds, 2.813 KiB, ranks 0-1" : run_title(report)));
    CHECK(text.starts_with(kinds == 9 ? "18 " : "tensor 0, " + request(0).text() + "; tensor 1, "));
    CHECK(sentence.starts_with(kinds == 9
                                   ? "Where one tensor of each of the first 8 kinds is before"
                                   : "Where one tensor of each kind is before"));
    CHECK(page.count("//section[@id='tensors']/div/table/tbody/tr") == kinds);
  }
}

TEST_CASE("kinds of tensors: a bar of the run and what each needs alone, and the table's figures") {
  StudyOptions options;
  options.transport.kind = TransportKind::Ideal;
  Studies studies(std::make_shared<const Topology>(find_topology("dgx-h100:1")),
                  find_planner("p2p"), options);
  // 90 MB and 45 MB to every rank of two, half of it from the other: 45 MB and 22.5 MB over a link
  // of 450 GB/s.
  std::vector<Request> job{request_on("2", "22500000", "S(0)", "R").named("layers.0.w"),
                           request_on("2", "11250000", "S(0)", "R").named("head"),
                           request_on("2", "8", "R", "R").named("norm")};
  std::shared_ptr<Study> study = studies.of(job);
  RunReport report = report_on(*study);
  REQUIRE(report.time_ps == 150'700'000);
  ReadPage page(run_page("simulation", report, *study));
  pugi::xml_node panel = page.panel("tensors");
  auto cells = [&](const char* path) {
    std::string out;
    for (const auto& cell : panel.select_nodes(path))
      out += std::string(out.empty() ? "" : "|") + cell.node().text().get();
    return out;
  };
  CHECK(cells("div/table/tbody/tr[1]/td") ==
        "layers.0.w|1|85.831 MiB|85.831 MiB|85.831 MiB|0 ps|150.700 us|100.700 us|cut");
  CHECK(cells("div/table/tbody/tr[2]/td") ==
        "head|1|42.915 MiB|42.915 MiB|42.915 MiB|0 ps|150.700 us|50.700 us|cut");
  CHECK(cells("div/table/tbody/tr[3]/td") == "norm|1|32 B|0 B|0 B|-|-|0 ps|none");
  CHECK(cells("details//tbody/tr[1]/td") == "layers.0.w|f32[22500000] S(0) on 2 -> R|0-1|0-1");
  // One pair of bars for each that moves; the one alone begins with the other and is as long as its
  // time is of the whole.
  REQUIRE(page.count("//section[@id='tensors']//rect") == 4);
  auto width = [&](int bar) {
    return panel.select_nodes(".//rect")[static_cast<std::size_t>(bar)]
        .node()
        .attribute("width")
        .as_double();
  };
  CHECK(width(0) == Approx(width(2)));
  CHECK(width(1) / width(0) == Approx(100.7 / 150.7).epsilon(1e-3));
  CHECK(width(3) / width(2) == Approx(50.7 / 150.7).epsilon(1e-3));
}

TEST_CASE("where nothing is to be done a page says so") {
  StudiedRun run = studied(request_on("4", "0", "S(0)", "R"), "dgx-h100:1", "rule");
  ReadPage page(run.page());
  CHECK_FALSE(page.panel("timeline"));
  CHECK_FALSE(page.panel("traffic"));
  CHECK_FALSE(page.panel("alternatives"));
  CHECK(std::string(page.panel("steps").child("p").text().get()) ==
        "There are no steps: nothing has to be done.");
}

TEST_CASE("a page of 1,024 ranks stays small") {
  StudiedRun run =
      studied(request_on("128x8", "8192,8192", "S(0)S(1)", "S(1)S(0)"), "dgx-h100:128", "p2p");
  std::string text = run.page();
  ReadPage page(text);
  CHECK(page.panel("traffic"));
  CHECK(text.size() < 1'000'000);
}
