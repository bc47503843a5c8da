// SPDX-License-Identifier: BSD-3-Clause
// Writes the report on a model's transfer as text and JSON.
#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/inputs/json_reader.h"
#include "sim/models/report/transfer_report.h"
#include "sim/report/facts.h"
#include "sim/report/json.h"
#include "sim/report/ratios.h"
#include "sim/report/table.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kGroupsShown = 16;

// "mlp.experts.gate_proj" of "layers.*.mlp.experts.gate_proj.weight".
std::string short_name(std::string_view name) {
  constexpr std::string_view kLayers = "layers.*.", kWeight = ".weight";
  if (name.starts_with(kLayers)) name.remove_prefix(kLayers.size());
  if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  return std::string(name);
}

std::string head_text(const TransferReport& report, std::size_t width) {
  const RunReport& run = report.run;
  Facts facts;
  facts.add("model", fmt::format("{}, {}", report.text.model, report.text.dtype));
  facts.add("from", report.text.from);
  facts.add("to", report.text.to);
  for (const std::string& note : report.text.notes) facts.add("note", note);
  std::int64_t bytes = 0;
  for (const TransferGroup& kind : report.kinds) bytes += kind.bytes;
  facts.add("moves", fmt::format("{} in {} tensors{}", bytes_text(bytes), run.tensors.size(),
                                 report.in_turn ? ", the source's stages in turn" : ""));
  facts.add("topology", fmt::format("{} ({} of {} devices)", run.topology, run.ranks.size(),
                                    run.topology_devices));
  for (const std::string& assumed : run.assumed) facts.add("assumed", assumed);
  facts.add("planner", run.planner == run.planner_asked
                           ? run.planner
                           : fmt::format("{}, which chose {}", run.planner_asked, run.planner));
  if (report.relayed_bytes > 0)
    facts.add("relayed",
              fmt::format("{}, which ranks receive for others", bytes_text(report.relayed_bytes)));
  if (report.local) facts.add("in memory", local_text(*report.local));
  return facts.text(width);
}

std::string kinds_text(const TransferReport& report, bool all, std::size_t width) {
  Table table({"tensors", ">count", ">bytes", ">received", ">first byte", ">last byte"});
  const std::size_t shown =
      all || report.kinds.size() <= kGroupsShown + 1 ? report.kinds.size() : kGroupsShown;
  TransferGroup rest;
  for (std::size_t i = 0; i < report.kinds.size(); ++i) {
    const TransferGroup& kind = report.kinds[i];
    if (i < shown) {
      table.add_row({short_name(kind.name), std::to_string(kind.tensors), bytes_text(kind.bytes),
                     bytes_text(kind.use.received_bytes), time_text(kind.use.first_ps),
                     time_text(kind.use.last_ps)});
      continue;
    }
    rest.tensors += kind.tensors;
    rest.bytes += kind.bytes;
    rest.use += kind.use;
  }
  if (shown < report.kinds.size())
    table.add_row({fmt::format("{} more (-v)", report.kinds.size() - shown),
                   std::to_string(rest.tensors), bytes_text(rest.bytes),
                   bytes_text(rest.use.received_bytes), time_text(rest.use.first_ps),
                   time_text(rest.use.last_ps)});
  return "\n" + table.text(width);
}

std::string stages_text(const TransferReport& report, bool all, std::size_t width) {
  if (report.stages.size() < 2) return "";
  Table table(
      {"layers", "from ranks", "to ranks", ">bytes", ">received", ">first byte", ">last byte"});
  const std::size_t shown =
      all || report.stages.size() <= 2 * kGroupsShown ? report.stages.size() : kGroupsShown;
  for (std::size_t i = 0; i < shown; ++i) {
    const TransferGroup& stage = report.stages[i];
    table.add_row({stage.name, short_list(stage.from), short_list(stage.to),
                   bytes_text(stage.bytes), bytes_text(stage.use.received_bytes),
                   time_text(stage.use.first_ps), time_text(stage.use.last_ps)});
  }
  std::string more =
      shown == report.stages.size()
          ? ""
          : fmt::format("(and {} more; -v shows every one)\n", report.stages.size() - shown);
  return fmt::format("\n{}{}", table.text(width), more);
}

