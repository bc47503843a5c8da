// SPDX-License-Identifier: BSD-3-Clause
// What all pictures are drawn with, and the ground that they stand on.
//
// A picture is read in a page, as a file of its own and on paper, by day and by night. So what is
// not data (ink, edges, ground) has a class, which the picture's own style sheet colours by the
// reader's light or dark; beside it stands the light colour as an attribute, for readers without
// style sheets. What is data has its colour alone (palette.h); a shade, which has two, does the
// same with a variable of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string_view>

#include "sim/picture/markup.h"
#include "sim/picture/palette.h"

namespace reshard::sim {

// A picture with its style sheet and its ground.
Node add_picture(Node parent, double width, double height, std::string_view title);

// A file with nothing but what `draw` adds.
void write_picture(std::ostream& out, const std::function<void(Node parent)>& draw);

// What is not data.
enum class Tone : std::uint8_t { Ink, Soft, Edge, Panel, Paper };

// An attribute, in place of the one of its name.
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
// Read from below, around (x, y).
void turn_upwards(Node text, double x, double y);
// About as wide as readers' fonts set it, rather more; bold letters are 1.2 times as wide.
double text_width(std::string_view text, double size);

// All of heat's colours in a row, 12 high, from (x, y).
inline constexpr double kHeatScale = 160;
void add_heat_scale(Node parent, double x, double y);

}  // namespace reshard::sim
