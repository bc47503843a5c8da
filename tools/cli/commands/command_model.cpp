// SPDX-License-Identifier: BSD-3-Clause
// `reshard model`: from a model's config.json and two parallelisms to bytes, seconds, bound and
// plan.
#include <algorithm>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "sim/exports/exports.h"
#include "sim/job/job_file.h"
#include "sim/machines/presets.h"
#include "sim/models/config.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/transfer_report.h"
#include "sim/models/what_if.h"
#include "sim/report/writers/perfetto.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/printed_layouts.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_files.h"
#include "tools/cli/pipeline.h"

namespace reshard::tools {
namespace {

constexpr std::size_t kConfigBytes = std::size_t{1} << 24, kClaimBytes = std::size_t{1} << 31;

struct ModelOptions {
  std::string config;
  sim::ModelTransfer transfer;
  std::string emit = "report", where, roles_file, claim, what_if;
  std::int64_t rank = -1;
  bool list = false, roles = false;
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

constexpr const char* kLayoutName = "the layout";

sim::Subject subject_in(const std::string& lines) {
  std::istringstream in(lines);
  return sim::parse_job(in, kLayoutName);
}

void print_layout(const ModelOptions& options, const std::string& lines) {
  std::istringstream in(lines);
  sim::LineReader reader(in, kLayoutName);
  sim::ModelLayouts model = sim::read_sides(reader, kLayoutName);
  std::optional<Rank> rank;
  if (options.rank >= 0) rank = Rank{static_cast<std::int32_t>(options.rank)};
  std::vector<sim::WhereQuery> queries{{std::nullopt, {}, rank}};
  if (!options.where.empty())
    queries = sim::parse_place(options.where, *model.source, *model.destination, rank, "--where");
  print_rows(model, queries, options.output);
}

// The copies of a file, judged by the layouts of the model.
void check_claim(const ModelOptions& options, const std::string& lines) {
  std::string copies = read_input(options.claim, kClaimBytes);
  // A file can come with a header of its own.
  std::string_view rest = copies;
  if (rest.substr(0, rest.find('\n')).find("\"reshard_check\"") != std::string_view::npos)
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  std::istringstream in(lines + std::string(rest));
  sim::CheckReport report = sim::report_of(sim::check_copies(in, input_name(options.claim)));
  print_check(report, options.output);
  fail_on_findings(report);
}

class Transfer {
 public:
  explicit Transfer(const ModelOptions& options) : options_(options) {}

  void run(const sim::Model& model) {
    sim::TransferText text = sim::transfer_text(model, options_.transfer);
    if (options_.emit == "layout") return print(text.lines);
    if (options_.list || !options_.where.empty()) return print_layout(options_, text.lines);
    if (!options_.claim.empty()) return check_claim(options_, text.lines);
    const bool has_page = !options_.output.html.empty(),
               has_timeline = has_page || !options_.output.perfetto.empty();
    sim::StudyOptions wanted = study_options(options_.machine);
    wanted.record = {.spans = true,
                     .path = options_.output.json || options_.output.verbose || has_page,
                     .flows = has_timeline,
                     .work = has_timeline};
    wanted.explain = has_page;
    wanted.on_stage = [&](std::string_view what) { progress_.stage(what); };
    sim::Job job = job_of(subject_in(text.lines), options_.machine, wanted);
    for (const sim::ExportRow& row : sim::exports())
      if (options_.emit == row.name) return emit(row, job);
    progress_.stage("timing");
    sim::RunReport run = job.report(wanted.record.path);
    run.data = sim::not_moved(job.plan(),
                              "a model is proved; its bytes are moved by simulate "
                              "--requests, from --emit layout");
    sim::TransferReport report = sim::report_of_transfer(
        fmt::format("{}, {} layers", model.family, model.layers.size()), std::move(text),
        std::move(run), sim::tensor_uses(job.plan(), job.study().timeline()), job.plan(),
        job.study().topology());
    for (const sim::WhatIf& variant :
         sim::parse_what_ifs(options_.what_if, options_.transfer, "--what-if"))
      report.what_ifs.push_back(row_of(variant, model));
    progress_.clear();
    if (options_.output.verbose) report.run.phases = progress_.times();
    write(report, job.study());
  }

 private:
  void emit(const sim::ExportRow& row, const sim::Job& job) {
    progress_.stage("writing");
    sim::Exported exported = row.write({job.plan(), job.stored()});
    progress_.clear();
    print(exported.text);
  }

  sim::WhatIfRow row_of(const sim::WhatIf& variant, const sim::Model& model) {
    sim::WhatIfRow out{variant.name};
    try {
      sim::Subject subject = subject_in(sim::transfer_text(model, variant.transfer).lines);
      subject.stages = sim::stages_of(variant, subject.requests);
      sim::StudyOptions wanted = study_options(options_.machine);
      if (variant.extra_bytes) wanted.memory.extra_bytes = *variant.extra_bytes;
      progress_.stage(variant.name);
      sim::Job job = job_of(subject, options_.machine, wanted);
      sim::RunReport report = job.report(false);
      out.planner = report.planner;
      out.time_ps = report.time_ps;
      out.bound_ps = report.bound.time_ps();
      out.peak_bytes = report.bytes.peak_max;
      out.extra_bytes = report.needs.extra_bytes;
    } catch (const InputError& error) {
      out.refused = error.what();
    }
    return out;
  }

  void write(const sim::TransferReport& report, sim::Study& study) {
    const std::string &perfetto = options_.output.perfetto, &html = options_.output.html;
    OutputFiles written;
    if (!perfetto.empty())
      written.write(perfetto, "--perfetto",
                    [&](std::ostream& out) { sim::write_perfetto(out, study); });
    if (!html.empty())
      written.write(html, "--html",
                    [&](std::ostream& out) { out << sim::transfer_page(report, study); });
    if (perfetto != "-" && html != "-")
      print(options_.output.json
                ? sim::transfer_json(report)
                : sim::transfer_table(report, options_.output.verbose, screen_width()));
    written.commit();
  }

  const ModelOptions& options_;
  Progress progress_;
};

void run_model(const ModelOptions& options) {
  require_files({{options.output.perfetto, "--perfetto"}, {options.output.html, "--html"}},
                {{options.config, "CONFIG"},
                 {options.claim, "--check"},
                 {sim::file_of(options.machine.topology), "--topology"}});
  refuse_unprinted(options.output, options.output.perfetto, "--perfetto -");
  refuse_unprinted(options.output, options.output.html, "--html -");
  sim::Model model =
      sim::parse_config(read_input(options.config, kConfigBytes), input_name(options.config));
  if (options.transfer.from.parallelism.empty() || options.transfer.to.parallelism.empty())
    throw InputError("--from, --to: required, such as --from 'megatron tp=8' --to 'vllm tp=8'");
  Transfer(options).run(model);
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
  sides.add("--from", "PARALLELISM", options->transfer.from.parallelism,
            "how the model lies now: a framework and its words, as below");
  sides.add("--to", "PARALLELISM", options->transfer.to.parallelism, "how it is to lie");
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
  output.add("--check", "FILE", options->claim,
             "judge the lines of copies in a file by the layouts of the model (docs/check.md)");
  output.add("--what-if", "WORDS", options->what_if,
             "also with something changed: stages=in-turn, buckets=1GiB, memory=4GiB, tp=8,16, "
             "from.pp=4; several values are several rows");
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
