// SPDX-License-Identifier: BSD-3-Clause
// The commands of `reshard`, each in the file named on its line. Each function adds a command and
// its options to the application; the command runs if it is chosen.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace reshard::tools {

inline constexpr const char* kVersion = "0.1.0";
inline constexpr const char* kPurpose =
    "Plans, proves, times and runs the redistribution of sharded tensors.";

void add_plan_command(CLI::App& app);       // command_plan.cpp
void add_simulate_command(CLI::App& app);   // command_plan.cpp
void add_kv_command(CLI::App& app);         // command_kv.cpp
void add_replay_command(CLI::App& app);     // command_replay.cpp
void add_sweep_command(CLI::App& app);      // command_sweep.cpp
void add_validate_command(CLI::App& app);   // command_validate.cpp
void add_calibrate_command(CLI::App& app);  // command_calibrate.cpp
void add_topo_command(CLI::App& app);       // command_topo.cpp
void add_compare_command(CLI::App& app);    // command_compare.cpp
void add_check_command(CLI::App& app);      // command_check.cpp
void add_digest_command(CLI::App& app);     // command_digest.cpp
void add_layout_command(CLI::App& app);     // command_layout.cpp
void add_where_command(CLI::App& app);      // command_layout.cpp
void add_model_command(CLI::App& app);      // command_model.cpp
void add_ops_command(CLI::App& app);        // command_ops.cpp
void add_doctor_command(CLI::App& app);     // command_doctor.cpp
void add_manual_commands(CLI::App& app);    // command_manual.cpp

// The machines that are known by name.
std::string presets_table();
nlohmann::ordered_json presets_json();

}  // namespace reshard::tools
