// SPDX-License-Identifier: BSD-3-Clause
// Pictures show what happened: areas, lengths and shades against the figures that they represent.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "core/base/units.h"
#include "sim/page/page.h"
#include "sim/page/panels/panels.h"
#include "sim/page/panels/time_axis.h"
#include "tests/sim/page/page_cases.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

// Where pictures are drawn into.
struct Panel {
  Panel() { node = add(document, "section"); }
  pugi::xpath_node_set all(const char* path) const { return document.select_nodes(path); }
  pugi::xml_document document;
  Node node;
};

double number(pugi::xpath_node of, const char* name) {
  return of.node().attribute(name).as_double();
}

std::string tip(pugi::xpath_node of) { return of.node().child_value("title"); }

// The area under a path of H and V, above the level that it begins at.
double area(const std::string& path) {
  double x = 0, bottom = 0, y = 0, out = 0;
  std::istringstream in(path);
  char what;
  double value;
  while (in >> what >> value) {
    if (what == 'M') {
      x = value;
      in >> bottom;
      y = bottom;
    } else if (what == 'H') {
      out += (value - x) * (bottom - y);
      x = value;
    } else {
      y = value;
    }
  }
  return out;
}

std::vector<std::string> texts(const std::vector<TimeTick>& ticks) {
  std::vector<std::string> out;
  for (const TimeTick& tick : ticks) out.push_back(tick.text);
  return out;
}

}  // namespace