std::string what_if_text(const TransferReport& report, std::size_t width) {
  if (report.what_ifs.empty()) return "";
  Table table({"what if", "planner", ">time", ">bound", ">ratio", ">peak memory", ">extra"});
  auto add = [&](const std::string& name, const std::string& planner, std::int64_t time,
                 std::int64_t bound, std::int64_t peak, std::int64_t extra) {
    table.add_row({name, planner, duration_text(time), duration_text(bound), ratio_of(time, bound),
                   bytes_text(peak), bytes_text(extra)});
  };
  const RunReport& run = report.run;
  add("(as asked)", run.planner, run.time_ps, run.bound.time_ps(), run.bytes.peak_max,
      run.needs.extra_bytes);
  for (const WhatIfRow& row : report.what_ifs)
    if (row.refused.empty()) {
      add(row.name, row.planner, row.time_ps, row.bound_ps, row.peak_bytes, row.extra_bytes);
      for (const std::string& note : row.notes) table.add_note(note);
    } else {
      table.add_row({row.name, "refused", "-", "-", "-", "-", "-"});
      table.add_note(row.refused);
    }
  return "\n" + table.text(width);
}

Json group_json(const TransferGroup& group) {
  return {{"name", group.name},
          {"tensors", group.tensors},
          {"bytes", group.bytes},
          {"bytes_received", group.use.received_bytes},
          {"first_ps", or_null(group.use.first_ps)},
          {"last_ps", or_null(group.use.last_ps)}};
}

}  // namespace

std::string local_text(const LocalWork& local) {
  auto text = [&](std::string_view what, std::int64_t bytes) {
    return fmt::format("{} {} in {}", what, bytes_text(bytes), duration_text(local.time_ps(bytes)));
  };
  std::string all = text("pack", local.pack_bytes);
  if (local.convert_bytes > 0) all += ", " + text("convert", local.convert_bytes);
  all += ", " + text("install", local.install_bytes);
  return fmt::format(
      "{}: at most, on the fullest rank, at the {} of its memory, each byte read and "
      "written",
      all, rate_text(local.rate_bytes_per_s));
}

std::string transfer_table(const TransferReport& report, bool verbose, std::size_t width) {
  RunReport run = report.run;
  if (!verbose) run.links.clear();
  return head_text(report, width) + kinds_text(report, verbose, width) +
         stages_text(report, verbose, width) + "\n" + result_table(run, verbose, width) +
         what_if_text(report, width);
}

std::string transfer_json(const TransferReport& report) {
  Json out = {{"schema", "reshard.model/1"},
              {"model", report.text.model},
              {"dtype", report.text.dtype},
              {"from", report.text.from},
              {"to", report.text.to},
              {"notes", report.text.notes},
              {"in_turn", report.in_turn},
              {"bytes_relayed", report.relayed_bytes},
              {"kinds", list_json(report.kinds, group_json)}};
  out["stages"] = list_json(report.stages, [](const TransferGroup& stage) {
    Json row = group_json(stage);
    row["layers"] = row["name"];
    row.erase("name");
    row["ranks"] = stage.from;
    row["to_ranks"] = stage.to;
    return row;
  });
  out["in_memory"] = nullptr;
  if (const std::optional<LocalWork>& local = report.local)
    out["in_memory"] = {{"rate_bytes_per_s", local->rate_bytes_per_s},
                        {"pack_bytes", local->pack_bytes},
                        {"pack_ps", local->time_ps(local->pack_bytes)},
                        {"convert_bytes", local->convert_bytes},
                        {"convert_ps", local->time_ps(local->convert_bytes)},
                        {"install_bytes", local->install_bytes},
                        {"install_ps", local->time_ps(local->install_bytes)}};
  out["what_if"] = list_json(report.what_ifs, [](const WhatIfRow& row) -> Json {
    if (!row.refused.empty()) return {{"name", row.name}, {"refused", row.refused}};
    return {{"name", row.name},
            {"planner", row.planner},
            {"time_ps", row.time_ps},
            {"bound_ps", row.bound_ps},
            {"peak_bytes_max", row.peak_bytes},
            {"extra_bytes_max", row.extra_bytes},
            {"notes", row.notes}};
  });
  out["run"] = read_json_or_other<Json>(simulate_json(report.run), "run", kJsonFile);
  return written(out);
}

}  // namespace reshard::sim
