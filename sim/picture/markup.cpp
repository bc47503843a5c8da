// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/markup.h"

#include <cmath>

#include <fmt/core.h>

#include "core/base/printable.h"

namespace reshard::sim {

Attribute::Attribute(const char* name_in, double number)
    : name(name_in), value(coordinate_text(number)) {}

Node add(Node parent, const char* tag, std::initializer_list<Attribute> attributes,
         std::string_view text) {
  Node node = parent.append_child(tag);
  for (const Attribute& attribute : attributes)
    node.append_attribute(attribute.name) = xml_text(attribute.value).c_str();
  if (!text.empty()) node.append_child(pugi::node_pcdata).set_value(xml_text(text).c_str());
  return node;
}

Node add_svg(Node parent, double width, double height, std::string_view title) {
  Node svg = add(parent, "svg",
                 {{"xmlns", "http://www.w3.org/2000/svg"},
                  {"viewBox", "0 0 " + coordinate_text(width) + " " + coordinate_text(height)},
                  {"width", width},
                  {"height", height},
                  {"role", "img"}});
  add_tip(svg, title);
  return svg;
}

void add_tip(Node of, std::string_view text) { add(of, "title", {}, text); }

std::string coordinate_text(double value) {
  double hundredths = std::round(value * 100);
  if (hundredths == 0) return "0";
  std::string text = fmt::format("{:.2f}", hundredths / 100);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the first character; 0 if it is not allowed in XML.
std::size_t character_bytes(std::string_view text) {
  auto [bytes, code] = first_character(text);
  bool control = code < 0x20 && code != '\t' && code != '\n' && code != '\r';
  return control || code == 0xFFFE || code == 0xFFFF ? 0 : bytes;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t bytes = character_bytes(text);
    out += bytes > 0 ? text.substr(0, bytes) : kReplacement;
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return out;
}

}  // namespace reshard::sim
