// SPDX-License-Identifier: BSD-3-Clause
// `reshard model`: from a model's config.json and two parallelisms to bytes, seconds, bound and
// plan.
#include <algorithm>
#include <memory>
#include <sstream>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/base/printable.h"
#include "sim/job/job_file.h"
#include "sim/machines/presets.h"
#include "sim/models/file_side.h"
#include "sim/models/files/m2n.h"
#include "sim/models/files/placement_file.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/report/transfer_report.h"
#include "sim/models/weights/model_source.h"
#include "sim/models/weights/roles.h"
#include "sim/models/what_if.h"
#include "sim/report/writers/perfetto.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/printed_layouts.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_files.h"
#include "tools/cli/pipeline.h"
#include "tools/cli/simulation.h"

namespace reshard::tools {
namespace {

struct ModelOptions {
  sim::ModelSource source;
  sim::WhatIf as_is;
  std::string stages = "at-once";
  std::string m2n_model, m2n_system, from_placement, to_placement, from_dcp;
  std::string emit = "report", where, claim, what_if;
  std::int64_t rank = -1;
  std::string weights;
  bool list = false, roles = false, digests = false;
  MachineOptions machine;
  OutputOptions output;
};

std::string framework_help() {
  std::string out = "Frameworks, and the words that they take:\n";
  for (const sim::FrameworkRow& row : sim::frameworks())
    out += fmt::format("  {}: {}\n    {}\n", row.name, row.what, row.words);
  return out;
}

// Messages about the layouts, which no user has written, end with the line that --emit layout
// prints.
constexpr std::string_view kLayoutName = "--emit layout";

template <class Read>
auto read_lines(const std::string& lines, Read&& read) {
  std::istringstream in(lines);
  try {
    return read(in, std::string(kLayoutName));
  } catch (const InputError& error) {
    std::string_view what = error.what();
    const std::size_t colon = what.find(": ");
    if (!what.starts_with(kLayoutName) || colon == std::string_view::npos) throw;
    std::string_view place = what.substr(kLayoutName.size(), colon - kLayoutName.size());
    throw InputError(place.empty()
                         ? fmt::format("{} ({} prints it)", what.substr(colon + 2), kLayoutName)
                         : fmt::format("{} (line {} of what {} prints)", what.substr(colon + 2),
                                       place.substr(1), kLayoutName));
  }
}

sim::Subject subject_in(const std::string& lines) {
  return read_lines(
      lines, [](std::istream& in, const std::string& name) { return sim::parse_job(in, name); });
}

sim::ModelLayouts layouts_in(const std::string& lines) {
  return read_lines(lines, [](std::istream& in, const std::string& name) {
    sim::LineReader reader(in, name);
    return sim::read_sides(reader, name);
  });
}

void print_layout(const ModelOptions& options, const sim::ModelLayouts& model) {
  std::optional<Rank> rank;
  if (options.rank >= 0) rank = Rank{static_cast<std::int32_t>(options.rank)};
  std::vector<sim::WhereQuery> queries{{std::nullopt, {}, rank}};
  if (!options.where.empty())
    queries = sim::parse_place(options.where, *model.source, *model.destination, rank, "--where");
  print_rows(model, queries, options.output);
}

// The copies of a file, judged by the layouts of the model.
void check_claim(const ModelOptions& options, sim::ModelLayouts layouts) {
  sim::CheckReport report;
  sim::with_file(options.claim, "a file of copies", [&](std::istream& in, const std::string& name) {
    report = sim::report_of(sim::check_copies(in, name, std::move(layouts)));
  });
  print_check(report, options.output);
  fail_on_findings(report);
}

// What is printed in place of the report.
bool has_other_output(const ModelOptions& options) {
  return options.emit != "report" || options.list || !options.where.empty() ||
         !options.claim.empty() || options.digests;
}

void refuse_others(const ModelOptions& options) {
  std::vector<std::pair<bool, std::string>> outputs{
      {options.roles, "--roles"},
      {options.list && options.where.empty(), "--list"},
      {!options.where.empty(), "--where"},
      {!options.claim.empty(), "--check"},
      {options.digests, "--digests"},
      {options.emit != "report", "--emit " + options.emit},
      {!options.what_if.empty(), "--what-if"},
      {!options.output.html.empty(), "--html"},
      {!options.output.perfetto.empty(), "--perfetto"}};
  // The last three are of the report.
  for (std::size_t i = 0; i + 3 < outputs.size(); ++i)
    for (std::size_t j = i + 1; outputs[i].first && j < outputs.size(); ++j)
      refuse_both(outputs[j].first, outputs[j].second, outputs[i].second);
  if (options.emit != "report") {
    refuse_both(options.output.json, "--json", "--emit " + options.emit);
    refuse_both(options.output.verbose, "--verbose", "--emit " + options.emit);
  }
  if (options.rank >= 0 && !options.list && options.where.empty())
    throw InputError("--rank: expected --list or --where next to it");
}

class Transfer {
 public:
  Transfer(const ModelOptions& options, std::optional<sim::Model> model)
      : options_(options), model_(std::move(model)) {}

