// SPDX-License-Identifier: BSD-3-Clause
// The program `reshard`: the list of its commands, and the only place that turns exceptions into exit codes.
//
//   0  done      1  a check that the user asked for did not hold      2  the input is wrong      3  a bug of reshard      4  a library or system call failed
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <new>
#include <sstream>
#include <string>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "tools/commands.h"
#include "tools/output.h"

namespace {

int fail(int code, const std::string& what) {
  std::fprintf(stderr, "reshard: error: %s\n", what.c_str());
  return code;
}

void add_commands(CLI::App& app) {
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", std::string("reshard ") + reshard::tools::kVersion);
  app.set_help_all_flag("--help-all", "print the help of all commands");
  reshard::tools::add_plan_command(app);
  reshard::tools::add_simulate_command(app);
  reshard::tools::add_replay_command(app);
  reshard::tools::add_sweep_command(app);
  reshard::tools::add_topo_command(app);
  reshard::tools::add_doctor_command(app);
  app.footer("Example:\n  reshard simulate --mesh 4x4 --shape 32,8192,4096 --from 'S(0)S(1)' --to 'S(1)S(0)'\n\nreshard COMMAND --help tells more.");
}

int run(int argc, char** argv) {
  CLI::App app("Plans, proves, times and runs the redistribution of sharded tensors.", "reshard");
  add_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream text;
    app.exit(success, text, text);
    reshard::tools::print(text.str());
    return 0;
  } catch (const CLI::ParseError& error) {
    // CLI11 says only that a command is missing.
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && app.get_subcommands().empty())
      return fail(2, "expected a command (plan, simulate, replay, sweep, topo or doctor), found " + (argc > 1 ? reshard::quoted(argv[1]) : "none"));
    std::string what = error.what();
    return fail(2, what.substr(0, what.find('\n')));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone ends the program quietly, where it writes
  try {
    return run(argc, argv);
  } catch (const reshard::tools::CheckNotHeld& check) {
    for (const std::string& finding : check.findings) fail(1, finding);
    return 1;
  } catch (const reshard::InputError& error) {
    return fail(2, error.what());
  } catch (const reshard::CheckFailure& error) {
    return fail(3, std::string("internal check failed, please report: ") + error.what());
  } catch (const reshard::BackendError& error) {
    return fail(4, error.what());
  } catch (const std::bad_alloc&) {
    return fail(4, "out of memory");
  } catch (const std::exception& error) {
    return fail(3, std::string("unexpected: ") + error.what());
  }
}
