// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/page.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/page/panels/time_axis.h"
#include "sim/report/table.h"
#include "sim/report/time_tables.h"

namespace reshard::sim {

namespace {

// Content policy: loads nothing from elsewhere, whatever names in a trace contain.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

std::string_view part(std::string_view name) {
  std::span<const EmbeddedText> parts = page_parts();
  auto found = std::find_if(parts.begin(), parts.end(),
                            [&](const EmbeddedText& each) { return each.name == name; });
  RESHARD_CHECK(found != parts.end(), "a part of the page is not compiled in");
  return found->text;
}

// HTML does not parse style and script as markup, but XML does. The CDATA section, hidden in
// comments, protects them from both.
void add_raw(Node parent, const char* tag, std::string_view text) {
  Node node = add(parent, tag, {}, "/*");
  node.append_child(pugi::node_cdata).set_value(fmt::format("*/\n{}/*", text).c_str());
  node.append_child(pugi::node_pcdata).set_value("*/");
}

// In HTML only these elements end by themselves; any other empty element needs an end tag. Inside
// SVG both forms mean the same.
void close_empty(Node node) {
  constexpr std::array<const char*, 5> kVoid = {"meta", "br", "col", "hr", "input"};
  if (std::strcmp(node.name(), "svg") == 0) return;
  bool is_void = std::any_of(kVoid.begin(), kVoid.end(),
                             [&](const char* name) { return std::strcmp(name, node.name()) == 0; });
  if (!node.first_child() && node.type() == pugi::node_element && !is_void)
    node.append_child(pugi::node_pcdata).set_value("");
  for (Node child : node.children()) close_empty(child);
}

struct Text : pugi::xml_writer {
  std::string text;
  void write(const void* data, std::size_t size) override {
    text.append(static_cast<const char*>(data), size);
  }
};

}  // namespace

Page::Page(std::string_view kind, std::string_view title) {
  document_.append_child(pugi::node_doctype).set_value("html");
  Node html = add(document_, "html", {{"lang", "en"}}), head = add(html, "head");
  add(head, "meta", {{"charset", "utf-8"}});
  add(head, "meta", {{"http-equiv", "Content-Security-Policy"}, {"content", kPolicy}});
  add(head, "meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  add(head, "meta", {{"name", "color-scheme"}, {"content", "light dark"}});
  add(head, "title", {}, fmt::format("{} - reshard {}", title, kind));
  add_raw(head, "style", part("page_style"));
  Node body = add(html, "body");
  header_ = add(body, "header");
  add(header_, "p", {{"class", "kind"}}, fmt::format("reshard {}", kind));
  add(header_, "h1", {}, title);
  contents_ = add(body, "nav", {{"aria-label", "Panels"}});
  main_ = add(body, "main");
  add_raw(body, "script", part("page_script"));
}

Node Page::add_panel(const char* id, std::string_view heading, std::string_view sentence) {
  add(contents_, "a", {{"href", fmt::format("#{}", id)}}, heading);
  Node panel = add(main_, "section", {{"id", id}});
  add(panel, "h2", {}, heading);
  if (!sentence.empty()) add(panel, "p", {{"class", "sentence"}}, sentence);
  return panel;
}

std::string Page::text() {
  close_empty(document_);
  Text out;
  document_.save(out, "", pugi::format_indent | pugi::format_no_declaration, pugi::encoding_utf8);
  return std::move(out.text);
}

Node add_frame(Node panel) {
  // Scrollable elements must be reachable by keyboard.
  return add(panel, "div", {{"class", "frame"}, {"tabindex", 0}});
}

Node add_chart(Node panel, double width, double height, std::string_view title) {
  Node svg = add_svg(add_frame(panel), width, height, title);
  svg.append_attribute("class") = "chart";
  return svg;
}

namespace {

constexpr double kBarWidth = 1000, kBarHeight = 24;

}  // namespace

void draw_figures(Node parent, const std::vector<Figure>& figures) {
  Node list = add(parent, "dl", {{"class", "figures"}});
  for (const Figure& figure : figures) {
    Node one = add(list, "div");
    add(one, "dt", {}, figure.name);
    add(one, "dd", {}, figure.value);
    if (!figure.note.empty()) add(one, "dd", {{"class", "note"}}, figure.note);
  }
}

void draw_facts(Node parent, const std::vector<Fact>& facts) {
  Node list = add(parent, "dl", {{"class", "facts"}});
  for (const Fact& fact : facts) {
    add(list, "dt", {}, fact.name);
    add(list, "dd", {}, fact.value);
  }
}

void draw_causes(Node parent, const PathFacts& path) {
  if (path.causes.empty()) return;
  std::int64_t end_ps = path.parts.back().end_ps;
  add(parent, "p", {{"class", "sentence"}}, path_sentence(path));
  Node svg = add_svg(parent, kBarWidth, kBarHeight, "what the critical path waits for");
  svg.append_attribute("class") = "bar";
  svg.append_attribute("preserveAspectRatio") = "none";
  Legend legend(parent);
  double x = 0;
  for (const CauseShare& share : shares_of(path)) {
    std::string tip = fmt::format("{}: {}, {}", share.name, duration_text(share.time_ps),
                                  share_text(share.time_ps, end_ps));
    double width = kBarWidth * static_cast<double>(share.time_ps) / static_cast<double>(end_ps);
    add_tip(add(svg, "rect",
                {{"class", share.colour},
                 {"x", x},
                 {"y", 0},
                 {"width", width},
                 {"height", kBarHeight}}),
            tip);
    x += width;
    legend.add_entry(share.colour, share.name, share_text(share.time_ps, end_ps));
  }
}

Cell Cell::count(std::int64_t number) { return {std::to_string(number), number}; }

Cell Cell::bytes(std::int64_t number) { return {bytes_text(number), number}; }

Cell Cell::time(std::optional<std::int64_t> ps) {
  return ps ? Cell(duration_text(*ps), *ps) : Cell("-");
}

Cell Cell::ratio(std::optional<std::int64_t> ratio_e4) {
  return ratio_e4 ? Cell(ratio_text(ratio_e4), *ratio_e4) : Cell("-");
}

HtmlTable::HtmlTable(Node parent, std::string_view caption,
                     const std::vector<std::string>& titles) {
  Node table = add(add(parent, "div", {{"class", "scrolled"}, {"tabindex", 0}}), "table");
  add(table, "caption", {}, caption);
  Node row = add(add(table, "thead"), "tr");
  for (const std::string& title : titles) {
    figures_.push_back(title.starts_with('>'));
    Node head = add(row, "th", {{"scope", "col"}}, title.substr(figures_.back() ? 1 : 0));
    if (figures_.back()) head.append_attribute("class") = "figure";
  }
  body_ = add(table, "tbody");
}

Node HtmlTable::add_row(const std::vector<Cell>& cells) {
  RESHARD_CHECK(cells.size() == figures_.size(), "a row whose width differs from its table's");
  Node row = add(body_, "tr");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Node cell = add(row, "td", {}, cells[i].text);
    if (figures_[i]) cell.append_attribute("class") = "figure";
    if (cells[i].order)
      cell.append_attribute("data-order") = std::to_string(*cells[i].order).c_str();
  }
  return row;
}

Node add_folded(Node panel, std::string_view heading) {
  Node folded = add(panel, "details");
  add(folded, "summary", {}, heading);
  return folded;
}

void Legend::add_entry(std::string_view colour, std::string_view text, std::string_view value) {
  Node entry = add(list_, "li");
  add(entry, "span", {{"class", fmt::format("swatch {}", colour)}});
  add(entry, "span", {}, text);
  if (!value.empty()) add(entry, "span", {{"class", "value"}}, value);
}

namespace {

constexpr std::size_t kLongest = 11;

}  // namespace

std::string ranks_name(const std::vector<Rank>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", to_int(ranks.front()));
  std::string all = ranks_text(ranks);
  if (all.size() > kLongest) all = fmt::format("{}, {}, ..", to_int(ranks[0]), to_int(ranks[1]));
  return fmt::format("ranks {} ({})", all, ranks.size());
}

}  // namespace reshard::sim
