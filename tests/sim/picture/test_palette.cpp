// SPDX-License-Identifier: BSD-3-Clause
// Colours that can be told apart, and ink that can be read on them.
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
