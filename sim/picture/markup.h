// SPDX-License-Identifier: BSD-3-Clause
// Elements of a page and of its pictures. A tree of nodes, so that what is written is well-formed
// and escaped whatever names it holds.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <pugixml.hpp>

namespace reshard::sim {

using Node = pugi::xml_node;

// Coordinates and sizes are pixels, written with at most two decimals.
struct Attribute {
  Attribute(const char* name_in, std::string_view text) : name(name_in), value(text) {}
  Attribute(const char* name_in, double number);
  Attribute(const char* name_in, std::int64_t number)
      : name(name_in), value(std::to_string(number)) {}
  Attribute(const char* name_in, int number) : Attribute(name_in, std::int64_t{number}) {}

  const char* name;
  std::string value;
};

// The new last child of `parent`; `text` within it where it is not empty.
Node add(Node parent, const char* tag, std::initializer_list<Attribute> attributes = {},
         std::string_view text = {});

// A picture of `width` x `height` that grows with the page; readers of screens hear `title`.
Node add_svg(Node parent, double width, double height, std::string_view title);

// What is shown where the pointer rests on `of`: an SVG <title>.
void add_tip(Node of, std::string_view text);

// "12.5", "-0.25", "3"; -0 is 0.
std::string coordinate_text(double value);

// Names come from files of others; XML has room for less than they may hold. `text` with every byte
// sequence that is no character of XML 1.0 in UTF-8 (control characters among them) as one U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace reshard::sim
