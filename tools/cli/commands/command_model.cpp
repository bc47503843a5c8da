// SPDX-License-Identifier: BSD-3-Clause
// `reshard model`: from a model's config.json and two parallelisms to bytes, seconds, bound and
// plan.
#include <limits>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "sim/check/layout_report.h"
#include "sim/exports/exports.h"
#include "sim/job/job_file.h"
#include "sim/machines/presets.h"
#include "sim/models/config.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/transfer.h"
#include "sim/page/pages.h"
#include "sim/report/run_report.h"
#include "sim/report/table.h"
#include "sim/report/writers/perfetto.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_files.h"
#include "tools/cli/pipeline.h"

namespace reshard::tools {
namespace {

constexpr std::size_t kRowsShown = 64, kConfigBytes = std::size_t{1} << 24;

struct ModelOptions {
  std::string config;
  sim::ModelTransfer transfer;
  std::string emit = "report", where;
  std::int64_t rank = -1;
  bool list = false;
  MachineOptions machine;
  OutputOptions output;
};

std::vector<std::string> emit_names() {
  std::vector<std::string> names{"report", "layout"};
  for (const sim::ExportRow& row : sim::exports()) names.emplace_back(row.name);
  return names;
}

std::string framework_help() {
  std::string out = "Frameworks, and the words that they take:\n";
  for (const sim::FrameworkRow& row : sim::frameworks())
    out += fmt::format("  {}: {}\n    {}\n", row.name, row.what, row.words);
  return out;
}

sim::ModelLayouts layouts_in(const std::string& lines) {
  std::istringstream in(lines);
  sim::LineReader reader(in, "the layout");
  return sim::read_sides(reader, "the layout");
}

void print_layout(const ModelOptions& options, const std::string& lines) {
  sim::ModelLayouts model = layouts_in(lines);
  sim::WhereQuery query;
  if (!options.where.empty()) query = sim::parse_where(options.where, *model.tensors, "--where");
  if (options.rank >= 0) query.rank = Rank{static_cast<std::int32_t>(options.rank)};
  std::vector<sim::LayoutRow> rows;
  sim::add_rows(*model.source, "from", query, rows);
  sim::add_rows(*model.destination, "to", query, rows);
  std::size_t shown = options.output.verbose ? std::numeric_limits<std::size_t>::max() : kRowsShown;
  print(options.output.json ? sim::layout_json(rows, *model.tensors)
                            : sim::layout_text(rows, *model.tensors, shown, screen_width()));
}

std::string header_of(const sim::Model& model, const sim::TransferText& text) {
  sim::Facts facts;
  facts.add("model",
            fmt::format("{}, {} layers, {}", model.family, model.layers.size(), text.dtype));
  facts.add("from", text.from);
  facts.add("to", text.to);
  for (const std::string& note : text.notes) facts.add("note", note);
  return facts.text(screen_width()) + "\n";
}

void run_model(const ModelOptions& options) {
  const std::string &perfetto = options.output.perfetto, &html = options.output.html;
  require_files(
      {{perfetto, "--perfetto"}, {html, "--html"}},
      {{options.config, "CONFIG"}, {sim::file_of(options.machine.topology), "--topology"}});
  refuse_unprinted(options.output, perfetto, "--perfetto -");
  refuse_unprinted(options.output, html, "--html -");
  sim::Model model =
      sim::parse_config(read_input(options.config, kConfigBytes), input_name(options.config));
  sim::TransferText text = sim::transfer_text(model, options.transfer);
  if (options.emit == "layout") return print(text.lines);
  if (options.list || !options.where.empty()) return print_layout(options, text.lines);

  std::istringstream in(text.lines);
  sim::Subject subject = sim::parse_job(in, "the layout");
  sim::StudyOptions wanted = study_options(options.machine);
  bool has_page = !html.empty(), has_timeline = has_page || !perfetto.empty();
  if (options.emit == "report")
    wanted.record = {.spans = true,
                     .path = options.output.json || options.output.verbose || has_page,
                     .flows = has_timeline,
                     .work = has_timeline};
  wanted.explain = has_page;
  Progress progress;
  wanted.on_stage = [&](std::string_view what) { progress.stage(what); };
  sim::Job job = job_of(subject, options.machine, wanted);
  for (const sim::ExportRow& row : sim::exports())
    if (options.emit == row.name) {
      progress.stage("writing");
      sim::Exported exported = row.write({job.plan(), job.stored()});
      progress.clear();
      return print(exported.text);
    }
  progress.stage("timing");
  sim::RunReport report = job.report(wanted.record.path);
  report.data = sim::not_moved(job.plan(), "a model of this size is proved, not moved");
  progress.clear();
  if (options.output.verbose) report.phases = progress.times();
  OutputFiles written;
  if (!perfetto.empty())
    written.write(perfetto, "--perfetto",
                  [&](std::ostream& out) { sim::write_perfetto(out, job.study()); });
  if (has_page)
    written.write(html, "--html", [&](std::ostream& out) {
      out << sim::run_page("simulation", report, job.study());
    });
  if (perfetto != "-" && html != "-")
    print(options.output.json
              ? sim::simulate_json(report)
              : header_of(model, text) +
                    sim::simulate_table(report, options.output.verbose, screen_width()));
  written.commit();
}

}  // namespace

void add_model_command(CLI::App& app) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App& command = add_command(
      app, "model", "plan and time a model's transfer between two frameworks",
      [] {
        return "Example:\n  reshard model config.json --from 'megatron tp=8 pp=8 ep=32 dp=4 etp=1' "
               "--to 'vllm tp=32 ep replicas=4' --to-ranks 256-383 --topology dgx-h100:48\n"
               "  reshard model config.json --from 'fsdp2 dp=8 tp=8' --to 'sglang tp=8 dp=2 ep=8' "
               "--list --rank 3\n\n" +
               framework_help();
      },
      [options] { run_model(*options); });
  add_argument(command, "CONFIG", options->config, "the model's config.json; '-': standard input");
  OptionGroup sides(command, "Sides");
  sides.add_required("--from", "PARALLELISM", options->transfer.from.parallelism,
                     "how the model lies now: a framework and its words, as below");
  sides.add_required("--to", "PARALLELISM", options->transfer.to.parallelism, "how it is to lie");
  sides.add("--ranks", "RANKS", options->transfer.from.ranks,
            "ranks of the first side (default 0, 1, ..)");
  sides.add("--to-ranks", "RANKS", options->transfer.to.ranks,
            "ranks of the second side (default 0, 1, ..)");
  sides.add("--dtype", "DTYPE", options->transfer.dtype,
            "in which weights travel; fp8: quantised by blocks, with scales (default: what both "
            "sides hold)");
  OptionGroup output(command, "Output");
  output.add_flag("--list", options->list, "print which rows of which tensor each rank holds");
  output.add("--where", "WHAT", options->where,
             "print which ranks have elements of a tensor, and where");
  output.add_count("--rank", "RANK", options->rank, std::int64_t{0}, kMaxRanks - 1,
                   "with --list and --where: only what this rank has");
  std::string formats = "print layout: both sides as a file of layouts;";
  for (const sim::ExportRow& row : sim::exports())
    formats += fmt::format(" {}: {};", row.name, row.what);
  output.add_choice("--emit", "WHAT", options->emit, emit_names(),
                    formats + " report: the report (default)");
  add_machine_options(command, options->machine);
  add_report_options(command, options->output);
  add_perfetto_option(command, options->output);
  add_html_option(command, options->output);
}

}  // namespace reshard::tools
