// SPDX-License-Identifier: BSD-3-Clause
// `reshard simulate`: plan, prove, move every rank's bytes in this process and compare them, time
// it on the topology, set it beside the bound.
#include <CLI/CLI.hpp>
#include <memory>

#include "core/base/errors.h"
#include "core/schedule/workload.h"
#include "sim/report/perfetto.h"
#include "sim/report/writers.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/pipeline.h"

namespace reshard::tools {

namespace {

struct SimulateOptions {
  RequestOptions request;
  MachineOptions machine;
  OutputOptions output;
  std::string data = "full", data_budget;
};

void run_simulate(const SimulateOptions& options) {
  if (!options.output.perfetto.empty()) require_writable(options.output.perfetto, "--perfetto");
  std::int64_t budget = data_budget_of(options.data_budget);
  Subject subject = subject_of(options.request);
  sim::StudyOptions wanted = study_options(options.machine);
  wanted.record_timelines = true;
  sim::Studies studies(topology_for(options.machine.topology, subject.asked()),
                       find_planner(options.machine.planner), wanted);
  Progress progress;
  progress.stage("planning and proving");
  std::shared_ptr<sim::Study> study = subject.studied(studies);

  progress.stage("timing");
  sim::RunReport report = sim::report_on(*study);
  report.planner_asked = subject.planner_asked(studies);
  if (options.data == "full") {
    progress.stage("moving and comparing bytes");
    report.data = moved(*study, studies, budget, subject.plan != nullptr);
  } else {
    report.data = not_moved(study->plan(), "--data proof");
  }
  report.cache = studies.cache_statistics();
  progress.clear();

  if (!options.output.perfetto.empty())
    write_file(options.output.perfetto, "--perfetto", [&](std::ostream& out) {
      sim::write_perfetto(out, workload_of(study->shared_plan()), {}, study->timeline(),
                          study->topology());
    });
  if (options.output.perfetto == "-") return;
  print(options.output.json ? sim::simulate_json(report)
                            : sim::simulate_table(report, options.output.verbose));
}

}  // namespace

void add_simulate_command(CLI::App& app) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand(
      "simulate", "plan, prove, move the bytes, time it, and compare with the physical bound");
  add_request_options(*command, options->request);
  add_machine_options(*command, options->machine);
  command
      ->add_option("--data", options->data,
                   "full: move and compare every byte; proof: index sets only")
      ->type_name("HOW")
      ->check(CLI::IsMember({"full", "proof"}))
      ->group("Data");
  add_data_budget_option(*command, options->data_budget);
  add_json_option(*command, options->output);
  add_perfetto_option(*command, options->output);
  command->footer(
      "Example:\n  reshard simulate --mesh 8x2 --shape 32,8192,4096 --from 'S(0)R' --to 'RS(1)' "
      "--topology dgx-h100:2\n"
      "  reshard simulate --mesh 4 --to-mesh 4 --to-ranks 4-7 --shape 8192,8192 --dtype bf16 "
      "--from 'S(0)' --to 'S(1)' --planner p2p --perfetto move.json");
  command->callback([options] { run_simulate(*options); });
}

}  // namespace reshard::tools
