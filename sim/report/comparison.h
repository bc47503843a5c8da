// SPDX-License-Identifier: BSD-3-Clause
// Compares two reports of one kind: what differs, and by how much.
//
// Reports are JSON (tools/json-schemas.md), so runs of different days, machines and versions can be
// compared. The comparison knows no schema: a field's unit follows from its name, text is compared
// as text, and the objects of a list are paired by the fields that name them ("name", "rank",
// "mesh" with "from" and "to" ...), or by position if they have none.
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
  std::optional<std::int64_t> integer;  // none: the value is `real`
  double real = 0;

  double value() const { return integer ? static_cast<double>(*integer) : real; }
  std::string text() const;  // "3.356 ms"
  friend bool operator==(const Amount&, const Amount&) = default;
};

struct ComparedText {
  std::string name, a, b;  // "request.from"
};
struct ComparedFigure {
  std::string name;            // "bound.cut_ps"
  std::optional<Amount> a, b;  // none: null, or missing from this report

  bool differs() const { return a != b; }
  // b / a - 1; none if one is missing or a is 0.
  std::optional<double> change() const;
};
// A figure of an object that occurs in both lists.
struct ComparedRow {
  std::string key;  // "node0.gpu2.nic.out"
  ComparedFigure figure;
};
struct ComparedList {
  std::string name;  // "links"
  std::int64_t count_a = 0, count_b = 0;
  std::vector<std::string> only_a, only_b;  // keys
  std::vector<ComparedRow> differing;       // by Unit, then by size of the change, descending
};

struct Comparison {
  std::string name_a, name_b;  // files
  std::string schema_a, schema_b;
  std::vector<ComparedText> texts;      // only those that differ
  std::vector<ComparedFigure> figures;  // all, in the order of the reports
  std::vector<ComparedList> lists;      // only those that differ

  bool differs() const;
};

// `text_a` and `text_b` are what commands print with --json, `name_a` and `name_b` their files.
// Throws InputError if one is not a report of reshard, or if they are of different kinds; only
// those of plan and simulate can be mixed.
Comparison compare_reports(std::string_view text_a, std::string name_a, std::string_view text_b,
                           std::string name_b);

// "time>5%,bytes>0,bound.cut_ps>1us": by how much a figure of B may be above that of A ('<': below
// it), relative or, without '%', in the figure's unit. "time", "ideal", "bytes", "peak", "extra"
// and "ratio" are short for the fields of that meaning; other names are those of the reports.
struct FigureLimit {
  std::string text;  // as written
  std::string name;  // of the figure
  bool above;        // '>'
  double change;     // relative, or an amount
  bool relative;
};
// Throws InputError naming `field`.
std::vector<FigureLimit> parse_limits(std::string_view text, std::string_view field);
struct CheckedLimit {
  std::string text;   // as written
  std::string found;  // "time>5%: time_ps is 3.000 us, was 2.000 us (+50.0 %)"
  bool is_passed;
};
// In the order of the limits. Throws InputError naming `field` for a figure that a report lacks.
std::vector<CheckedLimit> checked_limits(const Comparison& comparison,
                                         const std::vector<FigureLimit>& limits,
                                         std::string_view field);

// "+12.3 %"; "-" for none.
std::string change_text(std::optional<double> change);

// Shows at most `most` rows of each list.
std::string comparison_table(const Comparison& comparison, std::size_t most, std::size_t width);
std::string comparison_json(const Comparison& comparison);

}  // namespace reshard::sim
