// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/drawing.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>

#include "core/base/ids.h"

namespace reshard::sim {
namespace {

struct ToneRow {
  const char *name, *light, *dark;
};
// Indexed by Tone.
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
  return fmt::format(
      ".drawing{{{}}}{}@media screen and (prefers-color-scheme:dark){{.drawing{{{}}}"
      ".drawing .shade-fill{{fill:var(--night)}}.drawing .shade-stroke{{stroke:var(--night)}}}}",
      light, classes, dark);
}

void add_class(Node of, std::string_view name) {
  std::string all = of.attribute("class").value();
  set(of, {"class", all.empty() ? name : all + " " + std::string(name)});
}

// `what` is "fill" or "stroke".
void paint(Node of, const char* what, const Shade& shade) {
  set(of, {what, text(shade.day)});
  if (shade.day == shade.night) return;
  add_class(of, std::string("shade-") + what);
  set(of, {"style", "--night:" + text(shade.night)});
}

const ToneRow& row_of(Tone tone) { return kTones[to_index(tone)]; }

}  // namespace

Node add_picture(Node parent, double width, double height, std::string_view title) {
  Node svg = add_svg(parent, width, height, title);
  add_class(svg, "drawing");
  set(svg, {"font-family", "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"});
  add(svg, "style", {}, style_sheet());
  fill(add_rectangle(svg, 0, 0, width, height), Tone::Paper);
  return svg;
}

void write_picture(std::ostream& out, const std::function<void(Node parent)>& draw) {
  pugi::xml_document document;
  draw(document);
  document.save(out, " ");
}

void set(Node of, const Attribute& attribute) {
  pugi::xml_attribute known = of.attribute(attribute.name);
  (known ? known : of.append_attribute(attribute.name)) = attribute.value.c_str();
}

void fill(Node of, Tone tone) {
  add_class(of, std::string("fill-") + row_of(tone).name);
  set(of, {"fill", row_of(tone).light});
}

void fill(Node of, const Colour& colour) { set(of, {"fill", text(colour)}); }

void fill(Node of, const Shade& shade) { paint(of, "fill", shade); }

void stroke(Node of, Tone tone, double width) {
  add_class(of, std::string("stroke-") + row_of(tone).name);
  set(of, {"stroke", row_of(tone).light});
  set(of, {"stroke-width", width});
}

void stroke(Node of, const Shade& shade, double width) {
  paint(of, "stroke", shade);
  set(of, {"stroke-width", width});
}

Node add_rectangle(Node parent, double x, double y, double width, double height) {
  return add(parent, "rect", {{"x", x}, {"y", y}, {"width", width}, {"height", height}});
}

Node add_text(Node parent, double x, double y, double size, std::string_view text,
              const char* anchor, Tone tone) {
  Node node = add(parent, "text", {{"x", x}, {"y", y}, {"font-size", size}}, text);
  if (std::string_view(anchor) != "start") set(node, {"text-anchor", anchor});
  fill(node, tone);
  return node;
}

Node add_heading(Node parent, double x, double y, double size, std::string_view text,
                 const char* anchor, Tone tone) {
  Node node = add_text(parent, x, y, size, text, anchor, tone);
  set(node, {"font-weight", "600"});
  return node;
}

void turn_upwards(Node text, double x, double y) {
  set(text,
      {"transform", fmt::format("rotate(-90 {} {})", coordinate_text(x), coordinate_text(y))});
}

double text_width(std::string_view text, double size) {
  auto code_points = std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; });
  return 0.58 * size * static_cast<double>(code_points);
}

void add_heat_scale(Node parent, double x, double y) {
  constexpr std::int64_t steps = 40;
  constexpr double step_width = kHeatScale / steps;
  // Each step is a little wider, so that no gaps show.
  for (std::int64_t step = 0; step < steps; ++step)
    fill(add_rectangle(parent, x + step_width * static_cast<double>(step), y,
                       step + 1 < steps ? step_width + 0.2 : step_width, 12),
         heat_of(step, steps - 1));
}

}  // namespace reshard::sim
