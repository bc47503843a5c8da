// SPDX-License-Identifier: BSD-3-Clause
// The two commands for a single request. `reshard plan`: what must move, and how; prints the steps,
// the bytes and memory per rank and the costs, or the plan itself as text. `reshard simulate`:
// plans, proves, moves every rank's bytes in this process and compares them, times the plan on the
// topology, and compares the time with the bound.
#include <memory>

#include "sim/report/run_report.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/pipeline.h"
#include "tools/cli/simulation.h"

namespace reshard::tools {

namespace {

struct PlanOptions {
  RequestOptions request;
  MachineOptions machine;
  OutputOptions output;
  bool explain = false;
  std::string emit = "report";
};

void run_plan(const PlanOptions& options) {
  if (options.emit != "report") {
    std::string emit = "--emit " + options.emit;
    refuse_both(options.output.json, "--json", emit);
    refuse_both(options.explain, "--explain", emit);
    refuse_both(options.output.verbose, "--verbose", emit);
    refuse_both(!options.output.html.empty(), "--html", emit);
  }
  require_files({{options.output.html, "--html"}}, inputs_of(options.request, options.machine));
  refuse_unprinted(options.output, options.output.html, "--html -");
  bool has_page = !options.output.html.empty();
  sim::Subject subject = subject_of(options.request, options.machine);
  sim::StudyOptions wanted = study_options(options.machine);
  wanted.explain = options.explain || options.output.json || has_page;
  if (options.emit == "report")
    wanted.record = {
        .spans = true,
        .path = options.output.json || options.output.verbose || options.explain || has_page,
        .flows = has_page,
        .work = has_page};
  Progress progress;
  wanted.on_stage = [&](std::string_view what) { progress.stage(what); };
  sim::Job job = job_of(subject, options.machine, wanted);
  if (options.emit != "report")
    return print_export(job, options.emit, options.machine.topology, progress);

  progress.stage("timing");
  sim::RunReport report = job.report_with_torch(wanted.record.path);
  if (options.request.plan_files.size() > 1) job.add_as_one(report);
  progress.clear();
  if (options.output.verbose) report.phases = progress.times();
  OutputFiles written;
  if (has_page) write_run_page(written, options.output.html, "plan", report, job.study());
  if (options.output.html != "-")
    print(options.output.json
              ? sim::plan_json(report)
              : sim::plan_table(report, options.explain, options.output.verbose, screen_width()));
  written.commit();
}

struct SimulateOptions : SimulationOptions {
  RequestOptions request;
};

void run_simulate(const SimulateOptions& options) {
  simulate(options, inputs_of(options.request, options.machine), [&] {
    return Simulated{subject_of(options.request, options.machine),
                     options.request.plan_files.size() > 1};
  });
}

}  // namespace

void add_plan_command(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App& command = add_command(
      app, "plan", "print the plan of a redistribution: steps, bytes per rank, peak memory, cost",
      "Example:\n  reshard plan --mesh 4x4 --shape 32,8192,4096 --from 'S(0)S(1)' --to 'S(1)S(0)' "
      "--explain\n"
      "  reshard plan --mesh 8 --shape 4096,4096 --dtype bf16 --from 'S(0)' --to R --emit plan > "
      "gather.plan\n"
      "  reshard plan --mesh 8 --shape 4096,4096 --from 'S(0)' --to 'S(1)' --emit alltoallv-matrix "
      "> traffic.txt\n\n"
      "The last one prints a file for NCCL_TESTS_ALLTOALLV_MATRIX_FILE: cell [i][j] is the number "
      "of bytes that rank i sends to rank j, for all ranks from 0. alltoallv_perf rounds cells "
      "down to multiples of 16 bytes and needs equal -b and -e of at least the largest sum of a "
      "row or column; that number is printed on standard error.",
      [options] { run_plan(*options); });
  add_request_options(command, options->request);
  add_machine_options(command, options->machine);
  add_cold_option({command, kMachineHeading}, options->machine);
  add_report_options(command, options->output);
  add_html_option(command, options->output);
  OptionGroup output(command, "Output");
  output.add_flag("--explain", options->explain,
                  "explain each step, and list the known PyTorch defects that affect the request");
  output.add_choice("--emit", "WHAT", options->emit, emit_names({"report"}),
                    emit_help() + " report: the report (default)");
}

void add_simulate_command(CLI::App& app) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App& command = add_command(
      app, "simulate", "plan, prove, move the bytes, time it, and compare with the physical bound",
      "Example:\n  reshard simulate --mesh 8x2 --shape 32,8192,4096 --from 'S(0)R' --to 'RS(1)' "
      "--topology dgx-h100:2\n"
      "  reshard simulate --mesh 4 --to-mesh 4 --to-ranks 4-7 --shape 8192,8192 --dtype bf16 "
      "--from 'S(0)' --to 'S(1)' --planner p2p --perfetto move.json",
      [options] { run_simulate(*options); });
  add_request_options(command, options->request);
  add_machine_options(command, options->machine);
  add_cold_option({command, kMachineHeading}, options->machine);
  add_data_options(command, options->data,
                   "full: move and compare every byte; proof: index sets only");
  add_report_options(command, options->output);
  add_perfetto_option(command, options->output);
  add_html_option(command, options->output);
}

}  // namespace reshard::tools
