// SPDX-License-Identifier: BSD-3-Clause
// The basis of pictures: the style sheet in light and dark mode, and what readers without it see.
#include <catch2/catch.hpp>
#include <map>
#include <regex>

#include "tests/sim/page/contrast.h"
#include "tests/sim/picture/read_back.h"

using namespace reshard::sim;

namespace {

// By name, the colours of one half of the style sheet.
std::map<std::string, std::string> tones(const std::string& style) {
  std::map<std::string, std::string> out;
  std::regex tone("--drawing-([a-z]+):(#[0-9a-f]{6});");
  for (std::sregex_iterator it(style.begin(), style.end(), tone), end; it != end; ++it)
    out[(*it)[1]] = (*it)[2];
  return out;
}

}  // namespace

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