TEST_CASE("ticks are round times") {
  using List = std::vector<std::string>;
  CHECK(texts(time_ticks(188'272'000, 4)) == List{"0 us", "50 us", "100 us", "150 us"});
  CHECK(texts(time_ticks(7, 8)) ==
        List{"0 ps", "1 ps", "2 ps", "3 ps", "4 ps", "5 ps", "6 ps", "7 ps"});
  CHECK(texts(time_ticks(10'000'000'000, 2)) == List{"0 ms", "5 ms", "10 ms"});
  CHECK(texts(time_ticks(2'500'000, 5)) ==
        List{"0 ns", "500 ns", "1000 ns", "1500 ns", "2000 ns", "2500 ns"});
}

TEST_CASE("a long list of ranks is cut short") {
  CHECK(ranks_name({Rank{3}}) == "rank 3");
  CHECK(ranks_name({Rank{0}, Rank{1}, Rank{2}}) == "ranks 0-2 (3)");
  CHECK(ranks_name({Rank{0}, Rank{2}, Rank{4}, Rank{6}, Rank{8}, Rank{100}}) ==
        "ranks 0, 2, .. (6)");
}

TEST_CASE("slices lie where their time is") {
  Workload workload;
  workload.operations.push_back({Compute{{Rank{0}, Rank{1}}, 4000}, 0, {}});
  workload.operations.push_back({PointToPoint{Rank{0}, Rank{1}, 1000}, 0, {}});
  Timeline timeline;
  timeline.end_ps = 10'000;
  timeline.spans = {{OpId{0}, -1, Rank{0}, 0, 4000},
                    {OpId{0}, -1, Rank{1}, 0, 4000},
                    {OpId{1}, -1, Rank{0}, 4000, 10'000}};
  std::vector<std::string> labels = {"forward", "send <1>"};
  Panel panel;
  draw_timeline(panel.node, {workload, labels, timeline});
  auto slices = panel.all("//svg[@class='plot']//rect");
  REQUIRE(slices.size() == 3);
  double width = panel.document.select_node("//svg[@class='plot']/@width").attribute().as_double();
  CHECK(number(slices[0], "x") == 0);
  CHECK(number(slices[0], "width") == Approx(0.4 * width));
  CHECK(number(slices[1], "x") == Approx(0.4 * width));
  CHECK(number(slices[1], "width") == Approx(0.6 * width));
  CHECK(number(slices[1], "y") == number(slices[0], "y"));
  CHECK(number(slices[2], "y") > number(slices[1], "y"));
  CHECK(tip(slices[1]) == "send <1>\n4.000 ns to 10.000 ns, 6.000 ns");
  CHECK(std::string(slices[1].node().attribute("class").value()) == "k-message lined");
  CHECK(panel.all("//ul/li").size() == 2);
  auto written = panel.all("//g[@class='labels']/text");
  REQUIRE(written.size() == 3);
  CHECK(std::string(written[0].node().text().get()) == "forward");
  CHECK(std::string(written[1].node().text().get()) == "send <1>");
}

TEST_CASE("cells of the square hold what flowed, the darkest what is most") {
  StudiedRun run = studied(request_on("2x3", "7,50", "S(0)S(1)", "S(1)R"), "dgx-h100:1", "p2p");
  Timeline timeline = run.study->flows();
  std::map<std::string, std::int64_t> expected, sent, received;
  for (const FlowSpan& flow : timeline.flows) {
    std::string from = "rank " + std::to_string(to_int(flow.source));
    expected[from + " to rank " + std::to_string(to_int(flow.destination))] += flow.bytes;
    sent[from] += flow.bytes;
    received["rank " + std::to_string(to_int(flow.destination))] += flow.bytes;
  }
  Panel panel;
  draw_traffic(panel.node, timeline.flows, run.study->topology());
  auto cells = panel.all("//g[@class='cells']/rect[@class!='ground']");
  CHECK(cells.size() == expected.size());
  std::int64_t most = 0;
  for (const auto& [pair, bytes] : expected) most = std::max(most, bytes);
  for (const auto& cell : cells) {
    std::string shown = tip(cell), pair = shown.substr(0, shown.find('\n'));
    REQUIRE(expected.count(pair) == 1);
    CHECK(shown == pair + "\n" + bytes_text(expected[pair]));
    std::string shade = cell.node().attribute("class").value();
    CHECK(shade == fmt::format("h{}", (10 * expected[pair] - 1) / most));
  }
  auto sums = panel.all("//g[@class='sums']/rect");
  std::set<std::string> shown;
  for (const auto& sum : sums) shown.insert(tip(sum));
  for (const auto& [rank, bytes] : sent)
    CHECK(shown.count(rank + " sends " + bytes_text(bytes)) == 1);
  for (const auto& [rank, bytes] : received)
    CHECK(shown.count(rank + " receives " + bytes_text(bytes)) == 1);
}

TEST_CASE("many ranks are rows together, whole nodes where there are enough") {
  Topology nodes = find_topology("dgx-h100:16"), one = find_topology("dgx-h100:128");
  std::vector<FlowSpan> flows;
  for (std::int32_t r = 0; r + 1 < 128; ++r)
    flows.push_back({OpId{0}, 0, Rank{r}, Rank{r + 1}, 10, 0, 1});
  Panel panel;
  draw_traffic(panel.node, flows, nodes);
  // Sixteen nodes: what stays in each, and what goes to the next.
  auto cells = panel.all("//g[@class='cells']/rect[@class!='ground']");
  REQUIRE(cells.size() == 31);
  CHECK(tip(cells[0]) == "node 0 to node 0\n70 B");
  CHECK(tip(cells[1]) == "node 0 to node 1\n10 B");
  // 72 devices of one node.
  Panel rack;
  flows.resize(71);
  draw_traffic(rack.node, flows, find_topology("gb200-nvl72:1"));
  cells = rack.all("//g[@class='cells']/rect[@class!='ground']");
  REQUIRE(cells.size() == 71);
  CHECK(tip(cells[0]) == "ranks 0-1 to ranks 0-1\n10 B");
  CHECK(tip(cells[70]) == "ranks 70-71 to ranks 70-71\n10 B");
}

TEST_CASE("the area under a link is the share of its capacity that it used") {
  StudiedRun run =
      studied(request_on("2x8", "4096,4096", "S(0)S(1)", "S(1)R"), "dgx-h100:2", "rule");
  Timeline timeline = run.study->flows();
  Panel panel;
  draw_links(panel.node, timeline, run.study->topology());
  auto strips = panel.all("//g[@class='strip']");
  REQUIRE(strips.size() >= 4);
  std::map<std::string, LinkUse> uses;
  for (const LinkUse& use : busiest_links(timeline, run.study->topology(), 100'000))
    uses.insert({use.name, use});
  for (const auto& strip : strips) {
    std::string shown = tip(strip), name = shown.substr(0, shown.find(':'));
    REQUIRE(uses.count(name) == 1);
    pugi::xml_node ground = strip.node().child("rect");
    double whole = ground.attribute("width").as_double() * ground.attribute("height").as_double();
    pugi::xml_node fullest = strip.node().find_child_by_attribute("path", "class", "fullest");
    double used = static_cast<double>(utilisation(uses.at(name), timeline.end_ps, 1'000'000)) / 1e6;
    INFO(name << " used " << used);
    CHECK(used > 0.001);
    CHECK(area(fullest.attribute("d").value()) / whole == Approx(used).margin(0.0005));
    // The mean is over links that carry the same here or less.
    pugi::xml_node mean = strip.node().find_child_by_attribute("path", "class", "mean");
    CHECK(area(mean.attribute("d").value()) / whole <= used + 0.0005);
  }
}

TEST_CASE("bars of memory are as long as what they hold") {
  StudiedRun run = studied(request_on("3", "7,64", "S(0)", "S(1)"), "dgx-h100:1", "rule");
  std::vector<RankMemory> ranks = memory_of(run.study->plan(), run.report.bytes);
  REQUIRE(ranks.size() == 3);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    CHECK(ranks[i].peak_bytes() == run.report.bytes.peak_per_slot[i]);
  CHECK(ranks[0].source_bytes == 3 * 64 * 4);
  CHECK(ranks[2].source_bytes == 1 * 64 * 4);
  CHECK(ranks[2].destination_bytes == 7 * 20 * 4);
  Panel panel;
  draw_memory(panel.node, ranks);
  double y = -1, end = 0;
  for (const auto& bar : panel.all("//svg/rect")) {
    std::string shown = tip(bar);
    std::int64_t bytes = parse_bytes(shown.substr(shown.find(": ") + 2), "tip");
    CHECK(number(bar, "width") / static_cast<double>(bytes) ==
          Approx(700.0 / static_cast<double>(run.report.bytes.peak_max)).epsilon(0.01));
    // One behind the other.
    CHECK(number(bar, "x") == Approx(number(bar, "y") == y ? end : 148).margin(0.02));
    y = number(bar, "y");
    end = number(bar, "x") + number(bar, "width");
  }
  // Nobody is told of temporaries that nobody has.
  CHECK(panel.all("//ul/li").size() == 3);
  for (RankMemory& own : ranks) own.temporary_bytes = 0;
  Panel without;
  draw_memory(without.node, ranks);
  CHECK(without.all("//ul/li").size() == 2);
}

TEST_CASE("the parts of the bar are the shares of the time") {
  PathFacts path;
  path.recorded = true;
  path.parts = {{OpId{0}, 0, "all", 0, 1000}};
  for (int i = 0; i < 9; ++i) path.causes.push_back({"link" + std::to_string(i), 200 - 20 * i});
  path.causes.back().time_ps = 80;
  Panel panel;
  draw_causes(panel.node, path);
  auto parts = panel.all("//svg/rect");
  REQUIRE(parts.size() == 7);
  CHECK(number(parts[0], "width") == Approx(200));
  CHECK(number(parts[1], "x") == Approx(200));
  CHECK(number(parts[1], "width") == Approx(180));
  CHECK(tip(parts[6]) == "3 others: 220 ps, 22.0 %");
  CHECK(number(parts[6], "width") == Approx(220));
}

TEST_CASE("above the lanes stands what the whole waits for, in the colours of the headline") {
  PathFacts path;
  path.recorded = true;
  path.parts = {{OpId{0}, 0, "launch", 0, 100},
                {OpId{0}, 0, "nic", 100, 400},
                {OpId{0}, 1, "nic", 400, 600},
                {OpId{0}, 1, "launch", 600, 601},
                {OpId{0}, 1, "latency", 601, 5000}};
  path.causes = {{"latency", 4399}, {"nic", 500}, {"launch", 101}, {"compute", 0}};
  CHECK(colour_of(shares_of(path), "compute") == "k-compute");
  CHECK(colour_of(shares_of(path), "another") == "rest");
  Panel panel;
  TimeScale scale = time_scale(5000);
  draw_path_strip(panel.node, scale, 8, path);
  auto parts = panel.all("//rect");
  REQUIRE(parts.size() == 4);  // all, and but the one too short to be seen
  CHECK(std::string(parts[0].node().attribute("class").value()) == "rest");
  CHECK(number(parts[0], "width") == Approx(scale.width));
  const char* const colours[] = {"", "c2", "c1", "c0"};
  const double starts[] = {0, 0, 100, 601}, ends[] = {5000, 100, 600, 5000};
  for (std::size_t i = 1; i < 4; ++i) {
    CHECK(std::string(parts[i].node().attribute("class").value()) == colours[i]);
    CHECK(number(parts[i], "x") == Approx(scale.width * starts[i] / 5000).margin(0.01));
    CHECK(number(parts[i], "width") ==
          Approx(scale.width * (ends[i] - starts[i]) / 5000).margin(0.01));
  }
  CHECK(tip(parts[2]) == "waits for nic\n100 ps to 600 ps, 500 ps");
}
