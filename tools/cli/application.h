// SPDX-License-Identifier: BSD-3-Clause
// The command line, for the program and for the library: what all its uses share, and a function
// that runs one command and returns what it prints.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace reshard::tools {

// Adds what precedes the commands: the help, the version, and that a command is required.
void begin(CLI::App& app);
// Adds what follows the commands: the footer of the help.
void end(CLI::App& app);

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
