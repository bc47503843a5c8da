// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/table.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/ids.h"
#include "core/base/units.h"

namespace reshard::sim {

namespace {

// Code points of UTF-8 text: bytes that do not continue another.
std::size_t width_of(std::string_view text) {
  return to_index(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

void end_line(std::string& out) {
  out.erase(out.find_last_not_of(' ') + 1);
  out += '\n';
}

}  // namespace

std::string ratio_text(std::optional<std::int64_t> ratio_e4) {
  return ratio_e4 ? decimal_text(*ratio_e4, 10'000, 4) : "-";
}

std::string time_text(std::optional<std::int64_t> ps) { return ps ? duration_text(*ps) : "-"; }

Table::Table(const std::vector<std::string>& titles) : rows_{titles} {
  for (std::string& title : rows_.front()) {
    right_.push_back(title.starts_with('>'));
    if (right_.back()) title.erase(0, 1);
  }
}

void Table::add_row(std::vector<std::string> cells) {
  RESHARD_CHECK(cells.size() == right_.size(), "a row of " + std::to_string(cells.size()) +
                                                   " cells in a table of " +
                                                   std::to_string(right_.size()));
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::string_view indent) const {
  std::vector<std::size_t> widths(right_.size(), 0);
  for (const std::vector<std::string>& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  std::string out;
  for (const std::vector<std::string>& row : rows_) {
    out += indent;
    for (std::size_t c = 0; c < row.size(); ++c) {
      std::string blanks(widths[c] - width_of(row[c]), ' ');
      if (c > 0) out += "  ";
      out += right_[c] ? blanks + row[c] : row[c] + blanks;
    }
    end_line(out);
  }
  return out;
}

std::string Facts::text() const {
  std::size_t widest = 0;
  for (const Line& line : lines_) widest = std::max(widest, width_of(line.name));
  std::string out;
  for (const Line& line : lines_) {
    out += line.name + std::string(widest - width_of(line.name) + 2, ' ') + line.value;
    end_line(out);
  }
  return out;
}

}  // namespace reshard::sim
