// SPDX-License-Identifier: BSD-3-Clause
// The colours of data, which colour-blind readers can distinguish.
//
// Categories have the colours of Okabe and Ito, the same in light and dark mode. Heat is cividis;
// in light mode it is reversed and paler, so that high values stand out from the background in both
// modes. Text on them is black or white, whichever is more legible.
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

// One colour for light mode and one for dark mode.
struct Shade {
  Colour day, night;
  friend auto operator<=>(const Shade&, const Shade&) = default;
};

// Colour `index` of `count`. Up to 256 are all different; the first seven are far apart.
Colour category_colour(std::size_t index, std::size_t count);
// The end of cividis near the background for part 0, the other end for `whole` and above. part >=
// 0, whole > 0.
Shade heat_of(std::int64_t part, std::int64_t whole);
// Black or white, whichever is more legible; the contrast is at least 4.5.
Colour ink_on(const Colour& ground);

}  // namespace reshard::sim
