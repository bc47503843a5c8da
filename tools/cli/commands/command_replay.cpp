// SPDX-License-Identifier: BSD-3-Clause
// `reshard replay`: plans, proves, moves and times a whole trace of redistributions, compute,
// messages and collectives.
#include <memory>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/job/trace_job.h"
#include "sim/machines/presets.h"
#include "sim/page/pages.h"
#include "sim/report/writers/perfetto.h"
#include "sim/report/writers/replay_writer.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/pipeline.h"

namespace reshard::tools {

namespace {

struct ReplayOptions {
  std::string trace, format;
  bool implicit_launch_order = false, cold = false, reorder = false, joined = false;
  std::string communicators, dispatch = "torch";
  std::int64_t cache_size = DecisionCache::kDefaultCapacity;
  bool explicit_only = false;
  std::int64_t prefetch = 0;
  MachineOptions machine;
  DataOptions data;
  OutputOptions output;
};

// The option's topology, else the trace header's, else a default with all ranks.
Topology topology_of(const ReplayOptions& options, const sim::Trace& trace) {
  const std::string& spec =
      options.machine.topology.empty() ? trace.topology : options.machine.topology;
  std::int64_t highest = sim::highest_rank(trace);
  if (spec.empty()) return sim::default_topology(std::max<std::int64_t>(highest + 1, 1));
  try {
    Topology topology = sim::find_topology(spec);
    sim::require_devices(topology, highest);
    return topology;
  } catch (const InputError& error) {
    // An error in the header's topology is reported at the header's line, an error in the option at
    // the option.
    throw error.in(options.machine.topology.empty() ? trace.file + ":1" : "--topology");
  }
}

constexpr std::size_t kMaxPrinted = 100;  // findings; a reader reads no more

void refuse(const std::vector<sim::TraceFinding>& findings) {
  if (findings.empty()) return;
  CheckNotHeld check;
  for (const sim::TraceFinding& finding : findings) {
    if (check.findings.size() == kMaxPrinted) {
      check.findings.push_back(fmt::format("and {} more findings", findings.size() - kMaxPrinted));
      break;
    }
    std::string cycle = sim::cycle_table(finding, screen_width());
    if (!cycle.empty()) cycle.pop_back();  // the last line's end
    check.findings.push_back(finding.what + (cycle.empty() ? "" : "\n" + cycle));
  }
  throw check;
}

sim::TraceJobOptions job_options(const ReplayOptions& options) {
  bool has_page = !options.output.html.empty(),
       has_detail = options.output.json || options.output.verbose || has_page;
  sim::TraceJobOptions out;
  out.studies = study_options(options.machine);
  out.dispatch.mode =
      options.dispatch == "best" ? sim::DispatchMode::Best : sim::DispatchMode::Torch;
  out.dispatch.cache_size = options.cache_size;
  out.dispatch.explicit_only = options.explicit_only;
  out.dispatch.prefetch = options.prefetch;
  out.replay.move_bytes = options.data.how == "full";
  out.replay.data_budget_bytes = data_budget_of(options.data);
  out.replay.critical_path = has_detail;
  out.replay.work = has_page || !options.output.perfetto.empty();
  out.replay.details = has_detail || out.replay.work;
  out.replay.implicit_launch_order = options.implicit_launch_order;
  if (!options.communicators.empty())
    out.replay.communicators = parse_communicators(options.communicators, "--communicators");
  out.replay.cold = options.cold;
  out.replay.reorder = options.reorder;
  out.joined = options.joined;
  return out;
}

void run_replay(const ReplayOptions& options) {
  const std::string &perfetto = options.output.perfetto, &html = options.output.html;
  const std::vector<NamedFile> outputs = {{perfetto, "--perfetto"}, {html, "--html"}};
  std::vector<NamedFile> inputs = inputs_of({}, options.machine);
  inputs.push_back({options.trace, "TRACE"});
  require_files(outputs, inputs);
  refuse_unprinted(options.output, perfetto, "--perfetto -");
  refuse_unprinted(options.output, html, "--html -");
  sim::TraceJobOptions job = job_options(options);
  if (options.trace == "-") require_standard_input();
  sim::Trace trace = sim::read_trace(options.trace, options.format);
  require_files(outputs, {{sim::file_of(trace.topology), "TRACE"}});
  auto topology = std::make_shared<const Topology>(topology_of(options, trace));
  Progress progress;
  job.replay.progress = [&](std::string_view stage, std::int64_t done, std::int64_t total) {
    progress.show(stage, done, total);
  };
  sim::ReplayReport report = sim::run_trace(trace, topology, planner_of(options.machine), job);
  progress.clear();
  refuse(report.findings);
  if (options.output.verbose) report.phases = progress.times();
  OutputFiles written;
  if (!perfetto.empty())
    written.write(perfetto, "--perfetto", [&](std::ostream& out) {
      sim::write_perfetto(out, report.workload, report.labels, report.timeline, *topology);
    });
  if (!html.empty())
    written.write(html, "--html",
                  [&](std::ostream& out) { out << sim::replay_page(report, *topology); });
  if (perfetto != "-" && html != "-")
    print(options.output.json ? sim::replay_json(report)
                              : sim::replay_table(report, options.output.verbose, screen_width()));
  written.commit();
}

std::string format_names() {
  std::string out;
  for (const sim::TraceFormat& row : sim::trace_formats())
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", row.name, row.what);
  return out;
}

}  // namespace

void add_replay_command(CLI::App& app) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App& command = add_command(
      app, "replay",
      "run a whole trace: redistributions, compute, messages; timeline, totals, hot links",
      "Example:\n  reshard replay traces/llama3-70b-fsdp-to-tp.jsonl\n  reshard replay "
      "traces/mlp-tp.jsonl --planner rule --perfetto mlp.json",
      [options] { run_replay(*options); });
  add_argument(command, "TRACE", options->trace,
               "a trace in one of the formats (traces/README.md); '-': standard input");
  OptionGroup trace(command, "Trace"), calls(command, "Calls of operators");
  trace.add("--format", "NAME", options->format,
            format_names() + " (default: detected from the content)");
  trace.add_flag("--launch-order-implicit", options->implicit_launch_order,
                 "start operations of several communicators in the order in which each rank "
                 "launches them (NCCL_LAUNCH_ORDER_IMPLICIT=1)");
  trace.add_flag("--reorder", options->reorder,
                 "swap neighbouring launches that wait for each other while the trace gets "
                 "shorter, and print the order");
  trace.add_flag("--joined", options->joined,
                 "plan every set of redistributions that wait for the same operations, and that "
                 "the same ones wait for, as one job");
  trace.add("--communicators", "POLICY", options->communicators,
            "communicators of messages that name none: eager, cached, pairwise, stream-per-pair "
            "or split (docs/communicators.md); the report also shows the results of the others");
  trace.add_flag("--cold", options->cold,
                 "include the creation of communicators and the first use of peers");
  require_with(command, "--cold", "--communicators");
  calls.add_choice("--dispatch", "HOW", options->dispatch, {"torch", "best"},
                   "how the placements of a call's inputs are chosen: torch (the default, as "
                   "PyTorch " +
                       std::string(kTorchVersion) +
                       " does, by its own costs) or best (by the time of reshard's plans)");
  calls.add_count("--cache-size", "COUNT", options->cache_size, std::int64_t{0},
                  std::int64_t{1} << 32,
                  fmt::format("decisions on calls that are kept; the least recently used are "
                              "dropped (default {})",
                              options->cache_size));
  calls.add_flag("--explicit", options->explicit_only,
                 "treat a redistribution that a call needs but no line requests as an error");
  calls.add_count("--prefetch", "COUNT", options->prefetch, std::int64_t{0}, std::int64_t{1} << 20,
                  "start redistributions of tensors that no call has produced this many calls "
                  "early, on their own stream, as FSDP gathers parameters (default 0)");
  add_machine_options(command, options->machine);
  add_data_options(
      command, options->data,
      "full: move and compare the bytes of every distinct request; proof: index sets only");
  add_report_options(command, options->output);
  add_perfetto_option(command, options->output);
  add_html_option(command, options->output);
}

}  // namespace reshard::tools
