// SPDX-License-Identifier: BSD-3-Clause
// The command line, for the program and for the library: what all its uses share, and a function
// that runs one command and returns what it prints.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace reshard::tools {

struct CommandRow {
  std::string_view name;  // empty: of several commands, which need all others
  void (*add)(CLI::App&);
};
// Adds the help, the version and the commands. If the arguments begin with the name of a command
// only that is added, as declaring the options of all takes longer than most plans.
void add_commands(CLI::App& app, std::span<const CommandRow> rows,
                  std::span<const std::string> arguments);

// Says in one sentence what is wrong with the arguments.
std::string text(const CLI::ParseError& error, const CLI::App& app);

struct CommandOutput {
  std::string text;
  std::vector<std::string> findings;  // of checks that were asked for and did not hold
};

// Runs one command with the arguments that follow the program's name, and returns what it prints:
// `plan`, `simulate`, `replay`, `sweep`, `calibrate`, `topo`, `compare` or `ops`. Throws InputError
// for wrong usage, and whatever the command throws. Shows no progress.
CommandOutput output_of(std::vector<std::string> arguments);

}  // namespace reshard::tools
