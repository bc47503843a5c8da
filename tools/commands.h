// SPDX-License-Identifier: BSD-3-Clause
// The commands of `reshard`, one file each. Each adds its options to the application and runs when
// it was chosen.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace reshard::tools {

inline constexpr const char* kVersion = "0.1.0";

// A check that the user asked for did not hold though nothing went wrong: sentences for standard
// error before exit code 1. Thrown by commands, caught by main.
struct CheckNotHeld {
  std::vector<std::string> findings;
};

// Many processes stop together, or one of them ended all: nothing is left to be said.
struct Stopped {
  int exit_code;
  std::vector<std::string> said;  // by this process
};

void add_plan_command(CLI::App& app);
void add_simulate_command(CLI::App& app);
void add_replay_command(CLI::App& app);
void add_sweep_command(CLI::App& app);
void add_topo_command(CLI::App& app);
void add_validate_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_manual_commands(CLI::App& app);

}  // namespace reshard::tools
