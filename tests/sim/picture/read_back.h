// SPDX-License-Identifier: BSD-3-Clause
// Reads pictures back after they are written.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/picture/drawing.h"

namespace reshard::sim {

inline std::string written(const std::function<void(Node parent)>& draw) {
  std::ostringstream out;
  write_picture(out, draw);
  return out.str();
}

// Twice the same bytes, well-formed. The reader forgives an attribute that comes twice; others do
// not.
class ReadBack {
 public:
  explicit ReadBack(const std::function<void(Node parent)>& draw) : text_(written(draw)) {
    CHECK(written(draw) == text_);
    REQUIRE(
        document_.load_string(text_.c_str(), pugi::parse_default | pugi::parse_ws_pcdata_single));
    for (Node node : all("//*")) {
      std::set<std::string> names;
      for (pugi::xml_attribute attribute : node.attributes())
        CHECK(names.insert(attribute.name()).second);
    }
    CHECK(svg().attribute("xmlns").value() == std::string("http://www.w3.org/2000/svg"));
  }

  std::size_t bytes() const { return text_.size(); }
  Node svg() const { return document_.child("svg"); }
  // Nodes live as long as this.
  std::vector<Node> all(const std::string& xpath) && = delete;
  std::vector<Node> all(const std::string& xpath) const& {
    std::vector<Node> out;
    for (const auto& found : document_.select_nodes(xpath.c_str())) out.push_back(found.node());
    return out;
  }
  // How often each text stands in an element of this name.
  std::map<std::string, int> texts(const std::string& tag) const {
    std::map<std::string, int> out;
    for (Node node : all("//" + tag)) ++out[node.text().get()];
    return out;
  }

 private:
  std::string text_;
  pugi::xml_document document_;
};

inline double number(Node node, const char* name) { return node.attribute(name).as_double(); }

struct Area {
  double x, y, width, height;
  double size() const { return width * height; }
  // Coordinates are written with two decimals.
  bool overlaps(const Area& other) const {
    constexpr double slack = 0.02;
    return x + slack < other.x + other.width && other.x + slack < x + width &&
           y + slack < other.y + other.height && other.y + slack < y + height;
  }
};
inline Area area(Node rectangle) {
  return {number(rectangle, "x"), number(rectangle, "y"), number(rectangle, "width"),
          number(rectangle, "height")};
}

}  // namespace reshard::sim
