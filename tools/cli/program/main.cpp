// SPDX-License-Identifier: BSD-3-Clause
// The program `reshard`: the list of its commands, and the only place that exits. Exit code 0 means
// done; failure.h lists the others.
#include <malloc.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tools/cli/application.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_files.h"
#include "tools/cli/validate/agreement.h"

namespace reshard::tools {
namespace {

[[noreturn]] void wrong_usage(int argc, char** argv, const std::string& what) {
  fail_together(backend_of(argc, argv), std::make_exception_ptr(InputError(what)));
}

constexpr CommandRow kCommands[] = {
    {"plan", add_plan_command},         {"simulate", add_simulate_command},
    {"replay", add_replay_command},     {"sweep", add_sweep_command},
    {"validate", add_validate_command}, {"calibrate", add_calibrate_command},
    {"topo", add_topo_command},         {"check", add_check_command},
    {"digest", add_digest_command},     {"layout", add_layout_command},
    {"where", add_where_command},       {"kv", add_kv_command},
    {"compare", add_compare_command},   {"model", add_model_command},
    {"ops", add_ops_command},           {"doctor", add_doctor_command},
    {"", add_manual_commands}};

int run(int argc, char** argv) {
  CLI::App app(kPurpose, "reshard");
  add_commands(app, kCommands, std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream help;
    app.exit(success, help, help);
    if (launch_of(backend_of(argc, argv)).rank == 0) print(help.str());
  } catch (const CLI::ParseError& error) {
    wrong_usage(argc, argv, text(error, app));
  }
  return 0;
}

}  // namespace
}  // namespace reshard::tools

int main(int argc, char** argv) {
  // Keeps freed memory in the process: a long trace needs it again, and pages that were returned to
  // the system come back zeroed, which took a tenth of a replay.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  std::signal(SIGPIPE,
              SIG_IGN);  // if the reader is gone, the program ends quietly at its next write
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit is an error, like a full disk
  reshard::tools::clean_up_on_signals();
  try {
    return reshard::tools::run(argc, argv);
  } catch (...) {
    reshard::tools::Failure failure = reshard::tools::failure_of(std::current_exception());
    reshard::tools::say(failure.reasons);
    return failure.exit_code;
  }
}
