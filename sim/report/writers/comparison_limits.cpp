// SPDX-License-Identifier: BSD-3-Clause
// Limits to how much figures may change from one report to the other.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/report/comparison.h"

namespace reshard::sim {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kShort{{
    {"time", "time_ps"},
    {"ideal", "ideal_time_ps"},
    {"bytes", "bytes_received_total"},
    {"peak", "peak_bytes_max"},
    {"extra", "extra_bytes_max"},
    {"ratio", "ratio_to_bound"},
}};

std::string figure_of(std::string_view name) {
  for (const auto& [shorter, figure] : kShort)
    if (shorter == name) return std::string(figure);
  return std::string(name);
}

std::string_view stripped(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The amount of a limit without '%': "0", "1us", "4KiB", "-0.5".
double amount_of(std::string_view text, std::string_view name, std::string_view field) {
  double plain = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), plain);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(plain))
    return plain;
  bool below = text.starts_with('-');
  std::string_view size = below ? text.substr(1) : text;
  double out = static_cast<double>(name.ends_with("_ps")           ? parse_duration_ps(size, field)
                                   : name.ends_with("bytes_per_s") ? parse_bytes_per_s(size, field)
                                                                   : parse_bytes(size, field));
  return below ? -out : out;
}

FigureLimit parse_limit(std::string_view text, std::string_view field) {
  std::size_t at = text.find_first_of("<>");
  std::string_view name = stripped(text.substr(0, at));
  std::string_view limit =
      at == std::string_view::npos ? std::string_view() : stripped(text.substr(at + 1));
  if (name.empty() || limit.empty())
    throw InputError(fmt::format("{}: expected limits such as 'time>5%,bytes>0', found {}", field,
                                 reshard::quoted(text)));
  FigureLimit out{std::string(text), figure_of(name), text[at] == '>', 0, limit.ends_with('%')};
  if (!out.relative) {
    out.change = amount_of(limit, out.name, field);
    return out;
  }
  std::string_view percent = stripped(limit.substr(0, limit.size() - 1));
  auto [end, error] = std::from_chars(percent.data(), percent.data() + percent.size(), out.change);
  if (error != std::errc() || end != percent.data() + percent.size() || !std::isfinite(out.change))
    throw InputError(
        fmt::format("{}: expected a number of percent, found {}", field, reshard::quoted(limit)));
  out.change /= 100;
  return out;
}

// B against A; from 0 every growth is above every percentage.
double change_of(const FigureLimit& limit, double a, double b) {
  if (!limit.relative) return b - a;
  if (a == 0) return b == 0 ? 0 : std::copysign(HUGE_VAL, b);
  return (b - a) / std::abs(a);
}

}  // namespace

std::vector<FigureLimit> parse_limits(std::string_view text, std::string_view field) {
  std::vector<FigureLimit> out;
  while (true) {
    std::size_t comma = text.find(',');
    out.push_back(parse_limit(stripped(text.substr(0, comma)), field));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

std::vector<CheckedLimit> checked_limits(const Comparison& comparison,
                                         const std::vector<FigureLimit>& limits,
                                         std::string_view field) {
  std::vector<CheckedLimit> out;
  for (const FigureLimit& limit : limits) {
    const ComparedFigure* figure = nullptr;
    // A model's report has those of its run in "run".
    for (const std::string& name : {limit.name, "run." + limit.name})
      for (const ComparedFigure& each : comparison.figures)
        if (figure == nullptr && each.name == name && each.a && each.b) figure = &each;
    if (figure == nullptr)
      throw InputError(fmt::format("{}: expected a figure that both reports have, found {}", field,
                                   reshard::quoted(limit.name)));
    double change = change_of(limit, figure->a->value(), figure->b->value());
    out.push_back({limit.text,
                   fmt::format("{}: {} is {}, was {} ({})", limit.text, figure->name,
                               figure->b->text(), figure->a->text(), change_text(figure->change())),
                   limit.above ? change > limit.change : change < limit.change});
  }
  return out;
}

}  // namespace reshard::sim
