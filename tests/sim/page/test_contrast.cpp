// SPDX-License-Identifier: BSD-3-Clause
// Pages are readable for everybody: contrasts between text and its background, computed from the
// colours of the style by WCAG 2's formula, in light and in dark mode.
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "sim/page/page.h"
#include "tests/sim/page/contrast.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

using Colours = std::map<std::string, std::string>;

// The variables "--NAME: #rrggbb;" of a block, over those that hold already.
Colours with_colours_of(std::string_view block, Colours out) {
  for (std::size_t at = block.find("--"); at != std::string_view::npos; at = block.find("--", at)) {
    std::size_t colon = block.find(':', at), end = block.find(';', colon);
    std::string value(block.substr(colon + 2, end - colon - 2));
    REQUIRE(value.size() == 7);
    out[std::string(block.substr(at + 2, colon - at - 2))] = value;
    at = end;
  }
  return out;
}

std::string style() {
  for (const EmbeddedText& part : page_parts())
    if (part.name == "page_style") return std::string(part.text);
  return {};
}

// The colours of light and of dark: the first ":root {" and the one behind the query for dark.
std::pair<Colours, Colours> colours() {
  std::string text = style();
  auto block = [&](std::size_t from) {
    std::size_t begin = text.find(":root {", from);
    return std::string_view(text).substr(begin, text.find('}', begin) - begin);
  };
  Colours light = with_colours_of(block(0), {});
  std::size_t dark = text.find("(prefers-color-scheme: dark)");
  REQUIRE(dark != std::string::npos);
  return {light, with_colours_of(block(dark), light)};
}

}  // namespace

TEST_CASE("the formula is WCAG's") {
  CHECK(contrast("#000000", "#ffffff") == Approx(21));
  CHECK(contrast("#777777", "#ffffff") == Approx(4.48).margin(0.005));  // just not enough
}

TEST_CASE("all text is read on all that it stands on") {
  auto [light, dark] = colours();
  REQUIRE(light.size() == dark.size());
  CHECK(light != dark);
  for (const Colours& colours : {light, dark}) {
    for (const char* text : {"ink", "soft", "accent"})
      for (const char* ground : {"ground", "field"}) {
        INFO(text << " on " << ground << ", " << colours.at("ground"));
        CHECK(contrast(colours.at(text), colours.at(ground)) >= 4.5);
      }
    int labels = 0;
    for (const auto& [name, colour] : colours) {
      if (!name.starts_with("on-")) continue;
      INFO(name << " " << colours.at("ground"));
      CHECK(contrast(colour, colours.at(name.substr(3))) >= 4.5);
      ++labels;
    }
    CHECK(labels == 12);
  }
}

TEST_CASE("heat goes one way: every shade stands out more from the ground than the one below") {
  auto [light, dark] = colours();
  for (const Colours& colours : {light, dark})
    for (int shade = 1; shade < 10; ++shade)
      CHECK(contrast(colours.at("h" + std::to_string(shade)), colours.at("ground")) >
            contrast(colours.at("h" + std::to_string(shade - 1)), colours.at("ground")));
}
