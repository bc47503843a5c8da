// SPDX-License-Identifier: BSD-3-Clause
// The contrast between two colours, by WCAG 2's formula.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

namespace reshard::sim {

// Of "#rrggbb".
inline double luminance(const std::string& colour) {
  auto channel = [&](std::size_t at) {
    double value = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

inline double contrast(const std::string& a, const std::string& b) {
  double one = luminance(a) + 0.05, other = luminance(b) + 0.05;
  return std::max(one, other) / std::min(one, other);
}

}  // namespace reshard::sim
