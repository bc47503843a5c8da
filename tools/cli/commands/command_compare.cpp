// SPDX-License-Identifier: BSD-3-Clause
// `reshard compare`: compares two reports and prints what differs.
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "sim/page/junit.h"
#include "sim/page/pages.h"
#include "sim/report/comparison.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_files.h"

namespace reshard::tools {
namespace {

constexpr std::size_t kMaxReportBytes = std::size_t{1} << 30;
constexpr std::size_t kFiguresShown = 8;

struct CompareOptions {
  std::string a, b, fail_on, junit;
  OutputOptions output;
};

std::string report_text(const std::string& path) {
  std::string text = read_input(path, kMaxReportBytes);
  const FileKind* kind = file_kind(text);
  if (kind == nullptr || (kind->id != "report" && kind->id != "json"))
    throw InputError(fmt::format("{}: expected a report printed by reshard with --json, found {}",
                                 input_name(path), file_look(text)));
  return text;
}

void run_compare(const CompareOptions& options) {
  if (options.a == "-" && options.b == "-")
    throw InputError("compare: expected one report on standard input, found '-' twice");
  if (!options.junit.empty() && options.fail_on.empty())
    throw InputError("--junit: expected --fail-on, whose limits are its tests");
  require_files({{options.output.html, "--html"}, {options.junit, "--junit"}},
                {{options.a, "compare"}, {options.b, "compare"}});
  refuse_unprinted(options.output, options.output.html, "--html -");
  refuse_unprinted(options.output, options.junit, "--junit -");
  std::vector<sim::FigureLimit> limits;
  if (!options.fail_on.empty()) limits = sim::parse_limits(options.fail_on, "--fail-on");
  std::string a = report_text(options.a), b = report_text(options.b);
  sim::Comparison comparison =
      sim::compare_reports(a, input_name(options.a), b, input_name(options.b));
  std::vector<sim::CheckedLimit> checked = sim::checked_limits(comparison, limits, "--fail-on");
  OutputFiles written;
  if (!options.output.html.empty())
    written.write(options.output.html, "--html",
                  [&](std::ostream& out) { out << sim::compare_page(comparison); });
  if (!options.junit.empty())
    written.write(options.junit, "--junit", [&](std::ostream& out) {
      out << sim::junit_xml("reshard compare", sim::junit_cases(checked));
    });
  std::size_t rows =
      options.output.verbose ? std::numeric_limits<std::size_t>::max() : kFiguresShown;
  if (options.output.html != "-" && options.junit != "-")
    print(options.output.json ? sim::comparison_json(comparison)
                              : sim::comparison_table(comparison, rows, screen_width()));
  written.commit();
  std::vector<std::string> passed;
  for (sim::CheckedLimit& limit : checked)
    if (limit.is_passed) passed.push_back(std::move(limit.found));
  if (!passed.empty()) throw CheckNotHeld{std::move(passed)};
}

}  // namespace

void add_compare_command(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App& command = add_command(
      app, "compare", "compare two reports and list the differences",
      "Example:\n  reshard simulate --mesh 4x4 --shape 4096,4096 --from 'S(0)R' --to 'RS(1)' "
      "--planner p2p --json > a.json\n"
      "  reshard simulate --mesh 4x4 --shape 4096,4096 --from 'S(0)R' --to 'RS(1)' --planner "
      "packed --json > b.json\n"
      "  reshard compare a.json b.json --html compare.html",
      [options] { run_compare(*options); });
  add_argument(command, "A", options->a, "a report printed with --json; '-': standard input");
  add_argument(command, "B", options->b, "another report of the same command");
  OptionGroup(command, "Check")
      .add("--fail-on", "LIMITS", options->fail_on,
           "end with 1 if a figure of B is above that of A by more: 'time>5%,bytes>0,peak>1%'");
  add_report_options(command, options->output);
  add_junit_option(command, options->junit);
  add_html_option(command, options->output);
}

}  // namespace reshard::tools