  void run(sim::TransferText text) {
    // A report has the notes itself.
    if (has_other_output(options_))
      for (const std::string& note : text.notes) fmt::print(stderr, "reshard: note: {}\n", note);
    if (options_.emit == "layout") return print(text.lines);
    if (options_.digests)
      return print_digests(layouts_in(text.lines), sim::Weights(options_.weights),
                           sim::kDigestSides, 0, model_ ? &*model_ : nullptr);
    if (options_.list || !options_.where.empty())
      return print_layout(options_, layouts_in(text.lines));
    if (!options_.claim.empty()) return check_claim(options_, layouts_in(text.lines));
    const bool has_page = !options_.output.html.empty(),
               has_timeline = has_page || !options_.output.perfetto.empty();
    sim::StudyOptions wanted = study_options(options_.machine);
    wanted.record = {.spans = true,
                     .path = options_.output.json || options_.output.verbose || has_page,
                     .flows = has_timeline,
                     .work = has_timeline};
    wanted.explain = has_page;
    if (options_.emit == "report") wanted.meanwhile = sim::Meanwhile::Report;
    wanted.on_stage = [&](std::string_view what) { progress_.stage(what); };
    sim::Subject subject = subject_in(text.lines);
    subject.stages = sim::stages_of(options_.as_is, subject.requests);
    sim::Job job = job_of(std::move(subject), options_.machine, wanted);
    if (options_.emit != "report")
      return print_export(job, options_.emit, options_.machine.topology, progress_);
    progress_.stage("timing");
    sim::RunReport run = job.report(wanted.record.path);
    sim::TransferReport report =
        sim::report_of_transfer(std::move(text), std::move(run), job.study());
    for (const sim::WhatIf& variant :
         sim::parse_what_ifs(options_.what_if, options_.as_is, "--what-if"))
      report.what_ifs.push_back(row_of(variant, report.text.notes));
    progress_.clear();
    if (options_.output.verbose) report.run.phases = progress_.times();
    write(report, job.study());
  }

