// SPDX-License-Identifier: BSD-3-Clause
// Drawing primitives of all pictures, and their background.
//
// A picture is shown in a page, as a separate file and on paper, in light and in dark mode. What is
// not data (ink, edges, background) therefore has a class, which the picture's own style sheet
// colours according to the mode; its light colour is also an attribute, for viewers without style
// sheets. Data has one fixed colour (palette.h). A shade has two: the light one is an attribute,
// and the dark one is a variable that the style sheet applies in dark mode.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string_view>

#include "sim/picture/markup.h"
#include "sim/picture/palette.h"

namespace reshard::sim {

// A picture with its style sheet and its background.
Node add_picture(Node parent, double width, double height, std::string_view title);

// Writes a file with only what `draw` adds.
void write_picture(std::ostream& out, const std::function<void(Node parent)>& draw);

// Colours of what is not data.
enum class Tone : std::uint8_t { Ink, Soft, Edge, Panel, Paper };

// Sets an attribute and replaces one of the same name.
void set(Node of, const Attribute& attribute);
void fill(Node of, Tone tone);
void fill(Node of, const Colour& colour);
void fill(Node of, const Shade& shade);
void stroke(Node of, Tone tone, double width);
void stroke(Node of, const Shade& shade, double width);

Node add_rectangle(Node parent, double x, double y, double width, double height);

// Text with its baseline at y; `anchor` is "start", "middle" or "end".
Node add_text(Node parent, double x, double y, double size, std::string_view text,
              const char* anchor = "start", Tone tone = Tone::Ink);
// The same, bold.
Node add_heading(Node parent, double x, double y, double size, std::string_view text,
                 const char* anchor = "start", Tone tone = Tone::Ink);
// Rotates a text by 90 degrees around (x, y), so that it reads upwards.
void turn_upwards(Node text, double x, double y);
// An estimate of the width in usual fonts, on the large side; bold text is 1.2 times as wide.
double text_width(std::string_view text, double size);

// The whole colour scale of heat as a strip from (x, y), 12 high.
inline constexpr double kHeatScale = 160;
void add_heat_scale(Node parent, double x, double y);

}  // namespace reshard::sim
