// SPDX-License-Identifier: BSD-3-Clause
// `reshard check`: judges copies by any planner.
#include <memory>
#include <utility>

#include "core/base/errors.h"
#include "sim/check/copies_plan.h"
#include "sim/job/job.h"
#include "sim/machines/presets.h"
#include "sim/page/junit.h"
#include "sim/trace/line_reader.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/printed_layouts.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_files.h"
#include "tools/cli/pipeline.h"

namespace reshard::tools {
namespace {

struct CheckOptions {
  std::string copies, without, junit;
  MachineOptions machine;
  OutputOptions output;
};

sim::CheckedCopies checked(const std::string& path) {
  Progress progress;
  auto show = [&](std::int64_t line) { progress.show("line", line, 0); };
  sim::CheckedCopies out;
  sim::with_file(path, "a file of copies", [&](std::istream& in, const std::string& name) {
    out = sim::check_copies(in, name, show);
  });
  return out;
}

sim::CopiesCost cost_of(const sim::CheckedCopies& copies, const MachineOptions& machine) {
  Progress progress;
  progress.stage("timing the copies");
  sim::StudyOptions options = study_options(machine);
  auto plan = std::make_shared<const Plan>(sim::plan_of(copies));
  sim::RunReport given = job_of({{}, plan}, machine, options).report(false);
  options.on_stage = [&](std::string_view what) { progress.stage(what); };
  sim::Job ours = job_of({{plan->tensors.begin(), plan->tensors.end()}}, machine, options);
  return {std::move(given), ours.study().plan_in_series().planner, ours.study().time_ps()};
}

void run_check(const CheckOptions& options) {
  const std::string& topology = options.machine.topology;
  require_files({{options.junit, "--junit"}},
                {{options.copies, "FILE"}, {sim::file_of(topology), "--topology"}});
  refuse_unprinted(options.output, options.junit, "--junit -");
  sim::CheckReport report = sim::report_of(checked(options.copies));
  if (!topology.empty() && report.findings.empty()) {
    if (report.copies.judge->relays().empty())
      report.cost = cost_of(report.copies, options.machine);
    else
      report.no_cost = "not known of copies over relays";
  }
  if (!options.without.empty() && report.findings.empty())
    report.without = sim::lost_without_each(
        StoredRequests(*report.copies.source, *report.copies.destination).requests());
  OutputFiles written;
  if (!options.junit.empty())
    written.write(options.junit, "--junit", [&](std::ostream& out) {
      out << sim::junit_xml("reshard check", sim::junit_cases(report));
    });
  if (options.junit != "-") print_check(report, options.output);
  written.commit();
  fail_on_findings(report);
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App& command = add_command(
      app, "check", "judge copies made by any planner",
      "The file has JSON lines: a header, the tensors of the model, the buffers of both sides, "
      "then a line per copy (docs/check.md). The exit code is 1 if something is wrong.\n"
      "Example:\n  reshard check my.copies --topology dgx-h100:2",
      [options] { run_check(*options); });
  add_argument(command, "FILE", options->copies, "layouts and copies; '-': standard input");
  OptionGroup(command, "Loss")
      .add_choice(
          "--without", "RANKS", options->without, {"each"},
          "also print what could not be restored if a single rank of the source were lost: each");
  OptionGroup group(command, kMachineHeading);
  group.add("--topology", "TOPOLOGY", options->machine.topology,
            "also print what the copies cost there, next to a plan of ours: preset, preset:count "
            "or file");
  group.add("--planner", "NAME", options->machine.planner,
            planner_names() + " for our plan (default auto)");
  add_transport_options(group, options->machine);
  add_report_options(command, options->output);
  add_junit_option(command, options->junit);
}

}  // namespace reshard::tools
