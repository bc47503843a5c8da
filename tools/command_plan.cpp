// SPDX-License-Identifier: BSD-3-Clause
// `reshard plan`: what must move, and how. Prints the steps, bytes and memory per rank and what
// they cost, or the plan itself as text.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>

#include "core/base/errors.h"
#include "core/schedule/traffic.h"
#include "core/text/plan_text.h"
#include "core/torch/cost_model.h"
#include "sim/report/writers.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/pipeline.h"

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
  Subject subject = subject_of(options.request);
  const Request& request = subject.asked();
  sim::StudyOptions wanted = study_options(options.machine);
  wanted.explain = options.explain || options.output.json;
  wanted.record_timelines = options.emit == "report";
  sim::Studies studies(topology_for(options.machine.topology, request),
                       find_planner(options.machine.planner), wanted);
  std::shared_ptr<sim::Study> study = subject.studied(studies);
  if (options.emit == "plan") {
    print(to_text(study->plan()));
    return;
  }
  if (options.emit == "alltoallv-matrix") {
    AlltoallvMatrix matrix = alltoallv_matrix(study->plan());
    std::int64_t size_bytes = (matrix.size_bytes + 15) / 16 * 16;
    std::fprintf(stderr, "reshard: run alltoallv_perf with -b %lld -e %lld\n",
                 static_cast<long long>(size_bytes), static_cast<long long>(size_bytes));
    print(matrix.text);
    return;
  }

  sim::RunReport report = sim::report_on(*study);
  report.planner_asked = subject.planner_asked(studies);
  double torch_cost_us = torch_redistribute_cost_us(request, study->topology().node().devices);
  if (torch_plans_greedily(request) && std::isfinite(torch_cost_us))
    report.torch_cost_us = torch_cost_us;
  report.cache = studies.cache_statistics();
  print(options.output.json ? sim::plan_json(report)
                            : sim::plan_table(report, options.explain, options.output.verbose));
}

}  // namespace

void add_plan_command(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand(
      "plan", "print the plan of a redistribution: steps, bytes per rank, peak memory, cost");
  add_request_options(*command, options->request);
  add_machine_options(*command, options->machine);
  add_json_option(*command, options->output);
  command->add_flag("--explain", options->explain, "say why each step is there")->group("Output");
  command
      ->add_option("--emit", options->emit,
                   "report; plan: the plan's own text, which --plan reads; or alltoallv-matrix: "
                   "bytes between ranks, which nccl-tests measures")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"report", "plan", "alltoallv-matrix"}))
      ->group("Output");
  command->footer(
      "Example:\n  reshard plan --mesh 4x4 --shape 32,8192,4096 --from 'S(0)S(1)' --to 'S(1)S(0)' "
      "--explain\n"
      "  reshard plan --mesh 8 --shape 4096,4096 --dtype bf16 --from 'S(0)' --to R --emit plan > "
      "gather.plan\n"
      "  reshard plan --mesh 8 --shape 4096,4096 --from 'S(0)' --to 'S(1)' --emit alltoallv-matrix "
      "> traffic.txt\n\n"
      "The last is the file of NCCL_TESTS_ALLTOALLV_MATRIX_FILE: cell [i][j] is what rank i sends "
      "to rank j, for ranks 0 to the greatest. alltoallv_perf cuts "
      "cells to\n"
      "multiples of 16 bytes and must be given -b and -e alike, at least the largest sum of a row "
      "or column; that number is printed on standard error.");
  command->callback([options] { run_plan(*options); });
}

}  // namespace reshard::tools
