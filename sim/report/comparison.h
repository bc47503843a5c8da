// SPDX-License-Identifier: BSD-3-Clause
// Two reports of one kind side by side: what differs, and by how much.
//
// Reports are JSON (tools/json-schemas.md), so runs of other days, machines and versions can be
// compared. Nothing of a schema is written down again here: a field's unit stands in its name, text
// is compared as text, and the objects of a list are paired by the fields that name them ("name",
// "rank", "mesh" with "from" and "to" ...), or by their place where they have none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::sim {

enum class Unit : std::uint8_t { Time, Bytes, Rate, Number };

// A figure of a report; integers are exact.
struct Amount {
  Unit unit = Unit::Number;
  std::optional<std::int64_t> integer;  // else `real`
  double real = 0;

  double value() const { return integer ? static_cast<double>(*integer) : real; }
  std::string text() const;  // "3.356 ms"
  friend bool operator==(const Amount&, const Amount&) = default;
};

struct ComparedText {
  std::string name, a, b;  // "request.from"
};
// Null is no amount.
struct ComparedFigure {
  std::string name;  // "bound.cut_ps"
  std::optional<Amount> a, b;

  bool differs() const { return a != b; }
  // b / a - 1; none where one is missing or a is 0.
  std::optional<double> change() const;
};
// A figure of an object that both lists have.
struct ComparedRow {
  std::string key;  // "node0.gpu2.nic.out"
  ComparedFigure figure;
};
struct ComparedList {
  std::string name;  // "links"
  std::int64_t count_a = 0, count_b = 0;
  std::vector<std::string> only_a, only_b;  // keys
  std::vector<ComparedRow> differing;  // the greatest changes of a unit first, times before bytes
};

struct Comparison {
  std::string name_a, name_b;  // files
  std::string schema_a, schema_b;
  std::vector<ComparedText> texts;      // those that differ
  std::vector<ComparedFigure> figures;  // all, in the order of the reports
  std::vector<ComparedList> lists;      // those that differ

  bool differs() const;
};

// `text_a` and `text_b` as commands print with --json; the names are those of their files. Throws
// InputError where one is no report of reshard or they are of different kinds: those of plan and
// simulate alone may be mixed.
Comparison compare_reports(std::string_view text_a, std::string name_a, std::string_view text_b,
                           std::string name_b);

// "+12.3 %"; "-" where there is none.
std::string change_text(std::optional<double> change);

// The first `most` rows of each list.
std::string comparison_table(const Comparison& comparison, std::size_t most, std::size_t width);
std::string comparison_json(const Comparison& comparison);

}  // namespace reshard::sim
