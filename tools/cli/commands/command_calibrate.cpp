// SPDX-License-Identifier: BSD-3-Clause
// `reshard calibrate`: fits a machine's figures to measured collectives, and its links to measured
// copies. Reports the nccl transport's times next to the measured ones, before and after the fit,
// also for rows that were held out.
#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/base/units.h"
#include "sim/calibrate/disturbance.h"
#include "sim/calibrate/fit.h"
#include "sim/calibrate/links.h"
#include "sim/machines/presets.h"
#include "sim/report/writers/calibration_writer.h"
#include "sim/transport/nccl/nccl_constants.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_files.h"

namespace reshard::tools {
namespace {

// For all files together.
constexpr std::size_t kMaxCalibrationRows = 100'000;

struct CalibrateOptions {
  std::string topology, output_file, nccl_version;
  std::vector<std::string> files, holdouts;
  bool compare = false;
  OutputOptions output;
};

// "n=8", "op=all_gather", "size=1MiB".
struct Holdout {
  std::optional<std::int32_t> ranks;
  std::optional<CollectiveKind> kind;
  std::optional<std::int64_t> bytes;
  bool holds(const sim::MeasuredCollective& row) const {
    return row.ranks == ranks || row.kind == kind || row.bytes == bytes;
  }
};

Holdout parse_holdout(const std::string& text) {
  Holdout out;
  std::size_t equals = text.find('=');
  std::string key = text.substr(0, equals),
              value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (key == "n") {
    Cursor cursor(value, "--holdout n");
    out.ranks = static_cast<std::int32_t>(cursor.integer("ranks", 2, kMaxRanks));
    cursor.expect_end();
  } else if (key == "op") {
    out.kind = sim::collective_named(value);
  } else if (key == "size") {
    out.bytes = parse_bytes(value, "--holdout size");
  }
  if (!out.ranks && !out.kind && !out.bytes)
    throw InputError("--holdout: expected n=RANKS, op=COLLECTIVE or size=BYTES, found " +
                     reshard::quoted(text));
  return out;
}

// The contents of the files: rows of collectives; matrices of copies, and pairs of runs with
// compute, each with the name of its file.
struct MeasuredFiles {
  sim::MeasuredTable collectives;
  std::vector<std::pair<std::string, sim::P2pMatrices>> copies;
  std::vector<std::pair<std::string, sim::MeasuredOverlap>> overlaps;
};

MeasuredFiles read_files(const std::vector<std::string>& files) {
  MeasuredFiles out;
  sim::MeasuredTable& all = out.collectives;
  for (const std::string& file : files) {
    std::string text = read_input(file, kMaxLineBytes), name = input_name(file);
    if (sim::is_p2p_matrices(text)) {
      out.copies.emplace_back(name, sim::parse_p2p_matrices(text, name));
      continue;
    }
    if (sim::is_overlap(text)) {
      out.overlaps.emplace_back(name, sim::parse_overlap(text, name));
      continue;
    }
    sim::MeasuredTable table = sim::parse_measured(text, name);
    all.rows.insert(all.rows.end(), table.rows.begin(), table.rows.end());
    all.passed_over += table.passed_over;
    all.notes.insert(all.notes.end(), table.notes.begin(), table.notes.end());
    if (all.rows.size() > kMaxCalibrationRows)
      throw InputError(fmt::format("{}: expected at most {} rows in all files, found more", name,
                                   kMaxCalibrationRows));
  }
  if (all.rows.empty() && out.copies.empty() && out.overlaps.empty())
    throw InputError(input_name(files.front()) +
                     ": expected rows of all_reduce, all_gather, reduce_scatter or all_to_all, "
                     "found none");
  return out;
}

// The description, with the count of "NAME:count" in it.
TopologyDescription base_of(const std::string& spec) {
  sim::NamedTopology named = sim::find_description(spec);
  build_topology(named.description, named.count);  // refuses a wrong count
  if (named.count && named.description.counts == TopologyDescription::Counts::Nodes)
    named.description.nodes = static_cast<std::int32_t>(*named.count);
  else if (named.count)
    named.description.devices = static_cast<std::int32_t>(*named.count);
  return named.description;
}

// A machine equal to the given one is neither written nor reported.
[[noreturn]] void refuse_unfitted(const Topology& topology,
                                  const std::vector<sim::MeasuredCollective>& rows) {
  std::int32_t of_node = topology.devices() / topology.nodes();
  bool across = std::all_of(rows.begin(), rows.end(), [&](const sim::MeasuredCollective& row) {
    return row.ranks > of_node;
  });
  throw InputError(fmt::format(
      "{}: expected rows that determine some figure of {}, found none{}", rows.front().place,
      topology.name(),
      across ? fmt::format(": runs on several nodes (more than the {} ranks of one) are timed with "
                           "NCCL's own network figures, which are not fitted",
                           of_node)
             : ""));
}

void run_calibrate(const CalibrateOptions& options) {
  std::vector<NamedFile> inputs{{sim::file_of(options.topology), "--topology"}};
  for (const std::string& file : options.files) inputs.push_back({file, "FILE"});
  require_files({{options.output_file, "--output"}}, inputs);
  refuse_both(options.compare && !options.output_file.empty(), "--output", "--compare");
  refuse_both(options.compare && !options.holdouts.empty(), "--holdout", "--compare");
  refuse_unprinted(options.output, options.output_file, "--output -");
  sim::nccl::constants_of(options.nccl_version);
  TopologyDescription base = base_of(options.topology);
  std::vector<Holdout> holdouts;
  for (const std::string& text : options.holdouts) holdouts.push_back(parse_holdout(text));

  MeasuredFiles files = read_files(options.files);
  const sim::MeasuredTable& measured = files.collectives;
  std::vector<sim::MeasuredCollective> fitted, held;
  for (const sim::MeasuredCollective& row : measured.rows) {
    bool out = std::any_of(holdouts.begin(), holdouts.end(),
                           [&](const Holdout& holdout) { return holdout.holds(row); });
    (out ? held : fitted).push_back(row);
  }
  if (fitted.empty() && !measured.rows.empty())
    throw InputError("--holdout: expected some rows to fit, found all of them held out");

  Progress progress;
  sim::CalibrationReport report;
  report.passed_over = measured.passed_over;
  report.notes = measured.notes;
  Topology before = build_topology(base, std::nullopt);
  report.topology = before.name();
  report.compared = options.compare;
  for (const auto& [name, matrices] : files.copies) {
    sim::LinkFit links = sim::fit_links(base, matrices, name);
    report.pairs.insert(report.pairs.end(), links.pairs.begin(), links.pairs.end());
    if (options.compare) continue;
    report.links.insert(report.links.end(), links.fitted.begin(), links.fitted.end());
    base = std::move(links.machine);
  }
  for (const auto& [name, overlap] : files.overlaps) {
    if (options.compare)
      throw InputError(fmt::format(
          "--compare: expected collectives or copies, found {}, which has only figures", name));
    std::vector<sim::Fitted> figures = sim::fit_overlap(base, overlap, name);
    report.links.insert(report.links.end(), figures.begin(), figures.end());
  }
  if (!options.compare && !fitted.empty()) {
    progress.stage("fitting");
    report.calibration = sim::calibrate(base, fitted, options.nccl_version);
    if (report.calibration->fitted.empty() && report.links.empty()) refuse_unfitted(before, fitted);
    base = report.calibration->machine;
  }
  progress.stage("comparing");
  Topology after = build_topology(base, std::nullopt);
  report.fitted = {sim::errors_on(before, fitted, options.nccl_version),
                   sim::errors_on(after, fitted, options.nccl_version)};
  report.held = {sim::errors_on(before, held, options.nccl_version),
                 sim::errors_on(after, held, options.nccl_version)};
  progress.clear();
  OutputFiles written;
  if (!options.output_file.empty())
    written.write(options.output_file, "--output",
                  [&](std::ostream& out) { out << to_text(base); });
  if (options.output_file != "-")
    print(options.output.json
              ? sim::calibration_json(report)
              : sim::calibration_table(report, options.output.verbose, screen_width()));
  written.commit();
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App& command = add_command(
      app, "calibrate", "fit a machine's figures to measured collectives, or compare the two",
      "Example:\n  ./all_reduce_perf -b 1K -e 512M -f 2 -g 8 > all_reduce_8.txt\n"
      "  reshard calibrate --topology dgx-h100 --output mine.topo all_reduce_8.txt",
      [options] { run_calibrate(*options); });
  add_argument(command, "FILE", options->files,
               "output of nccl-tests (text, -J), NCCL's Inspector, validate --json or "
               "p2pBandwidthLatencyTest; compute and communication, alone and overlapped "
               "(docs/model.md); '-': standard input");
  OptionGroup machine(command, "Machine"), rows(command, "Rows"), output(command, "Output");
  machine.add_required("--topology", "TOPOLOGY", options->topology,
                       "starting point: preset or file");
  machine.add("--nccl-version", "VERSION", options->nccl_version,
              "NCCL that was measured: " + sim::nccl::known_versions() + " (default the newest)");
  rows.add("--holdout", "n=N|op=NAME|size=BYTES", options->holdouts,
           "rows to predict, not to fit; may be repeated");
  rows.add_flag("--compare", options->compare, "only compare, without a fit");
  output.add_file("--output", options->output_file,
                  "write the fitted topology ('-': to standard output)");
  add_report_options(command, options->output);
}

}  // namespace reshard::tools
