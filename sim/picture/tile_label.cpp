// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/tile_label.h"

#include <algorithm>

#include <fmt/core.h>

namespace reshard::sim {
namespace {

// Font sizes. Text in narrow tiles is smaller, so that their colours remain visible.
constexpr double kLargest = 14, kNarrow = 11, kSmallest = 8, kPartSize = 10;
// Factors to text_width for monospace and for bold text.
constexpr double kMono = 1.1, kBold = 1.2;

// The largest font size up to `size` at which `words` fit into `length` x `breadth`; below
// kSmallest if none fits.
double size_for(const std::string& words, double length, double breadth, double size) {
  while (size >= kSmallest && (text_width(words, size) * kBold > length - 2 || size > breadth - 1))
    size -= 1;
  return size;
}

std::string first_of(const std::string& ranks) {
  return fmt::format("{}\u2026", ranks.substr(0, ranks.find_first_not_of("0123456789")));
}

double upright_size(const Rectangle& at, const std::string& ranks) {
  return size_for(ranks, at.width, at.height, kLargest);
}
double upwards_size(const Rectangle& at, const std::string& ranks) {
  return size_for(ranks, at.height, at.width, kNarrow);
}
double first_size(const Rectangle& at, const std::string& ranks) {
  return size_for(first_of(ranks), at.width, at.height, kNarrow);
}

class LabelWriter {
 public:
  LabelWriter(Node parent, const Rectangle& at, const TileLabel& label)
      : parent_(parent), label_(label), x_(at.x + at.width / 2), y_(at.y + at.height / 2) {}

  void write_upright(const std::string& ranks, double size, const Rectangle& at) const {
    bool two = !label_.part.empty() && at.height >= 2 * size + 10 &&
               width_for_part(label_.part) <= at.width;
    double line = y_ + 0.36 * size - (two ? 7 : 0);
    double wide =
        std::max(text_width(ranks, size) * kBold + 6, two ? width_for_part(label_.part) : 0);
    add_plate(std::min(wide, at.width), size + (two ? 15 : 1));
    finish(add_heading(parent_, x_, line, size, ranks, "middle"));
    if (!two) return;
    Node part = add_text(parent_, x_, line + 14, kPartSize, label_.part, "middle");
    set(part, {"font-family", "ui-monospace, Menlo, Consolas, monospace"});
    finish(part);
  }

  void write_upwards(const std::string& ranks, double size, const Rectangle& at) const {
    double line = x_ + 0.36 * size, high = text_width(ranks, size) * kBold + 6;
    add_plate(size + 1, std::min(high, at.height));
    Node words = add_heading(parent_, line, y_, size, ranks, "middle");
    turn_upwards(words, line, y_);
    finish(words);
  }

 private:
  void add_plate(double width, double height) const {
    if (label_.ground) return;
    Node plate = add_rectangle(parent_, x_ - width / 2, y_ - height / 2, width, height);
    fill(plate, Tone::Paper);
    set(plate, {"rx", 3});
    set(plate, {"pointer-events", "none"});
  }

  void finish(Node words) const {
    set(words, {"pointer-events", "none"});
    if (!label_.ground) return;
    words.remove_attribute("class");
    fill(words, ink_on(*label_.ground));
  }

  Node parent_;
  const TileLabel& label_;
  const double x_, y_;  // the middle of the tile
};

}  // namespace

void add_tile_label(Node parent, const Rectangle& at, const TileLabel& label) {
  LabelWriter writer(parent, at, label);
  const std::string& ranks = label.ranks;
  if (double size = upright_size(at, ranks); size >= kSmallest)
    return writer.write_upright(ranks, size, at);
  if (double size = upwards_size(at, ranks); size >= kSmallest)
    return writer.write_upwards(ranks, size, at);
  if (double size = first_size(at, ranks); size >= kSmallest && !label.whole)
    writer.write_upright(first_of(ranks), size, at);
}

bool room_for_ranks(const Rectangle& at, const std::string& ranks) {
  return std::max({upright_size(at, ranks), upwards_size(at, ranks), first_size(at, ranks)}) >=
         kSmallest;
}

double width_for_part(const std::string& part) { return text_width(part, kPartSize) * kMono + 6; }

}  // namespace reshard::sim
