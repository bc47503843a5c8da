// SPDX-License-Identifier: BSD-3-Clause
// The commands of `reshard`, each in the file that its line names. Each adds its options to the
// application and runs when it was chosen.
#pragma once

#include <string>

#include "core/plan/executor.h"
#include "tools/cli/options.h"

namespace reshard::tools {

inline constexpr const char* kVersion = "0.1.0";

void add_plan_command(CLI::App& app);       // command_plan.cpp
void add_simulate_command(CLI::App& app);   // command_plan.cpp
void add_replay_command(CLI::App& app);     // command_replay.cpp
void add_sweep_command(CLI::App& app);      // command_sweep.cpp
void add_validate_command(CLI::App& app);   // command_validate.cpp
void add_calibrate_command(CLI::App& app);  // command_calibrate.cpp
void add_topo_command(CLI::App& app);       // command_topo.cpp
void add_topo_list(CLI::App& topo);         // command_machines.cpp, below `topo`
void add_doctor_command(CLI::App& app);     // command_machines.cpp
void add_manual_commands(CLI::App& app);    // command_manual.cpp

// ---- what `validate` does, so that tests can put executors of their own under it: a plan on real
// ranks, its bytes compared with the request and the store, its times set beside the engine's
//
// The same on one process and on many (agreement.h): every process plans and proves by itself and
// must come to the same plan; then all run it; then the root reports.

struct ValidateOptions {
  RequestOptions request;
  MachineOptions machine;
  OutputOptions output;
  CarrierOptions carrier;
  std::string data_budget, measurements;
};

// Collective over the executor's processes. Prints the report and writes the files that the options
// name, at the root; throws CheckNotHeld (Stopped, where there are several processes) after the
// report where values are wrong.
void validate_on(Executor& executor, const BackendInfo& backend, const ValidateOptions& options);

}  // namespace reshard::tools
