// SPDX-License-Identifier: BSD-3-Clause
// `reshard validate`: what validate.h declares, on the backend that the options name.
#include "tools/cli/commands/commands.h"

#include <array>
#include <memory>
#include <optional>
#include <set>

#include <fmt/core.h>
#include <unistd.h>

#include "core/base/digest.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/text/plan_text.h"
#include "sim/page/pages.h"
#include "sim/report/measurements.h"
#include "sim/report/validate_report.h"
#include "sim/report/writers/perfetto.h"
#include "sim/store/data_check.h"
#include "sim/store/machine_memory.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/pipeline.h"
#include "tools/cli/validate/agreement.h"
#include "tools/cli/validate/validate.h"

namespace reshard::tools {

namespace {

// What every process has before anything runs.
struct Setup {
  std::optional<sim::Job> job;
  std::int64_t data_budget_bytes = 0;
  std::unique_ptr<PreparedPlan> prepared;
  std::optional<Progress> progress = {};  // at the root only
  void stage(std::string_view what) {
    if (progress) progress->stage(what);
  }
  const Plan& plan() const { return job->plan(); }
};

void refuse_ignored(const ValidateOptions& options, const backends::BackendFacts& facts) {
  refuse_unprinted(options.output, options.output.perfetto, "--perfetto -");
  refuse_unprinted(options.output, options.output.html, "--html -");
  refuse_unprinted(options.output, options.measurements, "--measurements -");
  const CarrierOptions& carrier = options.carrier;
  std::string backend = "--backend " + carrier.backend;
  refuse_both(carrier.device >= 0 && !facts.uses_gpus, "--device", backend);
  refuse_both(!carrier.rendezvous.empty() && !facts.meets_at_rendezvous, "--rendezvous", backend);
}

// The options that processes must share to run a plan in the same way.
std::string runs_text(const CarrierOptions& carrier) {
  return fmt::format(
      "--iterations {} --warmup {}{}{}", carrier.counts.iterations, carrier.counts.warm_up,
      carrier.declared_order ? " --declared-order" : "",
      carrier.communicators.empty() ? "" : " --communicators " + carrier.communicators);
}

// Returns a short description of the plan, which would differ if one host had a later reshard or
// another topology file.
std::string plan_all(const ValidateOptions& options, Processes& processes, Setup& setup) {
  const bool is_root = processes.is_root();
  for (const std::string& file : options.request.plan_files)
    if (processes.count() > 1 && is_standard_input(file))
      throw InputError(
          "--plan: expected a file that every process can read, found standard input, which only "
          "one process can read");
  if (is_root) {
    require_files({{options.output.perfetto, "--perfetto"},
                   {options.output.html, "--html"},
                   {options.measurements, "--measurements"}},
                  inputs_of(options.request, options.machine));
  }
  setup.data_budget_bytes = data_budget_of({.budget = options.data_budget});
  sim::Subject subject =
      options.subject ? *options.subject : subject_of(options.request, options.machine);
  sim::StudyOptions wanted = study_options(options.machine);
  bool has_page = is_root && !options.output.html.empty(),  // the root reports
      has_timeline = has_page || (is_root && !options.output.perfetto.empty());
  wanted.record = {.spans = is_root, .path = has_page, .flows = has_timeline, .work = has_timeline};
  wanted.explain = is_root && !options.output.html.empty();
  wanted.on_stage = [&](std::string_view what) { setup.stage(what); };
  if (is_root) setup.progress.emplace();
  setup.job.emplace(subject, topology_of(subject, options.machine), planner_of(options.machine),
                    wanted);
  const Plan& plan = setup.plan();
  return fmt::format("{} by {} ({})",
                     plan.tensors.size() == 1 ? plan.request().text()
                                              : fmt::format("{} tensors", plan.tensors.size()),
                     plan.planner, digest_of(to_text(plan)).hex());
}

// A refusal is reported together; but if a call fails, the others may be waiting inside theirs.
void prepare_all(Executor& executor, Setup& setup) {
  std::optional<InputError> refusal;
  waiting_for_others(executor.processes(), [&] {
    try {
      setup.prepared = executor.prepare(setup.plan());
    } catch (const InputError& error) {
      refusal = error;
    }
  });
  together(executor.processes(), "preparation", [&] {
    if (refusal) throw *refusal;
    return std::string();
  });
}

std::int32_t count_hosts(Processes& processes) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::string_view mine(name.data());
  std::set<std::string> hosts;
  for (const std::vector<std::byte>& host :
       processes.gather(std::as_bytes(std::span(mine.data(), mine.size()))))
    hosts.emplace(reinterpret_cast<const char*>(host.data()), host.size());
  return static_cast<std::int32_t>(hosts.size());
}

// What the runs showed, at the root.
struct Findings {
  std::vector<Timeline> runs;
  sim::ValueFacts values;
  std::int32_t hosts = 1;
};

Findings run_all(const ValidateOptions& options, Processes& processes, Setup& setup) {
  const Plan& plan = setup.plan();
  sim::PlanPatterns patterns(plan, setup.job->stored());
  setup.stage("filling");
  patterns.fill(*setup.prepared);
  const RunCounts& counts = options.carrier.counts;
  OnRun on_run = [&](std::int64_t done) {
    if (setup.progress) setup.progress->show("running", done, counts.warm_up + counts.iterations);
  };
  Findings out;
  out.runs = gathered_runs(processes, plan, timed_runs(*setup.prepared, counts, on_run));
  setup.stage("comparing");
  CheckedShards checked = checked_shards(*setup.prepared, plan, patterns);
  setup.prepared.reset();  // frees its memory before the root runs the store
  out.values.shards = gathered_shards(processes, plan, checked.shards);
  if (processes.count() == 1 && out.values.hold()) out.values.digest = checked.digest;
  out.hosts = count_hosts(processes);
  return out;
}

sim::ValidateReport report_of(const ValidateOptions& options, const BackendInfo& backend,
                              Executor& executor, const Setup& setup, const Findings& found) {
  sim::ValidateReport report(setup.job->report(!options.output.html.empty()));
  report.backend = backend.name();
  report.library = backend.status.what;
  report.processes = executor.processes().count();
  report.hosts = found.hosts;
  // Ranks in one process or on one host's memory do not use the links that a topology describes;
  // GPUs under NCCL, or hosts, may.
  report.models_this_machine = backend.row.facts.crosses_links || found.hosts > 1;
  report.sums_in_own_order = executor.folds_in_own_order(setup.plan());
  report.iterations = options.carrier.counts.iterations;
  report.warm_up = options.carrier.counts.warm_up;
  report.measured = sim::times_of(found.runs, setup.plan().steps.size());
  report.values = found.values;
  return report;
}

void write_outputs(const ValidateOptions& options, const Setup& setup,
                   const sim::ValidateReport& report, std::vector<Timeline>&& runs,
                   OutputFiles& written) {
  if (!options.output.perfetto.empty()) {
    sim::MeasuredRun measured{report.backend, runs[report.measured.median_run]};
    written.write(options.output.perfetto, "--perfetto", [&](std::ostream& out) {
      sim::write_perfetto(out, setup.job->study(), &measured);
    });
  }
  if (!options.output.html.empty())
    written.write(options.output.html, "--html", [&](std::ostream& out) {
      out << sim::validate_page(report, setup.job->study(), runs[report.measured.median_run]);
    });
  if (options.measurements.empty()) return;
  const Plan& plan = setup.plan();
  sim::Measurements measurements{kVersion,
                                 report.backend,
                                 report.library,
                                 requests_text(plan),
                                 plan.planner,
                                 setup.job->study().topology().name(),
                                 plan.ranks,
                                 report.warm_up,
                                 sim::parts_of(plan),
                                 std::move(runs)};
  written.write(options.measurements, "--measurements",
                [&](std::ostream& out) { sim::write_measurements(out, measurements); });
}

// The root's work after all have run. If values are wrong, throws CheckNotHeld after the report.
void conclude(const ValidateOptions& options, const BackendInfo& backend, Executor& executor,
              Setup& setup, Findings&& found) {
  Progress& progress = *setup.progress;
  progress.stage("comparing with the store");
  compare_with_store(setup.plan(), setup.job->stored(), setup.data_budget_bytes,
                     sim::memory_of_machine_bytes(), found.values);
  progress.stage("timing");
  sim::ValidateReport report = report_of(options, backend, executor, setup, found);
  progress.clear();
  if (options.output.verbose) report.predicted.phases = progress.times();
  OutputFiles written;
  write_outputs(options, setup, report, std::move(found.runs), written);
  if (options.output.perfetto != "-" && options.output.html != "-" && options.measurements != "-")
    print(options.output.json
              ? sim::validate_json(report)
              : sim::validate_table(report, options.output.verbose, screen_width()));
  written.commit();
  std::vector<std::string> faults = faults_of(report);
  if (!faults.empty()) throw CheckNotHeld{faults};
}

void run_validate(ValidateOptions options) {
  BackendInfo backend = backend_info(options.carrier.backend);
  try {
    refuse_ignored(options, backend.row.facts);
    if (!backend.status.usable) throw InputError("--backend " + text(backend));
  } catch (const InputError&) {
    fail_together(&backend.row, std::current_exception());
  }
  backends::BackendOptions carrier = backend_options(options.carrier);
  // One process without a launcher drives all ranks that the request names, also where they share a
  // GPU.
  if (backend.row.facts.may_drive_all_ranks && launch_of(&backend.row).launcher.empty()) {
    options.subject = subject_of(options.request, options.machine);
    carrier.world_size = to_int(options.subject->highest_rank()) + 1;
  }
  std::unique_ptr<Executor> executor = make_executor(backend, carrier);
  validate_on(*executor, backend, options);
}

std::string validate_footer() {
  std::string out =
      "Example:\n  reshard validate --mesh 4 --shape 4096,4096 --from 'S(0)' --to 'S(1)'\n"
      "  mpirun -np 4 reshard validate --mesh 4 --shape 4096,4096 --from 'S(0)' --to 'S(1)' "
      "--backend mpi --perfetto both.json\n"
      "  torchrun --no-python --nproc-per-node 4 reshard validate --mesh 4 --shape 4096,4096 "
      "--from 'S(0)' --to 'S(1)' --backend nccl\n\nBackends here:";
  for (const BackendInfo& backend : backend_infos()) out += "\n- " + text(backend);
  return out;
}

}  // namespace

