// SPDX-License-Identifier: BSD-3-Clause
// Options that several commands share. They are kept as the text that the user wrote; the parsers
// of core read them, so that every message comes from one place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/layout/request.h"
#include "core/planners/planner.h"

namespace CLI {
class App;
}

namespace reshard::tools {

struct RequestOptions {
  std::string mesh, to_mesh, ranks, to_ranks, shape, dtype, from, to;  // dtype: empty is f32
  std::string plan_file;  // --plan: takes the place of all of the above
  bool shape_given = false;
};

struct MachineOptions {
  std::string topology, planner = "auto", memory_limit;
  std::int64_t cache_size = 1024;
};

struct OutputOptions {
  bool json = false, verbose = false;
  std::string perfetto;
};

void add_request_options(CLI::App& command, RequestOptions& options);
// A check for options that name an output: what is wrong with an empty name, else "".
std::string check_file_name(const std::string& name);
void add_machine_options(CLI::App& command, MachineOptions& options);
void add_json_option(CLI::App& command, OutputOptions& options);
void add_perfetto_option(CLI::App& command, OutputOptions& options);
void add_data_budget_option(CLI::App& command, std::string& budget);

// The request that the options describe. Throws InputError naming the option at fault; a missing
// one too.
Request request_of(const RequestOptions& options);
std::optional<std::int64_t> memory_limit_of(const MachineOptions& options);

// One sentence per planner for help texts.
std::string planner_names();

}  // namespace reshard::tools
