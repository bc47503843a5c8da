// SPDX-License-Identifier: BSD-3-Clause
// `reshard kv`: the KV cache of a request on its way from prefill to decode ranks, planned, proved,
// moved and timed as `simulate` does with tensors of layouts.
#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "sim/job/job_file.h"
#include "sim/machines/presets.h"
#include "sim/models/kv/kv_transfer.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options.h"
#include "tools/cli/pipeline.h"
#include "tools/cli/simulation.h"

namespace reshard::tools {
namespace {

struct KvOptions : SimulationOptions {
  sim::KvSpec spec;
  std::string emit = "report";
};

constexpr std::size_t kMostTableBytes = std::size_t{256} << 20;

std::vector<NamedFile> inputs_of(const KvOptions& options) {
  const sim::KvSpec& spec = options.spec;
  std::vector<NamedFile> out{{sim::file_of(options.machine.topology), "--topology"},
                             {spec.config_file, "--config"}};
  for (const auto& [side, option] :
       {std::pair{&spec.from, "--from-blocks"}, {&spec.to, "--to-blocks"}})
    if (!side->table_file.empty()) out.push_back({side->table_file, option});
  return out;
}

sim::KvTransfer transfer_of(const KvOptions& options) {
  sim::KvSpec spec = options.spec;
  if (spec.tokens == 0) throw InputError("--tokens: required, how many the request has");
  if (spec.from.block == 0) throw InputError("--block: required, how many tokens a block has");
  auto read = [](std::string& file, std::string& text, std::size_t limit) {
    if (file.empty()) return;
    text = read_input(file, limit);
    file = input_name(file);
  };
  read(spec.config_file, spec.config, kMaxLineBytes);
  read(spec.from.table_file, spec.from.table, kMostTableBytes);
  read(spec.to.table_file, spec.to.table, kMostTableBytes);
  return sim::read_kv_transfer(spec);
}

sim::Subject subject_of(const sim::KvTransfer& transfer) {
  std::istringstream lines(sim::kv_layouts(transfer));
  return sim::parse_job(lines, "layouts of the cache");
}

void run_emit(const KvOptions& options) {
  std::string emit = "--emit " + options.emit;
  refuse_both(options.output.json, "--json", emit);
  refuse_both(options.output.verbose, "--verbose", emit);
  refuse_both(!options.output.html.empty(), "--html", emit);
  refuse_both(!options.output.perfetto.empty(), "--perfetto", emit);
  require_inputs(inputs_of(options));
  sim::KvTransfer transfer = transfer_of(options);
  if (options.emit == "layout") return print(sim::kv_layouts(transfer));
  Progress progress;
  sim::StudyOptions wanted = study_options(options.machine);
  wanted.on_stage = [&](std::string_view stage) { progress.stage(stage); };
  print_export(job_of(subject_of(transfer), options.machine, wanted), options.emit,
               options.machine.topology, progress);
}

void run_kv(const KvOptions& options) {
  if (options.emit != "report") return run_emit(options);
  simulate(options, inputs_of(options), [&] {
    sim::KvTransfer transfer = transfer_of(options);
    return Simulated{subject_of(transfer), false, sim::kv_facts(transfer)};
  });
}

void add_cache_options(CLI::App& command, sim::KvSpec& spec) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  OptionGroup group(command, "Cache");
  group.add_required("--config", "FILE", spec.config_file, "the model's config.json");
  group.add_required("--from", "SIZES", spec.from.parallel,
                     "parallelism of the prefill engine: 'tp=4 pp=2', also dp, cp, dcp, "
                     "interleave=TOKENS and layers=vllm|sglang|trtllm or layers=31,30");
  group.add_required("--to", "SIZES", spec.to.parallel, "parallelism of the decode engine");
  group.add_count("--tokens", "COUNT", spec.tokens, std::int64_t{1}, kMost,
                  "tokens of the request");
  group.add_count("--block", "TOKENS", spec.from.block, std::int64_t{1}, kMost,
                  "tokens of a block on a prefill rank");
  group.add_count("--to-block", "TOKENS", spec.to.block, std::int64_t{1}, kMost,
                  "tokens of a block on a decode rank (default: as --block)");
  group.add("--ranks", "RANKS", spec.from.ranks,
            "ranks of the prefill engine, by dp, pp, cp, tp, which is fastest (default 0..n-1)");
  group.add("--to-ranks", "RANKS", spec.to.ranks,
            "ranks of the decode engine (default: those after the prefill engine's)");
  group.add_count("--dp-rank", "RANK", spec.from.dp_rank, std::int64_t{0}, kMost,
                  "which of the prefill engine's dp ranks has the request (default 0)");
  group.add_count("--to-dp-rank", "RANK", spec.to.dp_rank, std::int64_t{0}, kMost,
                  "which of the decode engine's dp ranks gets it (default 0)");
  group.add("--from-blocks", "FILE", spec.from.table_file,
            "blocks of the request in the order of its tokens, as JSON: [3, 7, 1], or "
            "{\"blocks\": [3, 7, 1], \"pool\": 4096} (default: the first blocks)");
  group.add("--to-blocks", "FILE", spec.to.table_file, "the same on decode ranks");
  group.add("--form", "FORM", spec.from.form,
            "arrays of a prefill rank, as dims in memory order (kv,blocks,tokens,heads,dim; layers "
            "too) or by name: " +
                sim::known_kv_forms() + " (default vllm)");
  group.add("--to-form", "FORM", spec.to.form, "arrays of a decode rank (default: as --form)");
  group.add("--dtype", "DTYPE", spec.dtype, "the cache's dtype (default: the config's)");
}

}  // namespace

void add_kv_command(CLI::App& app) {
  auto options = std::make_shared<KvOptions>();
  options->data.how = "fitting";
  CLI::App& command = add_command(
      app, "kv", "plan, prove, move and time a KV cache between prefill and decode ranks",
      "Example:\n  reshard kv --config config.json --from 'tp=4 pp=2' --to tp=8 --block 16 "
      "--tokens "
      "32768 --topology dgx-h100:2\n"
      "  reshard kv --config config.json --from tp=4 --to tp=8 --block 16 --to-block 64 "
      "--tokens 1000 --emit layout | reshard layout -\n\n"
      "docs/kv.md says what is assumed of engines, and what is refused.",
      [options] { run_kv(*options); });
  add_cache_options(command, options->spec);
  add_machine_options(command, options->machine);
  add_cold_option({command, kMachineHeading}, options->machine);
  OptionGroup data(command, "Data");
  data.add_choice("--data", "HOW", options->data.how, {"fitting", "full", "proof"},
                  "full: move and compare every byte; proof: index sets only; fitting: full if it "
                  "takes no more than the budget (default)");
  data.add("--data-budget", "BYTES", options->data.budget,
           "what moving the bytes may take with --data fitting (default 2GiB)");
  add_report_options(command, options->output);
  add_perfetto_option(command, options->output);
  add_html_option(command, options->output);
  OptionGroup(command, "Output")
      .add_choice(
          "--emit", "WHAT", options->emit, emit_names({"report", "layout"}),
          emit_help() + " layout: the layouts (docs/check.md); report: the report (default)");
}

}  // namespace reshard::tools
