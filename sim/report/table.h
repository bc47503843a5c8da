// SPDX-License-Identifier: BSD-3-Clause
// Text tables: aligned columns, no trailing blanks, the same bytes on every platform. Tables fit a
// width: long text cells are wrapped within their column, at blanks if possible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::sim {

// A ratio in units of 1/10,000 as "1.0400"; "-" for none.
std::string ratio_text(std::optional<std::int64_t> ratio_e4);
// "5.389 ms"; "-" for none.
std::string time_text(std::optional<std::int64_t> ps);

// A list of ranks cut to 24 characters, with "..." for the rest.
std::string short_list(const std::string& ranks);

// Splits a text into lines of at most `width` code points. Lines end at a blank, which is dropped,
// or after another character of `ends`. A single word wider than `width` is split if `broken`, else
// its line is wider.
std::vector<std::string> wrapped(std::string_view text, std::size_t width,
                                 std::string_view ends = " ,", bool broken = true);

// The width if that of the screen is not known: in a pipe, in a log.
inline constexpr std::size_t kTableWidth = 80;

class Table {
 public:
  // A title with a leading '>' makes a column of figures, aligned right; others are aligned left.
  explicit Table(const std::vector<std::string>& titles);

  // As many cells as columns; cells hold UTF-8 and are measured in code points.
  void add_row(std::vector<std::string> cells);
  // A line of text below the last row, from the second column to the table's end.
  void add_note(std::string text);
  std::size_t rows() const { return rows_.size() - 1; }

  // A title line and one or more lines per row, columns two blanks apart.
  std::string text(std::size_t width = kTableWidth) const;

 private:
  struct Note {
    std::size_t below;  // index in rows_
    std::string text;
  };
  std::vector<std::size_t> widths_within(std::size_t width) const;

  std::vector<bool> right_;                     // by column
  std::vector<std::vector<std::string>> rows_;  // the titles first
  std::vector<Note> notes_;                     // in the order of the rows
};

// Lines "name   value" with the values in one column, within which long ones are wrapped.
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
