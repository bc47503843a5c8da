// SPDX-License-Identifier: BSD-3-Clause
// The program `reshard`: the list of its commands, and the only place that exits. Exit codes: 0
// done, others in agreement.h.
#include <malloc.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "tools/cli/agreement.h"
#include "tools/cli/commands.h"
#include "tools/cli/help.h"
#include "tools/cli/output.h"

namespace {

[[noreturn]] void wrong_usage(int argc, char** argv, const std::string& what) {
  reshard::tools::fail_together(reshard::tools::backend_of(argc, argv),
                                std::make_exception_ptr(reshard::InputError(what)));
}

void add_commands(CLI::App& app) {
  app.formatter(std::make_shared<reshard::tools::HelpFormatter>(reshard::tools::screen_width()));
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", std::string("reshard ") + reshard::tools::kVersion);
  app.set_help_all_flag("--help-all", "print the help of all commands");
  reshard::tools::add_plan_command(app);
  reshard::tools::add_simulate_command(app);
  reshard::tools::add_replay_command(app);
  reshard::tools::add_sweep_command(app);
  reshard::tools::add_validate_command(app);
  reshard::tools::add_calibrate_command(app);
  reshard::tools::add_topo_command(app);
  reshard::tools::add_doctor_command(app);
  reshard::tools::add_manual_commands(app);
  app.footer(
      "Example:\n  reshard simulate --mesh 4x4 --shape 32,8192,4096 --from 'S(0)S(1)' --to "
      "'S(1)S(0)'\n\nreshard COMMAND --help tells more.");
}

// The command that the arguments came to, as far as they were understood.
const CLI::App& innermost(const CLI::App& app) {
  auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

// CLI11 says only that a command is missing, or lists all that it did not expect.
std::string text(const CLI::ParseError& error, const CLI::App& app) {
  const CLI::App& at = innermost(app);
  std::vector<std::string> left = app.remaining(true);
  std::string found = left.empty() ? "none" : reshard::quoted(left.front());
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
      at.get_require_subcommand_min() > 0 && at.get_subcommands().empty()) {
    std::vector<std::string> names;
    for (const CLI::App* command : at.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    return fmt::format("{}expected a command ({}), found {}",
                       &at == &app ? "" : at.get_name() + ": ", fmt::join(names, ", "), found);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    return fmt::format("{}: expected no argument {} (--help lists what there is)", at.get_name(),
                       found);
  std::string what = error.what();
  what = what.substr(0, what.find('\n'));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr &&
      what.find("At Most") != std::string::npos)
    return what.substr(0, what.find(':')) + ": expected once, found several times";
  return what;
}

int run(int argc, char** argv) {
  CLI::App app("Plans, proves, times and runs the redistribution of sharded tensors.", "reshard");
  add_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream help;
    app.exit(success, help, help);
    if (reshard::tools::launch_of(reshard::tools::backend_of(argc, argv)).rank == 0)
      reshard::tools::print(help.str());
  } catch (const CLI::ParseError& error) {
    wrong_usage(argc, argv, text(error, app));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // What a long trace frees it needs again: pages that go back to the system come back zeroed,
  // which took a tenth of a replay.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  std::signal(SIGPIPE,
              SIG_IGN);  // a reader that has gone ends the program quietly, where it writes
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error like a full disk
  try {
    return run(argc, argv);
  } catch (...) {
    reshard::tools::Failure failure = reshard::tools::failure_of(std::current_exception());
    reshard::tools::say(failure.reasons);
    return failure.exit_code;
  }
}
