// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/time_tables.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/integers.h"
#include "core/base/units.h"
#include "sim/report/table.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kLinksShown = 5, kCausesShown = 6, kPartsShown = 5;

std::int64_t time_of(const PathFacts& path) {
  return path.parts.empty() ? 0 : path.parts.back().end_ps;
}

std::string more(std::size_t count, std::size_t shown) {
  return count > shown ? fmt::format("(and {} more)\n", count - shown) : std::string();
}

// The longest parts (the first of equals), in order of time.
std::vector<PathFacts::PathSpan> longest_parts(const PathFacts& path) {
  std::vector<PathFacts::PathSpan> parts = path.parts;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const PathFacts::PathSpan& a, const PathFacts::PathSpan& b) {
                     return a.end_ps - a.start_ps > b.end_ps - b.start_ps;
                   });
  parts.resize(std::min(parts.size(), kPartsShown));
  std::sort(parts.begin(), parts.end(),
            [](const PathFacts::PathSpan& a, const PathFacts::PathSpan& b) {
              return a.start_ps < b.start_ps;
            });
  return parts;
}

}  // namespace

std::string share_text(std::int64_t time_ps, std::int64_t of_ps) {
  Int128 thousandths = (Int128{time_ps} * 2000 + of_ps) / (Int128{of_ps} * 2);
  return decimal_text(static_cast<std::int64_t>(thousandths), 10, 1) + " %";
}

std::string link_table(const std::vector<LinkUse>& links, std::int64_t end_ps, std::int64_t scale,
                       std::size_t width) {
  Table table({"busiest links", ">bytes", ">busy", ">utilisation"});
  for (std::size_t i = 0; i < std::min(kLinksShown, links.size()); ++i)
    table.add_row({links[i].name, bytes_text(links[i].bytes), duration_text(links[i].busy_ps),
                   decimal_text(utilisation(links[i], end_ps, scale), scale / 100, 1) + " %"});
  return table.rows() == 0 ? std::string() : fmt::format("\n{}", table.text(width));
}

std::string path_sentence(const PathFacts& path) {
  if (!path.recorded) return "not recorded: too many transfers";
  if (path.causes.empty()) return {};
  return fmt::format("{} of the time is spent waiting for {}",
                     share_text(path.causes.front().time_ps, time_of(path)),
                     path.causes.front().name);
}

std::string path_tables(const PathFacts& path, const std::string& title,
                        const std::function<std::string(const PathFacts::PathSpan&)>& what,
                        std::size_t width) {
  if (path.parts.empty()) return {};
  Table causes({"waits for", ">time", ">share"});
  for (std::size_t i = 0; i < std::min(kCausesShown, path.causes.size()); ++i)
    causes.add_row({path.causes[i].name, duration_text(path.causes[i].time_ps),
                    share_text(path.causes[i].time_ps, time_of(path))});
  Table parts({"longest waits", title, ">start", ">end"});
  for (const PathFacts::PathSpan& part : longest_parts(path))
    parts.add_row(
        {part.cause, what(part), duration_text(part.start_ps), duration_text(part.end_ps)});
  return fmt::format("\n{}{}\n{}{}", causes.text(width), more(path.causes.size(), kCausesShown),
                     parts.text(width), more(path.parts.size(), kPartsShown));
}

std::string_view part_kind(const Workload& workload, OpId op, std::int32_t step) {
  const auto& body = workload.operations[to_index(op)].body;
  if (const auto* run = std::get_if<RunPlan>(&body)) return kind_text(run->plan->steps[step]);
  if (const auto* collective = std::get_if<BareCollective>(&body)) return text(collective->kind);
  if (std::holds_alternative<Setup>(body)) return "setup";
  return std::holds_alternative<Compute>(body) ? "compute" : "message";
}

std::string part_name(const Workload& workload, const std::vector<std::string>& labels, OpId op,
                      std::int32_t step) {
  std::size_t index = to_index(op);
  std::string label = index < labels.size() ? labels[index] : std::string{};
  if (step < 0) return label.empty() ? "operation " + std::to_string(index) : label;
  std::string kind{part_kind(workload, op, step)};
  return label.empty() ? kind : label + ": " + kind;
}

}  // namespace reshard::sim
