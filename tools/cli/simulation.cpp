// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/simulation.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/exports/exports.h"
#include "sim/page/pages.h"
#include "sim/report/writers/perfetto.h"
#include "sim/store/data_check.h"
#include "sim/store/machine_memory.h"
#include "tools/cli/pipeline.h"

namespace reshard::tools {
namespace {

sim::DataReport data_of(const sim::Job& job, const std::string& how, std::int64_t budget) {
  if (how == "proof") return sim::not_moved(job.study().tensors(), "--data proof");
  return how == "full" ? job.moved(budget) : job.moved_if_within(budget);
}

}  // namespace

void simulate(const SimulationOptions& options, std::vector<NamedFile> inputs,
              const std::function<Simulated()>& subject) {
  const std::string &perfetto = options.output.perfetto, &html = options.output.html;
  require_files({{perfetto, "--perfetto"}, {html, "--html"}}, inputs);
  refuse_unprinted(options.output, perfetto, "--perfetto -");
  refuse_unprinted(options.output, html, "--html -");
  std::int64_t budget = data_budget_of(options.data);
  Simulated what = subject();
  if (options.data.how == "full")
    sim::require_movable(what.subject.requests, sim::memory_of_machine_bytes());
  sim::StudyOptions wanted = study_options(options.machine);
  wanted.meanwhile = sim::Meanwhile::Report;
  bool has_page = !html.empty(), has_timeline = has_page || !perfetto.empty();
  wanted.record = {.spans = true,
                   .path = options.output.json || options.output.verbose || has_page,
                   .flows = has_timeline,
                   .work = has_timeline};
  wanted.explain = has_page;
  Progress progress;
  wanted.on_stage = [&](std::string_view stage) { progress.stage(stage); };
  sim::Job job = job_of(what.subject, options.machine, wanted);

  progress.stage("timing");
  sim::RunReport report = job.report(wanted.record.path);
  report.kv = std::move(what.kv);
  if (what.as_one) job.add_as_one(report);
  if (options.data.how != "proof") progress.stage("moving and comparing bytes");
  report.data = data_of(job, options.data.how, budget);
  progress.clear();
  if (options.output.verbose) report.phases = progress.times();

  OutputFiles written;
  if (!perfetto.empty())
    written.write(perfetto, "--perfetto",
                  [&](std::ostream& out) { sim::write_perfetto(out, job.study()); });
  if (has_page) write_run_page(written, html, "simulation", report, job.study());
  if (perfetto != "-" && html != "-")
    print(options.output.json
              ? sim::simulate_json(report)
              : sim::simulate_table(report, options.output.verbose, screen_width()));
  written.commit();
}

std::vector<std::string> emit_names(std::vector<std::string> first) {
  for (const sim::ExportRow& row : sim::exports()) first.emplace_back(row.name);
  return first;
}

std::string emit_help() {
  std::string out = "print";
  for (const sim::ExportRow& row : sim::exports())
    out += fmt::format(" {}: {};", row.name, row.what);
  return out;
}

void print_export(const sim::Job& job, const std::string& name, const std::string& topology,
                  Progress& progress) {
  for (const sim::ExportRow& row : sim::exports()) {
    if (name != row.name) continue;
    progress.stage("writing");
    sim::Exported exported = row.write({job.plan(), job.stored(), topology});
    progress.clear();
    std::fputs(exported.hint.c_str(), stderr);
    print(exported.text);
  }
}

void write_run_page(OutputFiles& written, const std::string& file, std::string_view kind,
                    const sim::RunReport& report, sim::Study& study) {
  written.write(file, "--html",
                [&](std::ostream& out) { out << sim::run_page(kind, report, study); });
}

}  // namespace reshard::tools
