// SPDX-License-Identifier: BSD-3-Clause
// Tables of a page: figures aligned right and, where the script runs, sorted by a click on a title.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/picture/markup.h"

namespace reshard::sim {

struct Cell {
  Cell(std::string_view text_in) : text(text_in) {}
  Cell(const std::string& text_in) : text(text_in) {}
  Cell(const char* text_in) : text(text_in) {}
  // Sorted by `order_in`, not by how its text is written.
  Cell(std::string_view text_in, std::int64_t order_in) : text(text_in), order(order_in) {}
  static Cell count(std::int64_t number);
  static Cell bytes(std::int64_t number);
  // "-" where there is none, which is sorted behind all others.
  static Cell time(std::optional<std::int64_t> ps);
  static Cell ratio(std::optional<std::int64_t> ratio_e4);

  std::string text;
  std::optional<std::int64_t> order = {};
};

class HtmlTable {
 public:
  // A title behind '>' is of figures, as in sim/report/table.h. `caption` says what the rows are.
  HtmlTable(Node parent, std::string_view caption, const std::vector<std::string>& titles);
  // As many cells as titles. Returns the row.
  Node add_row(const std::vector<Cell>& cells);

 private:
  std::vector<bool> figures_;  // by column
  Node body_;
};

// A folded part of a panel, for what not everybody wants to see: the numbers of its picture.
Node add_folded(Node panel, std::string_view heading);

}  // namespace reshard::sim
