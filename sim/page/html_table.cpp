// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/html_table.h"

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/report/table.h"

namespace reshard::sim {

Cell Cell::count(std::int64_t number) { return {std::to_string(number), number}; }

Cell Cell::bytes(std::int64_t number) { return {bytes_text(number), number}; }

Cell Cell::time(std::optional<std::int64_t> ps) {
  return ps ? Cell(duration_text(*ps), *ps) : Cell("-");
}

Cell Cell::ratio(std::optional<std::int64_t> ratio_e4) {
  return ratio_e4 ? Cell(ratio_text(ratio_e4), *ratio_e4) : Cell("-");
}

HtmlTable::HtmlTable(Node parent, std::string_view caption,
                     const std::vector<std::string>& titles) {
  Node table = add(add(parent, "div", {{"class", "scrolled"}, {"tabindex", 0}}), "table");
  add(table, "caption", {}, caption);
  Node row = add(add(table, "thead"), "tr");
  for (const std::string& title : titles) {
    figures_.push_back(title.starts_with('>'));
    Node head = add(row, "th", {{"scope", "col"}}, title.substr(figures_.back() ? 1 : 0));
    if (figures_.back()) head.append_attribute("class") = "figure";
  }
  body_ = add(table, "tbody");
}

Node HtmlTable::add_row(const std::vector<Cell>& cells) {
  RESHARD_CHECK(cells.size() == figures_.size(), "a row of another width than its table");
  Node row = add(body_, "tr");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Node cell = add(row, "td", {}, cells[i].text);
    if (figures_[i]) cell.append_attribute("class") = "figure";
    if (cells[i].order)
      cell.append_attribute("data-order") = std::to_string(*cells[i].order).c_str();
  }
  return row;
}

Node add_folded(Node panel, std::string_view heading) {
  Node folded = add(panel, "details");
  add(folded, "summary", {}, heading);
  return folded;
}

}  // namespace reshard::sim
