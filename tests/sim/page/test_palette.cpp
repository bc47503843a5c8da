// SPDX-License-Identifier: BSD-3-Clause
// Colours that can be told apart and text that can be read, by WCAG 2's own formula.
#include <catch2/catch.hpp>
#include <cmath>
#include <regex>
#include <set>

#include "tests/sim/page/read_back.h"

using namespace reshard::sim;

namespace {

double luminance(const std::string& colour) {
  auto channel = [&](std::size_t at) {
    double value = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

double contrast(const std::string& a, const std::string& b) {
  double one = luminance(a) + 0.05, other = luminance(b) + 0.05;
  return std::max(one, other) / std::min(one, other);
}

// By name, the colours of one half of the style sheet.
std::map<std::string, std::string> tones(const std::string& style) {
  std::map<std::string, std::string> out;
  std::regex tone("--drawing-([a-z]+):(#[0-9a-f]{6});");
  for (std::sregex_iterator it(style.begin(), style.end(), tone), end; it != end; ++it)
    out[(*it)[1]] = (*it)[2];
  return out;
}

}  // namespace

TEST_CASE("categories are different from each other") {
  for (std::size_t count : {1, 7, 8, 64, 100, 256}) {
    std::set<Colour> colours;
    for (std::size_t i = 0; i < count; ++i) colours.insert(category_colour(i, count));
    CHECK(colours.size() == count);
  }
  CHECK(text(category_colour(0, 7)) == "#56b4e9");
  CHECK(text(category_colour(6, 7)) == "#0072b2");
}

TEST_CASE("heat goes from dark to bright and stays there") {
  CHECK(text(heat_colour(0, 10)) == "#00224e");
  CHECK(text(heat_colour(10, 10)) == "#fee838");
  CHECK(heat_colour(25, 10) == heat_colour(10, 10));
  for (int i = 0; i < 1000; i += 10)
    CHECK(luminance(text(heat_colour(i, 1000))) < luminance(text(heat_colour(i + 10, 1000))));
}

TEST_CASE("the ink on a colour can be read") {
  for (std::size_t i = 0; i < 200; ++i)
    for (const Colour& colour :
         {category_colour(i, 200), heat_colour(static_cast<std::int64_t>(i), 199)})
      CHECK(contrast(text(colour), std::string(ink_on(colour))) >= 4.5);
}

TEST_CASE("what is not data can be read by day and by night") {
  ReadBack picture([](Node parent) { add_picture(parent, 10, 10, "nothing"); });
  std::string style = picture.svg().child("style").text().get();
  std::size_t night = style.find("@media");
  REQUIRE(night != std::string::npos);
  for (const std::string& half : {style.substr(0, night), style.substr(night)}) {
    auto tone = tones(half);
    REQUIRE(tone.size() == 5);
    for (const char* ground : {"paper", "panel"})
      for (const char* ink : {"ink", "soft"}) CHECK(contrast(tone[ink], tone[ground]) >= 4.5);
    CHECK(contrast(tone["edge"], tone["paper"]) >= 3);
  }
}

TEST_CASE("a picture stands alone, in the colours of the day") {
  ReadBack picture([](Node parent) {
    Node svg = add_picture(parent, 200, 100.5, "a < b & \"c\"");
    add_text(svg, 1, 2, 12, "x<y>&z", "middle", Tone::Soft);
  });
  CHECK(picture.svg().attribute("viewBox").value() == std::string("0 0 200 100.5"));
  CHECK(picture.svg().child("title").text().get() == std::string("a < b & \"c\""));
  Node words = picture.svg().child("text");
  CHECK(words.text().get() == std::string("x<y>&z"));
  CHECK(words.attribute("fill").value() == std::string("#57606a"));
  CHECK(words.attribute("class").value() == std::string("fill-soft"));
}
