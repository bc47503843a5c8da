// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/palette.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace reshard::sim {
namespace {

constexpr std::array<Colour, 7> kCategories{{{0x56, 0xb4, 0xe9},
                                             {0xe6, 0x9f, 0x00},
                                             {0x00, 0x9e, 0x73},
                                             {0xf0, 0xe4, 0x42},
                                             {0xcc, 0x79, 0xa7},
                                             {0xd5, 0x5e, 0x00},
                                             {0x00, 0x72, 0xb2}}};

// Cividis at equal distances.
constexpr std::array<Colour, 9> kHeat{{{0x00, 0x22, 0x4e},
                                       {0x1a, 0x38, 0x6f},
                                       {0x43, 0x4e, 0x6c},
                                       {0x61, 0x64, 0x6f},
                                       {0x7d, 0x7c, 0x78},
                                       {0x9b, 0x94, 0x76},
                                       {0xbb, 0xae, 0x6d},
                                       {0xdc, 0xc9, 0x5c},
                                       {0xfe, 0xe8, 0x38}}};

// From `a` at part 0 to `b` at part `whole`.
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

struct ToneRow {
  const char *name, *light, *dark;
};
// By Tone.
constexpr std::array<ToneRow, 5> kTones{{{"ink", "#1f2328", "#e6edf3"},
                                         {"soft", "#57606a", "#9da7b3"},
                                         {"edge", "#868e96", "#6e7681"},
                                         {"panel", "#f1f4f7", "#1a212b"},
                                         {"paper", "#ffffff", "#0d1117"}}};

std::string style_sheet() {
  std::string light, dark, classes;
  for (const ToneRow& tone : kTones) {
    light += fmt::format("--drawing-{}:{};", tone.name, tone.light);
    dark += fmt::format("--drawing-{}:{};", tone.name, tone.dark);
    classes += fmt::format(".drawing .fill-{0}{{fill:var(--drawing-{0})}}", tone.name);
    classes += fmt::format(".drawing .stroke-{0}{{stroke:var(--drawing-{0})}}", tone.name);
  }
  return fmt::format(".drawing{{{}}}@media (prefers-color-scheme:dark){{.drawing{{{}}}}}{}", light,
                     dark, classes);
}

void add_class(Node of, std::string_view name) {
  pugi::xml_attribute attribute = of.attribute("class");
  if (!attribute) attribute = of.append_attribute("class");
  std::string before = attribute.value();
  attribute = (before.empty() ? std::string(name) : before + " " + std::string(name)).c_str();
}

void set(Node of, const char* name, const std::string& value) {
  of.append_attribute(name) = value.c_str();
}

}  // namespace

std::string text(const Colour& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

// Each colour comes in shades, the lightest last.
Colour category_colour(std::size_t index, std::size_t count) {
  constexpr Colour white{255, 255, 255};
  constexpr std::int64_t most_white = 70;  // per cent
  auto shades = static_cast<std::int64_t>((count + kCategories.size() - 1) / kCategories.size());
  auto shade = static_cast<std::int64_t>(index / kCategories.size());
  return between(kCategories[index % kCategories.size()], white, shade * most_white,
                 std::max<std::int64_t>(1, shades) * 100);
}

Colour heat_colour(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t steps = 8, fine = 1000;
  double place = static_cast<double>(part) / static_cast<double>(whole);
  auto at = static_cast<std::int64_t>(std::min(place, 1.0) * double{steps * fine});
  if (at == steps * fine) return kHeat.back();
  auto step = static_cast<std::size_t>(at / fine);
  return between(kHeat[step], kHeat[step + 1], at % fine, fine);
}

std::string_view ink_on(const Colour& ground) {
  // (white + 0.05) / (ground + 0.05) against (ground + 0.05) / (black + 0.05).
  double light = luminance(ground) + 0.05;
  return light * light >= 1.05 * 0.05 ? "#000000" : "#ffffff";
}

Node add_picture(Node parent, double width, double height, std::string_view title) {
  Node svg = add_svg(parent, width, height, title);
  add_class(svg, "drawing");
  set(svg, "font-family", "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif");
  add(svg, "style", {}, style_sheet());
  fill(add_rectangle(svg, 0, 0, width, height), Tone::Paper);
  return svg;
}

void write_picture(std::ostream& out, const std::function<void(Node parent)>& draw) {
  pugi::xml_document document;
  draw(document);
  document.save(out, " ");
}

void fill(Node of, Tone tone) {
  const ToneRow& row = kTones[static_cast<std::size_t>(tone)];
  add_class(of, std::string("fill-") + row.name);
  set(of, "fill", row.light);
}

void stroke(Node of, Tone tone, double width) {
  const ToneRow& row = kTones[static_cast<std::size_t>(tone)];
  add_class(of, std::string("stroke-") + row.name);
  set(of, "stroke", row.light);
  set(of, "stroke-width", coordinate_text(width));
}

Node add_text(Node parent, double x, double y, double size, std::string_view text,
              const char* anchor, Tone tone) {
  Node node = add(parent, "text", {{"x", x}, {"y", y}, {"font-size", size}}, text);
  if (std::string_view(anchor) != "start") set(node, "text-anchor", anchor);
  fill(node, tone);
  return node;
}

double text_width(std::string_view text, double size) {
  auto code_points = std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; });
  return 0.58 * size * static_cast<double>(code_points);
}

Node add_rectangle(Node parent, double x, double y, double width, double height) {
  return add(parent, "rect", {{"x", x}, {"y", y}, {"width", width}, {"height", height}});
}

}  // namespace reshard::sim
