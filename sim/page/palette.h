// SPDX-License-Identifier: BSD-3-Clause
// The colours of pictures, and the ground that all pictures stand on.
//
// A picture is read in a page, as a file of its own and on paper, by day and by night. So what is
// not data (ink, edges, ground) has a class, which the picture's own style sheet colours by the
// reader's light or dark; beside it stands the light colour as an attribute, for readers without
// style sheets. What is data has the same colour everywhere, and its text the ink that it needs.
// Categories are those of Okabe and Ito, heat is cividis: both are told apart by the colour-blind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "sim/page/markup.h"

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

// A picture with its style sheet and its ground.
Node add_picture(Node parent, double width, double height, std::string_view title);

// A file with nothing but what `draw` adds.
void write_picture(std::ostream& out, const std::function<void(Node parent)>& draw);

// What is not data; more attributes may follow.
enum class Tone : std::uint8_t { Ink, Soft, Edge, Panel, Paper };
void fill(Node of, Tone tone);
void stroke(Node of, Tone tone, double width);

// Text with its baseline at y; `anchor` is "start", "middle" or "end".
Node add_text(Node parent, double x, double y, double size, std::string_view text,
              const char* anchor = "start", Tone tone = Tone::Ink);
// About as wide as readers' fonts set it, rather more.
double text_width(std::string_view text, double size);

Node add_rectangle(Node parent, double x, double y, double width, double height);

}  // namespace reshard::sim
