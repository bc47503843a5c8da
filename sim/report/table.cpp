// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/table.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/ids.h"
#include "core/base/printable.h"
#include "core/base/units.h"

namespace reshard::sim {

namespace {

// Bytes of a cell: names from input files can be of any length.
constexpr std::size_t kMostInCell = 4000;
// Text columns are not made narrower than this by splitting words.
constexpr std::size_t kLeastText = 8;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// The number of code points of UTF-8 text: bytes that are not continuation bytes.
std::size_t width_of(std::string_view text) {
  return to_index(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

// A piece of text after which a line can end.
struct LineWord {
  std::string_view text;
  bool after_blank;
};

template <class Visit>
void for_each_piece(std::string_view text, std::string_view ends, Visit&& visit) {
  for (bool blank = false; !text.empty();) {
    std::size_t end = std::min(text.find_first_of(ends), text.size());
    bool stays = end < text.size() && text[end] != ' ';
    visit(LineWord{text.substr(0, end + (stays ? 1 : 0)), blank});
    blank = end < text.size() && !stays;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

constexpr std::string_view kEnds = " ,";

std::size_t longest_piece(std::string_view text) {
  std::size_t longest = 0;
  for_each_piece(text, kEnds,
                 [&](const LineWord& piece) { longest = std::max(longest, width_of(piece.text)); });
  return longest;
}

// The first `count` code points.
std::string_view first_of(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (; end < text.size() && (count > 0 || continues(text[end])); ++end)
    if (!continues(text[end])) --count;
  return text.substr(0, end);
}

void end_line(std::string& out) {
  out.erase(out.find_last_not_of(' ') + 1);
  out += '\n';
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::string_view ends,
                                 bool broken) {
  if (width_of(text) <= width) return {std::string(text)};
  std::vector<std::string> lines(1);
  std::size_t used = 0;  // of the last line
  for_each_piece(text, ends, [&](const LineWord& piece) {
    const std::size_t blank = piece.after_blank ? 1 : 0;
    std::size_t left_width = width_of(piece.text);
    if (used > 0 && used + blank + left_width > width) {
      lines.emplace_back();
      used = 0;
    } else if (blank > 0) {
      lines.back() += ' ';
      ++used;
    }
    std::string_view left = piece.text;
    for (; broken && width > 0 && left_width > width; left_width -= width, used = 0) {
      std::string_view first = first_of(left, width);
      lines.back() += first;
      left.remove_prefix(first.size());
      lines.emplace_back();
    }
    lines.back() += left;
    used += left_width;
  });
  return lines;
}

std::string ratio_text(std::optional<std::int64_t> ratio_e4) {
  return ratio_e4 ? decimal_text(*ratio_e4, 10'000, 4) : "-";
}

std::string short_list(const std::string& ranks) {
  return ranks.size() <= 24 ? ranks : ranks.substr(0, 21) + "...";
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
  for (std::string& cell : cells) cell = printable(cell, kMostInCell);
  rows_.push_back(std::move(cells));
}

void Table::add_note(std::string text) {
  notes_.push_back({rows_.size() - 1, printable(text, kMostInCell)});
}

// Starts with each column as wide as its widest cell. If that is too wide, narrows the widest
// columns: first the titles of figures, then text wrapped at blanks, last text with split words.
std::vector<std::size_t> Table::widths_within(std::size_t width) const {
  std::vector<std::size_t> widths(right_.size(), 0), least(right_.size(), 0);
  for (const std::vector<std::string>& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t whole = width_of(row[c]);
      widths[c] = std::max(widths[c], whole);
      bool is_figure = right_[c] && &row != &rows_.front();
      if (whole > least[c])
        least[c] = std::max(least[c], is_figure ? whole : longest_piece(row[c]));
    }
  std::size_t all = 2 * (widths.size() - 1);
  for (std::size_t one : widths) all += one;
  auto narrow = [&](bool figures) {
    for (; all > width; --all) {
      std::size_t widest = widths.size();
      for (std::size_t c = 0; c < widths.size(); ++c)
        if (right_[c] == figures && widths[c] > least[c] &&
            (widest == widths.size() || widths[c] >= widths[widest]))
          widest = c;
      if (widest == widths.size()) break;
      --widths[widest];
    }
  };
  narrow(true);
  narrow(false);
  for (std::size_t& one : least) one = std::min(one, kLeastText);
  narrow(false);
  return widths;
}

std::string Table::text(std::size_t width) const {
  std::vector<std::size_t> widths = widths_within(width);
  std::string out;
  auto note = notes_.begin();
  std::vector<std::vector<std::string>> cells(right_.size());
  for (const std::vector<std::string>& row : rows_) {
    std::size_t lines = 1;
    for (std::size_t c = 0; c < row.size(); ++c) {
      cells[c] = wrapped(row[c], widths[c]);
      lines = std::max(lines, cells[c].size());
    }
    for (std::size_t l = 0; l < lines; ++l) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        std::string_view cell = l < cells[c].size() ? std::string_view(cells[c][l]) : "";
        std::size_t blanks = widths[c] - std::min(widths[c], width_of(cell));
        if (c > 0) out += "  ";
        if (right_[c]) out.append(blanks, ' ');
        out += cell;
        if (!right_[c]) out.append(blanks, ' ');
      }
      end_line(out);
    }
    std::size_t index = to_index(&row - rows_.data()), indent = widths.front() + 2;
    for (; note != notes_.end() && note->below == index; ++note)
      for (const std::string& line : wrapped(note->text, width - std::min(width, indent))) {
        out += std::string(indent, ' ') + line;
        end_line(out);
      }
  }
  return out;
}

std::string Facts::text(std::size_t width) const {
  std::size_t widest = 0;
  for (const Line& line : lines_) widest = std::max(widest, width_of(line.name));
  std::string out;
  for (const Line& line : lines_) {
    std::string name = line.name;
    for (const std::string& part :
         wrapped(printable(line.value, kMostInCell), width - std::min(width, widest + 2))) {
      out += name + std::string(widest - width_of(name) + 2, ' ') + part;
      end_line(out);
      name.clear();
    }
  }
  return out;
}

}  // namespace reshard::sim
