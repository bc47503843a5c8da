// SPDX-License-Identifier: BSD-3-Clause
// The colours of data: the same by day and by night, and told apart by the colour-blind.
//
// Categories are those of Okabe and Ito, heat is cividis. Whatever stands on them has the ink that
// it needs to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reshard::sim {

struct Colour {
  std::int32_t red, green, blue;  // 0 .. 255
  friend auto operator<=>(const Colour&, const Colour&) = default;
};
std::string text(const Colour& colour);  // "#56b4e9"

// Number `index` of `count`. Up to 256 are all different; the first seven are far apart.
Colour category_colour(std::size_t index, std::size_t count);
// From dark for nothing to bright for `whole`; beyond it as there. part >= 0, whole > 0.
Colour heat_colour(std::int64_t part, std::int64_t whole);
// Black or white, whichever is read better: a contrast of at least 4.5.
std::string_view ink_on(const Colour& ground);

}  // namespace reshard::sim
