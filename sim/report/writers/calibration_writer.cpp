// SPDX-License-Identifier: BSD-3-Clause
// Writes a calibration: figures before and after, errors by collective and number of ranks.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/report/json.h"
#include "sim/report/writers/calibration_writer.h"

namespace reshard::sim {
namespace {

std::string percent(double value) {
  return decimal_text(static_cast<std::int64_t>(value * 10 + 0.5), 10, 1) + " %";
}

std::string signed_percent(double value) {
  return fmt::format("{}{}", value < 0 ? "-" : "+", percent(value < 0 ? -value : value));
}

std::string figure_value(FigureUnit unit, std::int64_t value) {
  if (unit == FigureUnit::Time) return duration_text(value);
  if (unit == FigureUnit::Rate) return rate_text(value);
  if (unit == FigureUnit::Size) return bytes_text(value);
  return decimal_text(value, kRatioOne, 3);
}

// Rows grouped by collective and number of ranks, before and after; both lists have the same rows.
using Key = std::pair<CollectiveKind, std::int32_t>;
std::map<Key, std::pair<std::vector<RowError>, std::vector<RowError>>> by_kind(
    const ErrorsBeforeAfter& errors) {
  std::map<Key, std::pair<std::vector<RowError>, std::vector<RowError>>> out;
  for (std::size_t i = 0; i < errors.before.size(); ++i) {
    const MeasuredCollective& row = *errors.before[i].row;
    auto& both = out[{row.kind, row.ranks}];
    both.first.push_back(errors.before[i]);
    both.second.push_back(errors.after[i]);
  }
  return out;
}

void add_errors(Table& table, const std::string& title, const ErrorsBeforeAfter& errors,
                bool fitted) {
  auto add = [&](const std::string& name, const std::string& ranks,
                 const std::vector<RowError>& before, const std::vector<RowError>& after) {
    ErrorSummary was = summary_of(before), is = summary_of(after);
    std::vector<std::string> cells{name, ranks, std::to_string(was.rows), percent(was.mean),
                                   percent(was.p90)};
    if (fitted) cells.insert(cells.end(), {percent(is.mean), percent(is.p90)});
    table.add_row(std::move(cells));
  };
  if (errors.before.empty()) return;
  for (const auto& [key, both] : by_kind(errors))
    add(std::string(text(key.first)), std::to_string(key.second), both.first, both.second);
  add(title, "", errors.before, errors.after);
}

std::string rows_table(const ErrorsBeforeAfter& errors, std::size_t width) {
  Table table({"collective", ">ranks", ">bytes", ">measured", ">predicted", ">error"});
  for (const RowError& error : errors.after)
    table.add_row({std::string(text(error.row->kind)), std::to_string(error.row->ranks),
                   bytes_text(error.row->bytes), duration_text(error.row->time_ps),
                   duration_text(error.predicted_ps), signed_percent(100 * error.error())});
  return table.text(width);
}

std::vector<Fitted> all_fitted(const CalibrationReport& report) {
  std::vector<Fitted> out = report.links;
  if (report.calibration)
    out.insert(out.end(), report.calibration->fitted.begin(), report.calibration->fitted.end());
  return out;
}

std::string figures_table(const CalibrationReport& report, std::size_t width) {
  Table table({"figure", ">before", ">fitted", "meaning"});
  for (const Fitted& figure : all_fitted(report))
    table.add_row({figure.name, figure_value(figure.unit, figure.before),
                   figure_value(figure.unit, figure.after), figure.meaning});
  return table.text(width);
}

double relative(std::int64_t rate, const MeasuredPairs& pairs) {
  return 100 * (static_cast<double>(rate) / static_cast<double>(pairs.measured_bytes_per_s) - 1);
}

std::string pairs_table(const CalibrationReport& report, bool fitted, std::size_t width) {
  std::vector<std::string> titles{"copies", ">pairs", ">measured", ">predicted", ">error"};
  if (fitted) titles.insert(titles.end(), {">fitted: predicted", ">error"});
  Table table(titles);
  for (const MeasuredPairs& pairs : report.pairs) {
    std::vector<std::string> cells{std::string(text(pairs.path_class)), std::to_string(pairs.pairs),
                                   rate_text(pairs.measured_bytes_per_s),
                                   rate_text(pairs.before_bytes_per_s),
                                   signed_percent(relative(pairs.before_bytes_per_s, pairs))};
    if (fitted)
      cells.insert(cells.end(), {rate_text(pairs.after_bytes_per_s),
                                 signed_percent(relative(pairs.after_bytes_per_s, pairs))});
    table.add_row(std::move(cells));
  }
  return table.text(width);
}

Json summary_json(const std::vector<RowError>& errors) {
  ErrorSummary summary = summary_of(errors);
  auto rounded = [](double value) {
    return static_cast<double>(static_cast<std::int64_t>(value * 100 + 0.5)) / 100;
  };
  return {{"rows", summary.rows},
          {"mean_percent", rounded(summary.mean)},
          {"p90_percent", rounded(summary.p90)},
          {"worst_percent", rounded(summary.worst)}};
}

}  // namespace

std::string calibration_table(const CalibrationReport& report, bool every_row, std::size_t width) {
  bool fitted = report.calibration.has_value(), collectives = !report.fitted.before.empty();
  Facts facts;
  facts.add("topology", report.topology);
  if (collectives || report.pairs.empty())
    facts.add("rows", fmt::format("{} {}, {} held out, {} skipped", report.fitted.before.size(),
                                  fitted ? "fitted" : "compared", report.held.before.size(),
                                  report.passed_over));
  for (const std::string& note : report.notes) facts.add("note", note);
  if (fitted) {
    for (const auto& [left, kept] : report.calibration->indistinguishable)
      facts.add("unchanged",
                fmt::format("{}: these rows cannot distinguish it from {}", left, kept));
    for (const std::string& name : report.calibration->undetermined)
      facts.add("unchanged", fmt::format("{}: it affects none of these rows", name));
  }
  std::string out = facts.text(width) + "\n";
  if (!all_fitted(report).empty()) out += figures_table(report, width) + "\n";
  if (!report.pairs.empty())
    out += pairs_table(report, !report.compared, width) + (collectives ? "\n" : "");
  if (!collectives) return out;
  std::vector<std::string> titles{"collective", ">ranks", ">rows", ">mean error", ">p90"};
  if (fitted) titles.insert(titles.end(), {">fitted: mean error", ">p90"});
  Table table(titles);
  add_errors(table, fitted ? "all fitted rows" : "all", report.fitted, fitted);
  add_errors(table, "all held-out rows", report.held, fitted);
  out += table.text(width);
  if (every_row) {
    out += fmt::format("\n{}", rows_table(report.fitted, width));
    if (!report.held.after.empty()) out += fmt::format("\n{}", rows_table(report.held, width));
  }
  return out;
}

std::string calibration_json(const CalibrationReport& report) {
  Json out = {{"schema", "reshard.calibrate/1"}, {"topology", report.topology}};
  Json figures = Json::array(), left = Json::array(), rows = Json::array();
  for (const Fitted& figure : all_fitted(report))
    figures.push_back({{"name", figure.name}, {"before", figure.before}, {"after", figure.after}});
  if (report.calibration) {
    for (const auto& [name, kept] : report.calibration->indistinguishable)
      left.push_back({{"name", name}, {"alike", kept}});
    for (const std::string& name : report.calibration->undetermined)
      left.push_back({{"name", name}, {"alike", nullptr}});
  }
  auto add_rows = [&](const ErrorsBeforeAfter& errors, bool held) {
    for (const RowError& error : errors.after)
      rows.push_back({{"collective", text(error.row->kind)},
                      {"ranks", error.row->ranks},
                      {"bytes", error.row->bytes},
                      {"measured_ps", error.row->time_ps},
                      {"predicted_ps", error.predicted_ps},
                      {"held_out", held}});
  };
  add_rows(report.fitted, false);
  add_rows(report.held, true);
  out["figures"] = figures;
  out["left"] = left;
  out["fitted"] = {{"before", summary_json(report.fitted.before)},
                   {"after", summary_json(report.fitted.after)}};
  out["held_out"] = {{"before", summary_json(report.held.before)},
                     {"after", summary_json(report.held.after)}};
  out["copies"] = list_json(report.pairs, [](const MeasuredPairs& pairs) -> Json {
    return {{"class", text(pairs.path_class)},
            {"pairs", pairs.pairs},
            {"measured_bytes_per_s", pairs.measured_bytes_per_s},
            {"before_bytes_per_s", pairs.before_bytes_per_s},
            {"after_bytes_per_s", pairs.after_bytes_per_s}};
  });
  out["passed_over"] = report.passed_over;
  out["notes"] = report.notes;
  out["rows"] = rows;
  return written(out);
}

}  // namespace reshard::sim
