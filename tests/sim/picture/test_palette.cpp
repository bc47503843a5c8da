// SPDX-License-Identifier: BSD-3-Clause
// Colours that can be distinguished, and text colours that are readable on them.
#include <catch2/catch.hpp>
#include <set>

#include "sim/picture/palette.h"
#include "tests/sim/page/contrast.h"

using namespace reshard::sim;

TEST_CASE("categories are different from each other") {
  for (std::size_t count : {1U, 7U, 8U, 64U, 100U, 256U}) {
    std::set<Colour> colours;
    for (std::size_t i = 0; i < count; ++i) colours.insert(category_colour(i, count));
    CHECK(colours.size() == count);
  }
  CHECK(text(category_colour(0, 7)) == "#56b4e9");
  CHECK(text(category_colour(6, 7)) == "#0072b2");
}

TEST_CASE("heat goes from the ground's own side to the other and stays there") {
  CHECK(heat_of(0, 10) == Shade{{0xfe, 0xf1, 0x87}, {0x00, 0x22, 0x4e}});
  CHECK(heat_of(10, 10) == Shade{{0x00, 0x22, 0x4e}, {0xfe, 0xe8, 0x38}});
  CHECK(heat_of(25, 10) == heat_of(10, 10));
  for (int i = 0; i < 1000; i += 10) {
    Shade less = heat_of(i, 1000), more = heat_of(i + 10, 1000);
    CHECK(luminance(text(less.night)) < luminance(text(more.night)));
    CHECK(luminance(text(less.day)) > luminance(text(more.day)));
  }
}

TEST_CASE("the ink on a colour can be read") {
  for (std::size_t i = 0; i < 200; ++i) {
    Shade heat = heat_of(static_cast<std::int64_t>(i), 199);
    for (const Colour& colour : {category_colour(i, 200), heat.day, heat.night})
      CHECK(contrast(text(colour), text(ink_on(colour))) >= 4.5);
  }
}
