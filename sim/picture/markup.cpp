// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/markup.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "core/base/ids.h"

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

bool is_character(std::uint32_t code) {
  if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
  return code < 0xD800 || (code >= 0xE000 && code < 0xFFFE) || (code >= 0x10000 && code < 0x110000);
}

// Bytes of the character that `text` begins with; 0 where it begins with none.
std::size_t character_bytes(std::string_view text) {
  auto first = static_cast<unsigned char>(text[0]);
  auto length = to_index(std::countl_one(first));
  if (length == 0) return is_character(first) ? 1 : 0;
  if (length < 2 || length > 4 || text.size() < length) return 0;
  std::uint32_t code = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0u) != 0x80u) return 0;
    code = code << 6 | (next & 0x3Fu);
  }
  // The shortest form only: the least code of each length.
  constexpr std::uint32_t kLeast[] = {0x80, 0x800, 0x10000};
  return code >= kLeast[length - 2] && is_character(code) ? length : 0;
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