 private:
  sim::WhatIfRow row_of(const sim::WhatIf& variant, const std::vector<std::string>& known) {
    sim::WhatIfRow out{variant.name};
    try {
      sim::TransferText text = sim::transfer_text(*model_, variant.transfer);
      for (std::string& note : text.notes)
        if (std::find(known.begin(), known.end(), note) == known.end())
          out.notes.push_back(std::move(note));
      sim::Subject subject = subject_in(text.lines);
      subject.stages = sim::stages_of(variant, subject.requests);
      sim::StudyOptions wanted = study_options(options_.machine);
      if (variant.extra_bytes) wanted.memory.extra_bytes = *variant.extra_bytes;
      progress_.stage(variant.name);
      sim::Job job = job_of(subject, options_.machine, wanted);
      sim::Study& study = job.study();
      out.planner = study.plan_in_series().planner;
      out.time_ps = study.time_ps();
      out.bound_ps = study.bound().time_ps();
      out.peak_bytes = study.bytes().peak_max;
      out.extra_bytes = study.needs().extra_bytes;
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
  std::optional<sim::Model> model_;
  Progress progress_;
};

// Both sides from files that describe them completely.
std::optional<sim::TransferText> text_of_files(const ModelOptions& options) {
  const bool is_m2n = !options.m2n_model.empty() || !options.m2n_system.empty(),
             is_placement = !options.from_placement.empty() || !options.to_placement.empty();
  if (!is_m2n && !is_placement) return std::nullopt;
  const std::string_view option = is_m2n ? "--m2n-model" : "--from-placement";
  for (const auto& [given, name] : {std::pair{!options.source.path.empty(), "CONFIG"},
                                    {!options.as_is.transfer.from.parallelism.empty(), "--from"},
                                    {!options.as_is.transfer.to.parallelism.empty(), "--to"},
                                    {!options.from_dcp.empty(), "--from-dcp"},
                                    {!options.what_if.empty(), "--what-if"},
                                    {is_m2n && is_placement, "--from-placement"}})
    refuse_both(given, name, option);
  if (is_m2n) {
    if (options.m2n_model.empty() || options.m2n_system.empty())
      throw InputError("--m2n-model, --m2n-system: required together");
    sim::TransferText out = sim::foreign_text(
        sim::read_m2n(options.m2n_model, options.m2n_system),
        fmt::format("{} by the rules of M2N's benchmark", shown_path(options.m2n_model)));
    out.from = fmt::format("the trainers of {}", shown_path(options.m2n_system));
    out.to = fmt::format("the generators of {}", shown_path(options.m2n_system));
    return out;
  }
  if (options.from_placement.empty() || options.to_placement.empty())
    throw InputError("--from-placement, --to-placement: required together");
  sim::ForeignLayouts from = sim::read_placement(options.from_placement, "from", 0);
  sim::TransferText out =
      sim::foreign_text(from, sim::read_placement(options.to_placement, "to", from.end_rank),
                        "Mooncake's placements");
  out.from = shown_path(options.from_placement);
  out.to = shown_path(options.to_placement);
  return out;
}

// A checkpoint's own folder can have the config.
sim::ModelSource source_of(const ModelOptions& options) {
  sim::ModelSource out = options.source;
  if (out.path.empty() && out.config.empty() && !options.from_dcp.empty())
    out.path = options.from_dcp + "/config.json";
  else if (out.path.empty())
    out.path = std::exchange(out.config, "");
  if (out.path.empty()) throw InputError("CONFIG: required: a config.json, or a checkpoint");
  return out;
}

void run_model(ModelOptions options) {
  std::vector<NamedFile> inputs{{options.source.path, "CONFIG"},
                                {options.source.config, "--config"},
                                {options.source.roles, "--roles-file"},
                                {options.claim, "--check"},
                                {options.m2n_model, "--m2n-model"},
                                {options.m2n_system, "--m2n-system"},
                                {options.from_placement, "--from-placement"},
                                {options.to_placement, "--to-placement"},
                                {sim::file_of(options.machine.topology), "--topology"}};
  require_files({{options.output.perfetto, "--perfetto"}, {options.output.html, "--html"}}, inputs);
  refuse_unprinted(options.output, options.output.perfetto, "--perfetto -");
  refuse_unprinted(options.output, options.output.html, "--html -");
  if (options.digests == options.weights.empty())
    throw InputError("--digests, --weights: required together");
  refuse_others(options);
  options.as_is.is_in_turn = options.stages == "in-turn";
  if (std::optional<sim::TransferText> text = text_of_files(options))
    return Transfer(options, std::nullopt).run(std::move(*text));
  sim::Model model = sim::read_model(source_of(options));
  if (options.roles)
    return print(options.output.json ? sim::roles_json(model)
                                     : sim::roles_text(model, screen_width()));
  if (!options.from_dcp.empty()) {
    refuse_both(!options.as_is.transfer.from.parallelism.empty(), "--from", "--from-dcp");
    if (!options.as_is.transfer.dtype.empty())
      sim::change_dtype(model, parse_dtype(options.as_is.transfer.dtype, "--dtype"));
    options.as_is.transfer.dtype.clear();
    options.as_is.transfer.from.given =
        sim::dcp_side(model, sim::read_dcp(options.from_dcp), shown_path(options.from_dcp));
  }
  for (const auto& [side, name] :
       {std::pair{&options.as_is.transfer.from, "--from"}, {&options.as_is.transfer.to, "--to"}})
    if (side->parallelism.empty() && !side->given)
      throw InputError(fmt::format("{}: required, such as 'megatron tp=8 pp=2'", name));
  sim::TransferText text = sim::transfer_text(model, options.as_is.transfer);
  Transfer(options, std::move(model)).run(std::move(text));
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
  add_optional_argument(command, "CONFIG", options->source.path,
                        "the model's config.json, or a checkpoint with one next to it: folder, "
                        "model.safetensors.index.json, .safetensors");
  OptionGroup sides(command, "Sides");
  sides.add("--from", "PARALLELISM", options->as_is.transfer.from.parallelism,
            "the layout to move from: a framework and its words, as below");
  sides.add("--to", "PARALLELISM", options->as_is.transfer.to.parallelism, "the layout to move to");
  sides.add("--ranks", "RANKS", options->as_is.transfer.from.ranks,
            "ranks of the first side (default 0, 1, ..)");
  sides.add("--to-ranks", "RANKS", options->as_is.transfer.to.ranks,
            "ranks of the second side (default: those after the first's)");
  sides.add("--dtype", "DTYPE", options->as_is.transfer.dtype,
            "in which weights are sent; fp8: quantised by blocks, with scales (default: what both "
            "sides support)");
  OptionGroup files(command, "Files in place of CONFIG, --from and --to");
  files.add("--config", "FILE", options->source.config, "config.json of a checkpoint");
  files.add("--roles-file", "FILE", options->source.roles,
            "what weights are for: {\"model.layers.*.mlp.extra.weight\": \"column\"}");
  files.add("--m2n-model", "FILE", options->m2n_model,
            "model of NVIDIA's reshard_model_bench, with --m2n-system");
  files.add("--m2n-system", "FILE", options->m2n_system, "its trainers and generators");
  files.add("--from-placement", "FILE", options->from_placement,
            "Mooncake's manifest of one side, with --to-placement");
  files.add("--to-placement", "FILE", options->to_placement,
            "that of the other side; its ranks follow the first's");
  files.add("--from-dcp", "FOLDER", options->from_dcp,
            "distributed checkpoint of PyTorch in place of --from: its .metadata, of which nothing "
            "is run");
  OptionGroup output(command, "Output");
  output.add_flag("--roles", options->roles, "print what each weight is for");
  output.add_flag("--list", options->list, "print which rows of which tensor each rank holds");
  output.add("--where", "WHAT", options->where,
             "print which ranks have elements of a tensor, and where");
  output.add_count("--rank", "RANK", options->rank, std::int64_t{0}, kMaxRanks - 1,
                   "with --list and --where: only what this rank has");
  output.add("--check", "FILE", options->claim,
             "judge the lines of copies in a file by the layouts of the model (docs/check.md)");
  output.add_flag(
      "--digests", options->digests,
      "print digests of what each rank should hold, before and afterwards, of --weights "
      "(docs/digest.md)");
  output.add("--weights", "DIR", options->weights,
             "the model's tensors: a folder with model.safetensors or its index, or a .safetensors "
             "file");
  output.add_choice("--stages", "HOW", options->stages, {"at-once", "in-turn"},
                    "the source's pipeline stages: at-once (default), or in-turn, one after the "
                    "other");
  output.add("--what-if", "WORDS", options->what_if,
             "also with something changed: stages=in-turn, buckets=1GiB, memory=4GiB, tp=8,16, "
             "from.pp=4; several values are several rows");
  output.add_choice(
      "--emit", "WHAT", options->emit, emit_names({"report", "layout"}),
      emit_help() + " layout: both sides as a file of layouts; report: the report (default)");
  add_machine_options(command, options->machine);
  add_report_options(command, options->output);
  add_perfetto_option(command, options->output);
  add_html_option(command, options->output);
}

}  // namespace reshard::tools
