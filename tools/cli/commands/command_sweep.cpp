// SPDX-License-Identifier: BSD-3-Clause
// `reshard sweep`: takes all pairs of placements on one or more meshes through every planner and
// compares each time with the bound, to show where a strategy is weak.
#include <algorithm>
#include <memory>

#include "core/base/errors.h"
#include "sim/page/pages.h"
#include "sim/report/ratios.h"
#include "sim/report/sweep_report.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/pipeline.h"

namespace reshard::tools {

namespace {

struct SweepOptions {
  std::vector<std::string> meshes, planners;
  std::string shape, dtype = "f32", placements, csv;
  MachineOptions machine;
  OutputOptions output;
};

// The placements that an axis may have: "R,S(0),S(1)" from the option, or R and every dim.
std::vector<Placement> choices_of(const std::string& text, const Shape& shape) {
  std::vector<Placement> out{Placement::replicate()};
  if (text.empty()) {
    for (int dim = 0; dim < shape.size(); ++dim) out.push_back(Placement::shard(dim));
    return out;
  }
  // The list is parsed as the placements of a mesh with as many axes as it has entries. Their
  // number is not known in advance, so all are tried.
  for (int count = 1; count <= 64; ++count) {
    try {
      return parse_placements(text, count, shape.size(), "--placements").placements;
    } catch (const InputError& error) {
      if (count == 64) throw;
    }
  }
  return out;
}

// Every way to give each axis one of the choices; the last axis varies fastest.
std::vector<std::vector<Placement>> combinations(const std::vector<Placement>& choices, int axes) {
  std::vector<std::vector<Placement>> out;
  DimVector chosen(axes);
  do {
    out.emplace_back();
    for (std::int64_t choice : chosen) out.back().push_back(choices[to_index(choice)]);
  } while (next_index(chosen, [&](int) { return choices.size(); }));
  return out;
}

std::int64_t pairs_of(std::size_t choices, int axes) {
  std::int64_t pairs = 1;
  for (int i = 0; i < 2 * axes; ++i) {
    pairs *= static_cast<std::int64_t>(choices);
    if (pairs > kMaxSweepPairs)
      throw InputError("--placements: expected at most " + std::to_string(kMaxSweepPairs) +
                       " pairs per mesh, found more");
  }
  return pairs;
}

sim::SweepRow row_of(const Request& request, const std::string& mesh, const Bound& bound,
                     sim::Studies& studies, bool cold, Progress& progress) {
  sim::SweepRow row;
  row.mesh = mesh;
  row.from = request.source().placements_text();
  row.to = request.destination().placements_text();
  row.planner = studies.planner().name;
  row.bound_ps = bound.time_ps();
  try {
    std::shared_ptr<sim::Study> study = studies.of(request);
    study->set_bound(bound);
    progress.phase("timing");
    row.time_ps = study->time_ps();
    row.bytes_received_max = study->bytes().received_max;
    row.rates = sim::bandwidths_of(std::span(&request, 1), *row.bytes_received_max, *row.time_ps);
    if (cold) row.first_use_ps = study->first_use().first_use_ps();
  } catch (const InputError& refusal) {
    row.refusal = refusal.what();
  }
  return row;
}

// Where the time of a planner's worst pair goes. The pair is planned again, as only the worst pairs
// need this.
sim::LostTime lost_time(const SweepOptions& options,
                        const std::shared_ptr<const Topology>& topology, const Request& request,
                        const CutSets& sets, const std::string& planner) {
  sim::StudyOptions wanted = study_options(options.machine);
  wanted.record.spans = true;
  sim::Studies studies(topology, find_planner(planner), wanted);
  std::shared_ptr<sim::Study> study = studies.of(request);
  return sim::lost_time(study->timeline(), sets, demand_of(request, sets),
                        study->bytes().received_total);
}

// Sweeps one mesh, on its own topology unless one is named, with one set of studies per planner.
void sweep_mesh(const SweepOptions& options, const std::string& mesh_text, const Shape& shape,
                const std::vector<Placement>& choices, sim::SweepReport& report,
                Progress& progress) {
  auto mesh = std::make_shared<const Mesh>(parse_mesh(mesh_text, {}, "--mesh"));
  DType dtype = parse_dtype(options.dtype);
  std::int64_t total = pairs_of(choices.size(), mesh->axes());
  std::vector<std::vector<Placement>> sides = combinations(choices, mesh->axes());
  std::shared_ptr<const Topology> topology = sim::topology_for(
      options.machine.topology, *std::max_element(mesh->ranks().begin(), mesh->ranks().end()));
  report.topology = topology->name();

  std::vector<std::unique_ptr<sim::Studies>> by_planner;
  sim::StudyOptions wanted = study_options(options.machine);
  wanted.on_stage = [&](std::string_view what) { progress.phase(what); };
  for (const std::string& name : report.planners)
    by_planner.push_back(std::make_unique<sim::Studies>(topology, find_planner(name), wanted));
  // All pairs have the same ranks, and so the same cut sets.
  std::vector<Rank> ranks = mesh->ranks();
  std::sort(ranks.begin(), ranks.end());
  CutSets sets(*topology, ranks, sim::switches_of(by_planner.front()->transport()->kind()));

  std::int64_t done = 0;
  for (const std::vector<Placement>& from : sides)
    for (const std::vector<Placement>& to : sides) {
      progress.show("sweep " + mesh_text, done++, total, "requests");
      std::optional<Request> request;
      try {
        request.emplace(Layout(shape, dtype, mesh, from), Layout(shape, dtype, mesh, to));
      } catch (const InputError&) {
        ++report.forbidden;
        continue;
      }
      ++report.pairs;
      progress.phase("bound");
      Bound bound = bound_of(demand_of(*request, sets), sets);
      bool planned = false;
      for (const auto& studies : by_planner) {
        report.rows.push_back(
            row_of(*request, mesh_text, bound, *studies, options.machine.cold, progress));
        planned = planned || report.rows.back().time_ps.has_value();
      }
      report.planned += planned;
      if (report.cold) sim::win_back(std::span(report.rows).last(by_planner.size()));
    }
  for (const sim::SweepSummary& summary : sim::summarize(report)) {
    if (summary.mesh != mesh_text || summary.worst == nullptr) continue;
    sim::SweepRow& worst = report.rows[to_index(summary.worst - report.rows.data())];
    auto layout = [&](const std::string& text) {
      return parse_layout(options.shape, options.dtype, mesh, text);
    };
    worst.lost = lost_time(options, topology, Request(layout(worst.from), layout(worst.to)), sets,
                           worst.planner);
  }
}

// A duplicate would count twice in every mean.
template <class Value>
void require_different(const std::vector<Value>& values, std::string_view option) {
  for (auto value = values.begin(); value != values.end(); ++value)
    if (std::find(values.begin(), value, *value) != value)
      throw InputError(std::string(option) + ": expected each value once, found one twice");
}

void run_sweep(const SweepOptions& options) {
  const std::string& html = options.output.html;
  require_files({{options.csv, "--csv"}, {html, "--html"}}, inputs_of({}, options.machine));
  refuse_unprinted(options.output, options.csv, "--csv -");
  refuse_unprinted(options.output, html, "--html -");
  Shape shape = parse_shape(options.shape, "--shape");
  sim::SweepReport report;
  report.shape = shape;
  report.dtype = parse_dtype(options.dtype);
  report.meshes = options.meshes;
  report.cold = options.machine.cold;
  for (const std::string& name : options.planners)
    report.planners.emplace_back(find_planner(name, "--planner").name);
  if (report.planners.empty())
    for (const PlannerRow& row : planners()) report.planners.emplace_back(row.name);
  std::vector<Placement> choices = choices_of(options.placements, shape);
  require_different(options.meshes, "--mesh");
  require_different(report.planners, "--planner");
  require_different(choices, "--placements");
  Progress progress;
  for (const std::string& mesh : options.meshes)
    sweep_mesh(options, mesh, shape, choices, report, progress);
  progress.clear();
  if (options.output.verbose) report.phases = progress.times();

  OutputFiles written;
  if (!options.csv.empty())
    written.write(options.csv, "--csv", [&](std::ostream& out) { out << sim::sweep_csv(report); });
  if (!html.empty())
    written.write(html, "--html", [&](std::ostream& out) { out << sim::sweep_page(report); });
  if (options.csv != "-" && html != "-")
    print(options.output.json ? sim::sweep_json(report)
                              : sim::sweep_table(report, options.output.verbose, screen_width()));
  written.commit();
}

}  // namespace

void add_sweep_command(CLI::App& app) {
  auto options = std::make_shared<SweepOptions>();
  options->machine.cache_size = 0;  // no pair occurs twice, so a cache would only take memory
  CLI::App& command = add_command(
      app, "sweep",
      "all placement pairs over one or more meshes, all planners side by side, with the bound",
      "Example:\n  reshard sweep --mesh 2x2 --mesh 4x2 --shape 32,8192,4096 --csv sweep.csv",
      [options] { run_sweep(*options); });
  OptionGroup request(command, "Request"), machine(command, kMachineHeading),
      output(command, "Output");
  request.add_required("--mesh", "MESH", options->meshes, "a mesh; may be repeated");
  request.add_required("--shape", "SHAPE", options->shape, "global shape: 32,8192,4096");
  request.add("--dtype", "DTYPE", options->dtype, "element type (default f32)");
  request.add("--placements", "PLACEMENTS", options->placements,
              "placements of an axis: 'R,S(0),P(sum)' (default R and every dim)");
  machine.add("--planner", "NAME", options->planners,
              "a planner; may be repeated (default all: " + planner_names() + ")");
  add_topology_option(machine, options->machine);
  add_transport_options(machine, options->machine);
  add_memory_options(machine, options->machine);
  add_cold_option(machine, options->machine);
  add_report_options(command, options->output);
  add_html_option(command, options->output);
  output.add_file("--csv", options->csv,
                  "write one row per pair and planner ('-': to standard output)");
}

}  // namespace reshard::tools
