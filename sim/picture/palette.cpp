// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/palette.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "core/base/ids.h"

namespace reshard::sim {
namespace {

constexpr std::array<Colour, 7> kCategories{{{0x56, 0xb4, 0xe9},
                                             {0xe6, 0x9f, 0x00},
                                             {0x00, 0x9e, 0x73},
                                             {0xf0, 0xe4, 0x42},
                                             {0xcc, 0x79, 0xa7},
                                             {0xd5, 0x5e, 0x00},
                                             {0x00, 0x72, 0xb2}}};

// Cividis, sampled at equal distances.
constexpr std::array<Colour, 9> kHeat{{{0x00, 0x22, 0x4e},
                                       {0x1a, 0x38, 0x6f},
                                       {0x43, 0x4e, 0x6c},
                                       {0x61, 0x64, 0x6f},
                                       {0x7d, 0x7c, 0x78},
                                       {0x9b, 0x94, 0x76},
                                       {0xbb, 0xae, 0x6d},
                                       {0xdc, 0xc9, 0x5c},
                                       {0xfe, 0xe8, 0x38}}};

// Interpolates from `a` at part 0 to `b` at part `whole`.
Colour between(const Colour& a, const Colour& b, std::int64_t part, std::int64_t whole) {
  auto mixed = [&](std::int32_t from, std::int32_t to) {
    return from + static_cast<std::int32_t>((to - from) * part / whole);
  };
  return {mixed(a.red, b.red), mixed(a.green, b.green), mixed(a.blue, b.blue)};
}

// Relative luminance as WCAG 2 defines it.
double luminance(const Colour& colour) {
  auto linear = [](std::int32_t channel) {
    double value = channel / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

// From dark at 0 to bright at 1.
Colour cividis(double place) {
  constexpr std::int64_t steps = 8, fine = 1000;
  auto at = static_cast<std::int64_t>(place * double{steps * fine});
  if (at == steps * fine) return kHeat.back();
  auto step = to_index(at / fine);
  return between(kHeat[step], kHeat[step + 1], at % fine, fine);
}

}  // namespace

std::string text(const Colour& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

// Beyond the base colours, lighter shades of them follow, the lightest last.
Colour category_colour(std::size_t index, std::size_t count) {
  constexpr Colour white{255, 255, 255};
  constexpr std::int64_t most_white = 70;  // per cent
  auto shades = static_cast<std::int64_t>((count + kCategories.size() - 1) / kCategories.size());
  auto shade = static_cast<std::int64_t>(index / kCategories.size());
  return between(kCategories[index % kCategories.size()], white, shade * most_white,
                 std::max<std::int64_t>(1, shades) * 100);
}

Shade heat_of(std::int64_t part, std::int64_t whole) {
  double place = std::min(static_cast<double>(part) / static_cast<double>(whole), 1.0);
  // Paler in light mode, where a strong yellow would look like a high value.
  constexpr Colour white{255, 255, 255};
  constexpr double most_white = 400;  // in thousandths
  return {
      between(cividis(1 - place), white, static_cast<std::int64_t>(most_white * (1 - place)), 1000),
      cividis(place)};
}

Colour ink_on(const Colour& ground) {
  // Compares the contrasts (white + 0.05) / (ground + 0.05) and (ground + 0.05) / (black + 0.05).
  double light = luminance(ground) + 0.05;
  return light * light >= 1.05 * 0.05 ? Colour{0, 0, 0} : Colour{255, 255, 255};
}

}  // namespace reshard::sim
