// SPDX-License-Identifier: BSD-3-Clause
// `reshard check`: judges the copies of anybody's plan.
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/check/check_report.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {
namespace {

constexpr std::size_t kRowsShown = 20;

struct CheckOptions {
  std::string copies;
  OutputOptions output;
};

sim::CheckedCopies checked(const std::string& path) {
  Progress progress;
  auto show = [&](std::int64_t line) { progress.show("line", line, 0); };
  if (is_standard_input(path)) {
    require_standard_input();
    return sim::check_copies(std::cin, input_name(path), show);
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(fmt::format("{}: cannot open", input_name(path)));
  return sim::check_copies(in, input_name(path), show);
}

void run_check(const CheckOptions& options) {
  require_inputs({{options.copies, "FILE"}});
  sim::CheckReport report = sim::report_of(checked(options.copies));
  std::size_t rows = options.output.verbose ? std::numeric_limits<std::size_t>::max() : kRowsShown;
  print(options.output.json ? sim::check_json(report)
                            : sim::check_text(report, rows, screen_width()));
  if (!report.findings.empty())
    throw CheckNotHeld{{fmt::format("{}: {}", report.copies.file, sim::verdict(report))}};
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App& command = add_command(
      app, "check", "judge the copies of anybody's plan",
      "The file has JSON lines: a header, the tensors of the model, the buffers of both sides, "
      "then "
      "a line per copy (docs/check.md). The exit code is 1 if something is wrong.\n"
      "Example:\n  reshard check my.copies",
      [options] { run_check(*options); });
  add_argument(command, "FILE", options->copies, "layouts and copies; '-': standard input");
  add_report_options(command, options->output);
}

}  // namespace reshard::tools
