// SPDX-License-Identifier: BSD-3-Clause
// Text tables for people: aligned columns, no trailing blanks, the same bytes everywhere. They fit
// a width: long cells of text go on below themselves, broken at blanks where that is enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::sim {

// "1.0400" of ten-thousandths; "-" where there is none.
std::string ratio_text(std::optional<std::int64_t> ratio_e4);
// "5.389 ms", "-" where there is none.
std::string time_text(std::optional<std::int64_t> ps);

// The lines of a text, at most `width` wide: they end at a blank, which goes, or behind another of
// the characters `ends`; within a word that alone is wider only where words may be `broken`.
std::vector<std::string> wrapped(std::string_view text, std::size_t width,
                                 std::string_view ends = " ,", bool broken = true);

// Where nobody says how wide a screen is: in a pipe, in a log.
inline constexpr std::size_t kTableWidth = 80;

class Table {
 public:
  // A title behind '>' is of figures: its column is aligned right, all others left.
  explicit Table(const std::vector<std::string>& titles);

  // As many cells as columns; cells hold UTF-8 and are measured in code points.
  void add_row(std::vector<std::string> cells);
  std::size_t rows() const { return rows_.size() - 1; }

  // A title line and one line per row or more, columns two blanks apart.
  std::string text(std::size_t width = kTableWidth) const;

 private:
  std::vector<std::size_t> widths_within(std::size_t width) const;

  std::vector<bool> right_;                     // by column
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

// Lines "name   value" with the values in one column, in which long ones go on.
class Facts {
 public:
  void add(std::string name, std::string value) {
    lines_.push_back({std::move(name), std::move(value)});
  }
  std::string text(std::size_t width = kTableWidth) const;

 private:
  struct Line {
    std::string name, value;
  };
  std::vector<Line> lines_;
};

}  // namespace reshard::sim
