// SPDX-License-Identifier: BSD-3-Clause
// `reshard digest`: digests of what ranks should have after a transfer, and where those of what
// they have differ.
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/printable.h"
#include "sim/check/check_file.h"
#include "sim/check/unstacked.h"
#include "sim/digest/compare.h"
#include "sim/digest/digest_file.h"
#include "sim/digest/digest_report.h"
#include "sim/weights/weights.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/printed_layouts.h"
#include "tools/cli/failure.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {
namespace {

constexpr std::size_t kDifferencesShown = 20;

struct DigestOptions {
  std::string layouts, weights, side, expected, before;
  std::vector<std::string> wrote;
  std::int64_t rows = 0;
  OutputOptions output;
};

sim::DigestFile file_in(const std::string& path) {
  sim::MappedFile file(path, "digests");
  std::span<const std::byte> bytes = file.bytes();
  return sim::read_digest_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                               shown_path(path));
}

sim::Digests digests_in(const std::string& path, const sim::ModelLayouts& layouts) {
  return sim::digests_in(file_in(path), layouts, shown_path(path));
}

// What ranks wrote, in one file or in one of each.
sim::Digests wrote_in(const std::vector<std::string>& paths, const sim::ModelLayouts& layouts) {
  if (paths.size() == 1) return digests_in(paths.front(), layouts);
  std::vector<sim::DigestFile> files;
  for (const std::string& path : paths) {
    files.push_back(file_in(path));
    sim::digests_in(files.back(), layouts, shown_path(path));  // refuses it by its name
  }
  return sim::digests_in(sim::gathered(files), layouts, fmt::format("{} files", paths.size()));
}

// Earlier weights, or an earlier file of digests, which is recognised by its content.
bool is_digest_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return false;
  sim::MappedFile file(path, "weights or digests");
  return !file.bytes().empty() && file.bytes().front() == std::byte{'{'} &&
         !path.ends_with(".index.json");
}

std::vector<sim::DigestSide> compared_sides(const DigestOptions& options,
                                            const sim::Digests& wrote) {
  if (!options.side.empty()) return sim::parse_sides(options.side, "--side");
  std::vector<sim::DigestSide> out;
  for (sim::DigestSide side : sim::kDigestSides)
    if (wrote.of(side)) out.push_back(side);
  return out;
}

// Digests know experts by the names that the weights have.
sim::ModelLayouts as_in(sim::ModelLayouts layouts, const sim::DigestFile& file) {
  std::set<std::string_view> names;
  for (const sim::DigestTensor& tensor : file.tensors) names.insert(tensor.name);
  return sim::unstacked(std::move(layouts),
                        [&](std::string_view name) { return names.count(name) > 0; });
}

void compare(const DigestOptions& options, sim::ModelLayouts read) {
  const sim::ModelLayouts layouts = as_in(std::move(read), file_in(options.expected));
  sim::Digests expected = digests_in(options.expected, layouts);
  sim::Digests wrote = wrote_in(options.wrote, layouts);
  std::optional<sim::Weights> weights, weights_before;
  std::optional<sim::Digests> digests_before;
  if (!options.weights.empty()) weights.emplace(options.weights);
  sim::BeforeDigests before;
  if (!options.before.empty() && is_digest_file(options.before))
    before.digests = &digests_before.emplace(digests_in(options.before, layouts));
  else if (!options.before.empty())
    before.weights = &weights_before.emplace(options.before);
  sim::DigestReport report{
      expected.file, wrote.file, &layouts,
      sim::compare_digests(layouts, expected, wrote, compared_sides(options, wrote),
                           weights ? &*weights : nullptr, before)};
  std::size_t rows =
      options.output.verbose ? std::numeric_limits<std::size_t>::max() : kDifferencesShown;
  print(options.output.json ? sim::digest_json(report)
                            : sim::digest_text(report, rows, screen_width()));
  if (!report.comparison.findings.empty())
    throw CheckNotHeld{{fmt::format("{}: {}", wrote.file, sim::verdict(report))}};
}

void run_digest(const DigestOptions& options) {
  if (options.expected.empty()) {
    if (!options.wrote.empty())
      throw InputError("--expect: required where digests are compared, as FOUND is given");
    if (options.weights.empty())
      throw InputError("--weights: required, or give digests to compare: --expect");
    if (!options.before.empty())
      throw InputError("--before: expected only with --expect, found no digests to compare");
  } else {
    if (options.wrote.empty())
      throw InputError("FOUND: required with --expect: the digests of what ranks have");
    refuse_both(options.rows > 0, "--rows", "--expect");
  }
  require_inputs({{options.layouts, "--layout"}});
  sim::ModelLayouts layouts = sim::read_sides(options.layouts);
  if (!options.expected.empty()) return compare(options, std::move(layouts));
  auto sides = sim::parse_sides(options.side.empty() ? "to" : options.side, "--side");
  sim::Weights weights(options.weights);
  print_digests(std::move(layouts), weights, sides, options.rows);
}

}  // namespace

void add_digest_command(CLI::App& app) {
  auto options = std::make_shared<DigestOptions>();
  CLI::App& command = add_command(
      app, "digest", "find where ranks hold other data than they should after a transfer",
      "Prints the digests of what each rank should hold; given those of what ranks do hold, prints "
      "where they differ, and which data is there instead (docs/digest.md). The exit code is 1 if "
      "they differ.\n"
      "Example:\n  reshard digest --layout my.layouts --weights DIR > expected.json\n"
      "  reshard digest --layout my.layouts --expect expected.json found.json --weights DIR",
      [options] { run_digest(*options); });
  add_optional_argument(command, "FOUND", options->wrote,
                        "digests of what ranks hold, of all in one file or of each in its own");
  OptionGroup group(command, "Digests");
  group.add_required("--layout", "FILE", options->layouts,
                     "layouts of a model (docs/check.md); '-': standard input");
  group.add("--weights", "DIR", options->weights,
            "all tensors: a folder with model.safetensors or its index, or a .safetensors file");
  group.add_choice("--side", "SIDE", options->side, {"from", "to", "both"},
                   "from, to or both sides of the transfer (default to; of those in FOUND, all)");
  group.add_count("--rows", "N", options->rows, std::int64_t{1}, kMaxBytes,
                  "rows of a block (default: those that have a MiB)");
  OptionGroup comparison(command, "Comparison");
  comparison.add_file("--expect", options->expected, "the digests that are expected");
  comparison.add_file("--before", options->before,
                      "earlier weights, or earlier digests: what stale buffers hold");
  add_report_options(command, options->output);
}

}  // namespace reshard::tools
