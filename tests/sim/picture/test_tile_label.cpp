// SPDX-License-Identifier: BSD-3-Clause
// Labels stay within their tile, in either direction of writing.
#include <catch2/catch.hpp>

#include "sim/picture/tile_label.h"
#include "tests/sim/picture/read_back.h"

using namespace reshard::sim;

namespace {

ReadBack label_on(const Rectangle& at, const TileLabel& label) {
  return ReadBack(
      [&](Node parent) { add_tile_label(add_picture(parent, 500, 500, "a tile"), at, label); });
}

const Colour kYellow{0xf0, 0xe4, 0x42};

}  // namespace

TEST_CASE("ranks and part one above the other where there is room") {
  ReadBack wide = label_on({100, 100, 200, 60}, {"0,4", "[0:512, :]", kYellow});
  auto words = wide.all("//text");
  REQUIRE(words.size() == 2);
  CHECK(words[0].text().get() == std::string("0,4"));
  CHECK(number(words[0], "font-size") == 14);
  CHECK(words[0].attribute("fill").value() == std::string("#000000"));
  CHECK(words[1].text().get() == std::string("[0:512, :]"));
  CHECK(number(words[0], "x") == 200);
  CHECK(number(words[0], "y") < number(words[1], "y"));
  CHECK(number(words[1], "y") < 160);
  CHECK(label_on({100, 100, 200, 30}, {"0,4", "[0:512, :]", kYellow}).texts("text").size() == 1);
  CHECK(label_on({100, 100, 60, 60}, {"0,4", "[0:512, :]", kYellow}).texts("text").size() == 1);
  CHECK(label_on({100, 100, 200, 60}, {"0,4", "", kYellow}).texts("text").size() == 1);
}

TEST_CASE("words become smaller, then turn, then name the first rank, then go") {
  auto only = [](const Rectangle& at) {
    ReadBack picture = label_on(at, {"100-103,200-203", "", kYellow});
    auto words = picture.all("//text");
    REQUIRE(words.size() <= 1);
    return words.empty()
               ? std::make_tuple(std::string(), 0.0, false)
               : std::make_tuple(std::string(words[0].text().get()), number(words[0], "font-size"),
                                 !words[0].attribute("transform").empty());
  };
  CHECK(only({0, 0, 200, 20}) == std::make_tuple(std::string("100-103,200-203"), 14.0, false));
  CHECK(only({0, 0, 100, 20}) == std::make_tuple(std::string("100-103,200-203"), 9.0, false));
  CHECK(only({0, 0, 14, 200}) == std::make_tuple(std::string("100-103,200-203"), 11.0, true));
  CHECK(only({0, 0, 30, 30}) == std::make_tuple(std::string("100\u2026"), 10.0, false));
  CHECK(only({0, 0, 8, 8}) == std::make_tuple(std::string(), 0.0, false));
}

TEST_CASE("all ranks or none where that is wanted, there is room where something may stand") {
  auto words = [](const Rectangle& at, bool whole) {
    ReadBack picture = label_on(at, {"100-103,200-203", "", kYellow, whole});
    return picture.all("//text").size();
  };
  for (const auto& [at, whole, first] : {std::make_tuple(Rectangle{0, 0, 200, 20}, 1u, 1u),
                                         std::make_tuple(Rectangle{0, 0, 30, 30}, 0u, 1u),
                                         std::make_tuple(Rectangle{0, 0, 8, 8}, 0u, 0u)}) {
    CHECK(words(at, true) == whole);
    CHECK(words(at, false) == first);
    CHECK(room_for_ranks(at, "100-103,200-203") == (first == 1));
  }
}

TEST_CASE("on several colours words have a plate, within the tile") {
  for (const Rectangle& at : {Rectangle{100, 100, 200, 60}, Rectangle{100, 100, 60, 12},
                              Rectangle{100, 100, 12, 90}, Rectangle{100, 100, 24, 15}}) {
    ReadBack picture = label_on(at, {"0-3,8-11", "[0:512, :]", {}});
    auto plates = picture.all("//rect[@rx]");
    REQUIRE(plates.size() == 1);
    Area plate = area(plates[0]);
    CHECK(plate.x >= at.x);
    CHECK(plate.x + plate.width <= at.x + at.width);
    CHECK(plate.y >= at.y - 0.01);
    CHECK(plate.y + plate.height <= at.y + at.height + 0.01);
    CHECK(plates[0].attribute("class").value() == std::string("fill-paper"));
    for (Node words : picture.all("//text")) {
      CHECK(words.attribute("class").value() == std::string("fill-ink"));
      CHECK(number(words, "x") > plate.x);
      CHECK(number(words, "x") < plate.x + plate.width);
      CHECK(number(words, "y") > plate.y);
      CHECK(number(words, "y") < plate.y + plate.height);
    }
  }
}