void validate_on(Executor& executor, const BackendInfo& backend, const ValidateOptions& options) {
  Processes& processes = executor.processes();
  Setup setup;
  together(processes, "the runs", [&] { return runs_text(options.carrier); });
  together(processes, "the plan", [&] { return plan_all(options, processes, setup); });
  setup.stage("preparing");
  prepare_all(executor, setup);
  Findings found;
  waiting_for_others(processes, [&] { found = run_all(options, processes, setup); });
  together(processes, "the report", [&] {
    if (processes.is_root()) conclude(options, backend, executor, setup, std::move(found));
    return std::string();
  });
}

void add_validate_command(CLI::App& app) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App& command = add_command(
      app, "validate",
      "run the plan on real ranks, and compare bytes with the store and time with the prediction",
      validate_footer, [options] { run_validate(*options); });
  add_request_options(command, options->request);
  add_machine_options(command, options->machine);
  add_carrier_options(command, options->carrier);
  OptionGroup(command, "Data")
      .add("--data-budget", "BYTES", options->data_budget,
           "the most bytes that the store may use to run the plan for comparison (default 2GiB)");
  add_report_options(command, options->output);
  add_perfetto_option(command, options->output);
  add_html_option(command, options->output);
  OptionGroup(command, "Output")
      .add_file("--measurements", options->measurements,
                "write the measurements (traces/measurements-format.md; '-': to standard output)");
}

}  // namespace reshard::tools
