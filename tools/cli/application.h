// SPDX-License-Identifier: BSD-3-Clause
// The command line as a program and as a library have it.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace reshard::tools {

// What comes before the commands: help, version, that one is required.
void begin(CLI::App& app);
// What comes behind them.
void end(CLI::App& app);

// What is wrong with the arguments, in one sentence.
std::string text(const CLI::ParseError& error, const CLI::App& app);

struct CommandOutput {
  std::string text;
  std::vector<std::string> findings;  // where a check that was asked for did not hold
};

// Runs `plan`, `simulate`, `replay`, `sweep`, `calibrate` or `topo` with the arguments behind the
// program's name, and returns what it prints. Throws InputError for wrong usage, and what commands
// throw. Nothing is said of progress.
CommandOutput output_of(std::vector<std::string> arguments);

}  // namespace reshard::tools
