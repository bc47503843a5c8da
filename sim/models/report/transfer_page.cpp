// SPDX-License-Identifier: BSD-3-Clause
// The page of a model's transfer: the tensors by kind and by stage, what variants would change,
// then the run as for any job.
#include <fmt/ranges.h>

#include "core/base/units.h"
#include "sim/models/report/transfer_report.h"
#include "sim/page/pages.h"
#include "sim/report/facts.h"
#include "sim/report/table.h"

namespace reshard::sim {
namespace {

Cell time_cell(const std::optional<std::int64_t>& time_ps) {
  return {time_text(time_ps), time_ps.value_or(-1)};
}
Cell bytes_cell(std::int64_t bytes) { return {bytes_text(bytes), bytes}; }

void add_kinds(Page& page, const TransferReport& report) {
  HtmlTable table(page.add_panel("kinds", "Tensors by kind",
                                 "Bytes of each tensor once, and what all ranks together receive."),
                  "tensors by kind",
                  {"tensors", ">count", ">bytes", ">received", ">first byte", ">last byte"});
  for (const TransferGroup& kind : report.kinds)
    table.add_row({kind.name, Cell::count(static_cast<std::int64_t>(kind.tensors)),
                   bytes_cell(kind.bytes), bytes_cell(kind.use.received_bytes),
                   time_cell(kind.use.first_ps), time_cell(kind.use.last_ps)});
}

void add_stages(Page& page, const TransferReport& report) {
  if (report.stages.size() < 2) return;
  HtmlTable table(
      page.add_panel("sides", "Stages", "By the ranks that have the tensors before."), "stages",
      {"layers", "from ranks", "to ranks", ">bytes", ">received", ">first byte", ">last byte"});
  for (const TransferGroup& stage : report.stages)
    table.add_row({stage.name, stage.from, stage.to, bytes_cell(stage.bytes),
                   bytes_cell(stage.use.received_bytes), time_cell(stage.use.first_ps),
                   time_cell(stage.use.last_ps)});
}

std::vector<std::string> with_notes(const WhatIfRow& row) {
  std::vector<std::string> out{row.name};
  out.insert(out.end(), row.notes.begin(), row.notes.end());
  return out;
}

void add_what_ifs(Page& page, const TransferReport& report) {
  if (report.what_ifs.empty()) return;
  HtmlTable table(page.add_panel("what-if", "What if", "The same transfer with one thing changed."),
                  "what if",
                  {"what if", "planner", ">time", ">bound", ">ratio", ">peak memory", ">extra"});
  const RunReport& run = report.run;
  auto add = [&](const std::string& name, const std::string& planner, std::int64_t time,
                 std::int64_t bound, std::int64_t peak, std::int64_t extra) {
    table.add_row({name, planner, time_cell(time), time_cell(bound), ratio_of(time, bound),
                   bytes_cell(peak), bytes_cell(extra)});
  };
  add("(as asked)", run.planner, run.time_ps, run.bound.time_ps(), run.bytes.peak_max,
      run.needs.extra_bytes);
  for (const WhatIfRow& row : report.what_ifs)
    if (row.refused.empty())
      add(fmt::format("{}", fmt::join(with_notes(row), "; ")), row.planner, row.time_ps,
          row.bound_ps, row.peak_bytes, row.extra_bytes);
    else
      table.add_row({row.name, row.refused, "-", "-", "-", "-", "-"});
}

}  // namespace

std::string transfer_page(const TransferReport& report, Study& study) {
  PageOpening opening;
  opening.title = fmt::format("{}: {} -> {}", report.text.model, report.text.from, report.text.to);
  opening.facts = {{"model", fmt::format("{}, {}", report.text.model, report.text.dtype)},
                   {"from", report.text.from},
                   {"to", report.text.to}};
  for (const std::string& note : report.text.notes) opening.facts.push_back({"note", note});
  if (report.local) opening.facts.push_back({"in memory", local_text(*report.local)});
  opening.panels = [&](Page& page) {
    add_kinds(page, report);
    add_stages(page, report);
    add_what_ifs(page, report);
  };
  return run_page("model", report.run, study, opening);
}

}  // namespace reshard::sim
