// SPDX-License-Identifier: BSD-3-Clause
// Writes the comparison of two reports as tables and as JSON.
#include <algorithm>

#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/report/comparison.h"
#include "sim/report/json.h"
#include "sim/report/table.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kKeysShown = 4;

std::string amount_text(const std::optional<Amount>& amount) {
  return amount ? amount->text() : "-";
}

std::string keys_text(const std::vector<std::string>& keys) {
  std::string out;
  for (std::size_t i = 0; i < std::min(kKeysShown, keys.size()); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? ", " : "", keys[i]);
  return keys.size() > kKeysShown ? fmt::format("{} and {} more", out, keys.size() - kKeysShown)
                                  : out;
}

std::string figures_table(const Comparison& comparison, std::size_t width) {
  Table table({"figure", ">a", ">b", ">change"});
  for (const ComparedFigure& figure : comparison.figures)
    if (figure.differs())
      table.add_row({figure.name, amount_text(figure.a), amount_text(figure.b),
                     change_text(figure.change())});
  if (table.rows() == 0) return "";
  return fmt::format("\n{}", table.text(width));
}

std::string list_table(const ComparedList& list, std::size_t most, std::size_t width) {
  Facts head;
  head.add(list.name, fmt::format("{} and {}", list.count_a, list.count_b));
  if (!list.only_a.empty()) head.add("only in a", keys_text(list.only_a));
  if (!list.only_b.empty()) head.add("only in b", keys_text(list.only_b));
  std::string out = fmt::format("\n{}", head.text(width));
  if (list.differing.empty()) return out;
  Table table({"", "figure", ">a", ">b", ">change"});
  std::size_t shown = std::min(most, list.differing.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [key, figure] = list.differing[i];
    table.add_row({key, figure.name, amount_text(figure.a), amount_text(figure.b),
                   change_text(figure.change())});
  }
  out += table.text(width);
  if (shown < list.differing.size())
    out += fmt::format("{} more (-v: all)\n", list.differing.size() - shown);
  return out;
}

Json amount_json(const std::optional<Amount>& amount) {
  if (!amount) return nullptr;
  return amount->integer ? Json(*amount->integer) : Json(amount->real);
}

Json list_json_of(const ComparedList& list) {
  return {{"name", list.name},
          {"count_a", list.count_a},
          {"count_b", list.count_b},
          {"only_a", list.only_a},
          {"only_b", list.only_b},
          {"differing", list_json(list.differing, [](const ComparedRow& row) {
             return Json{{"key", row.key},
                         {"figure", row.figure.name},
                         {"a", amount_json(row.figure.a)},
                         {"b", amount_json(row.figure.b)}};
           })}};
}

}  // namespace

std::string comparison_table(const Comparison& comparison, std::size_t most, std::size_t width) {
  Facts head;
  head.add("a", comparison.name_a);
  head.add("b", comparison.name_b);
  for (const ComparedText& each : comparison.texts) {
    head.add(each.name, fmt::format("a  {}", each.a));
    head.add("", fmt::format("b  {}", each.b));
  }
  std::string out = head.text(width);
  if (!comparison.differs()) return out + "\nNothing differs.\n";
  out += figures_table(comparison, width);
  for (const ComparedList& list : comparison.lists) out += list_table(list, most, width);
  return out;
}

std::string comparison_json(const Comparison& comparison) {
  return written(
      {{"schema", "reshard.compare/1"},
       {"a", {{"file", comparison.name_a}, {"schema", comparison.schema_a}}},
       {"b", {{"file", comparison.name_b}, {"schema", comparison.schema_b}}},
       {"differs", comparison.differs()},
       {"texts", list_json(comparison.texts,
                           [](const ComparedText& each) {
                             return Json{{"name", each.name}, {"a", each.a}, {"b", each.b}};
                           })},
       {"figures", list_json(comparison.figures,
                             [](const ComparedFigure& each) {
                               return Json{{"name", each.name},
                                           {"a", amount_json(each.a)},
                                           {"b", amount_json(each.b)}};
                             })},
       {"lists", list_json(comparison.lists, list_json_of)}});
}

}  // namespace reshard::sim
