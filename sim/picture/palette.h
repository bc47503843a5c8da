// SPDX-License-Identifier: BSD-3-Clause
// The colours of data, told apart by the colour-blind.
//
// Categories are those of Okabe and Ito, the same by day and by night. Heat is cividis, turned
// round and paler by day, so that what is much stands out from the ground, light or dark. Whatever
// stands on them has the ink that it needs to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace reshard::sim {

struct Colour {
  std::int32_t red, green, blue;  // 0 .. 255
  friend auto operator<=>(const Colour&, const Colour&) = default;
};
std::string text(const Colour& colour);  // "#56b4e9"

// One of light ground and one of dark.
struct Shade {
  Colour day, night;
  friend auto operator<=>(const Shade&, const Shade&) = default;
};

// Number `index` of `count`. Up to 256 are all different; the first seven are far apart.
Colour category_colour(std::size_t index, std::size_t count);
// Of nothing the ground's side of cividis, of `whole` the other; beyond it as there. part >= 0,
// whole > 0.
Shade heat_of(std::int64_t part, std::int64_t whole);
// Black or white, whichever is read better: a contrast of at least 4.5.
Colour ink_on(const Colour& ground);

}  // namespace reshard::sim
