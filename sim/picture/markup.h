// SPDX-License-Identifier: BSD-3-Clause
// Elements of pages and pictures, as a tree of nodes: the output is always well-formed and escaped,
// whatever names contain.
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

// Adds a last child to `parent`, with `text` in it unless that is empty.
Node add(Node parent, const char* tag, std::initializer_list<Attribute> attributes = {},
         std::string_view text = {});

// A picture of `width` x `height` that scales with the page. Screen readers announce `title`.
Node add_svg(Node parent, double width, double height, std::string_view title);

// The tip that is shown while the pointer is on `of`: an SVG <title>.
void add_tip(Node of, std::string_view text);

// "12.5", "-0.25", "3"; "0" for -0.
std::string coordinate_text(double value);

// Makes names from input files valid for XML: replaces everything that is not a character of XML
// 1.0 in UTF-8, such as control characters, by U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace reshard::sim
