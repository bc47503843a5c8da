// SPDX-License-Identifier: BSD-3-Clause
// `reshard manual` and `reshard completion bash`: what packages install beside the program.
#include <CLI/CLI.hpp>

#include "tools/commands.h"
#include "tools/manual.h"
#include "tools/output.h"

namespace reshard::tools {

void add_manual_commands(CLI::App& app) {
  CLI::App* manual = app.add_subcommand("manual", "print the manual page");
  manual->footer("Example:\n  reshard manual | man -l -");
  manual->callback([&app] { print(manual_page(app)); });

  CLI::App* completion = app.add_subcommand("completion", "print completion for a shell");
  completion->footer("Example:\n  source <(reshard completion bash)");
  completion->require_subcommand(1);
  CLI::App* bash = completion->add_subcommand("bash", "for bash");
  bash->footer("Example:\n  source <(reshard completion bash)");
  bash->callback([&app] { print(bash_completion(app)); });
}

}  // namespace reshard::tools
