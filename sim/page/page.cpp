// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/page.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

namespace {

// Nothing from elsewhere, whatever a name in a trace says.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

std::string_view part(std::string_view name) {
  std::span<const EmbeddedText> parts = page_parts();
  auto found = std::find_if(parts.begin(), parts.end(),
                            [&](const EmbeddedText& each) { return each.name == name; });
  RESHARD_CHECK(found != parts.end(), "a part of the page that is not compiled in");
  return found->text;
}

// Style and script are no markup to HTML and markup to XML: as a section that both leave alone.
void add_raw(Node parent, const char* tag, std::string_view text) {
  Node node = add(parent, tag, {}, "/*");
  node.append_child(pugi::node_cdata).set_value(fmt::format("*/\n{}/*", text).c_str());
  node.append_child(pugi::node_pcdata).set_value("*/");
}

// HTML closes only these by themselves; any other element that is empty gets an end of its own.
// Inside of SVG both forms are one.
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
  // What scrolls must be reachable by keyboard.
  return add(panel, "div", {{"class", "frame"}, {"tabindex", 0}});
}

Node add_chart(Node panel, double width, double height, std::string_view title) {
  Node svg = add_svg(add_frame(panel), width, height, title);
  svg.append_attribute("class") = "chart";
  return svg;
}

}  // namespace reshard::sim
