// SPDX-License-Identifier: BSD-3-Clause
// Text tables for people: aligned columns, no trailing blanks, the same bytes everywhere.
#pragma once

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

class Table {
 public:
  // A title behind '>' is of figures: its column is aligned right, all others left.
  explicit Table(const std::vector<std::string>& titles);

  // As many cells as columns; cells hold UTF-8 and are measured in code points.
  void add_row(std::vector<std::string> cells);
  std::size_t rows() const { return rows_.size() - 1; }

  // A title line and one line per row, columns two blanks apart, each line behind `indent`.
  std::string text(std::string_view indent = "") const;

 private:
  std::vector<bool> right_;                     // by column
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

// Lines "name   value" with the values in one column.
class Facts {
 public:
  void add(std::string name, std::string value) {
    lines_.push_back({std::move(name), std::move(value)});
  }
  std::string text() const;

 private:
  struct Line {
    std::string name, value;
  };
  std::vector<Line> lines_;
};

}  // namespace reshard::sim
