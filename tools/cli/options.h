// SPDX-License-Identifier: BSD-3-Clause
// Options that several commands share: the request, the machine, the output. Their values are kept
// as the user's text and read by the parsers of core, so that each error message is written in one
// place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/layout/request.h"
#include "core/planners/planner.h"
#include "tools/cli/command_line.h"

namespace reshard::tools {

struct RequestOptions {
  std::string mesh, to_mesh, ranks, to_ranks, shape, dtype, from, to;  // dtype: empty means f32
  std::string debug_line;               // --debug-line: replaces the last four
  std::string requests_file;            // --requests: replaces all of the above
  std::vector<std::string> plan_files;  // --plan: replaces all of the above
  bool shape_given = false;
};

struct MachineOptions {
  std::string topology, planner, memory_limit, extra_memory;  // planner: empty means auto
  std::string transport, nccl_version;                        // empty: the topology's own
  std::int64_t cache_size = -1;                               // below 0: not given, so 1024
  bool cold = false, free_source = false;
};

struct DataOptions {
  std::string how = "full", budget;
};

struct OutputOptions {
  bool json = false, verbose = false;
  std::string perfetto, html;
};

// Single options of MachineOptions, for commands that have only some of them.
inline constexpr const char* kMachineHeading = "Machine and planner";
void add_topology_option(const OptionGroup& group, MachineOptions& options);
void add_transport_options(const OptionGroup& group, MachineOptions& options);
void add_memory_options(const OptionGroup& group, MachineOptions& options);
void add_cold_option(const OptionGroup& group, MachineOptions& options);

void add_request_options(CLI::App& command, RequestOptions& options);
void add_machine_options(CLI::App& command, MachineOptions& options);
void add_data_options(CLI::App& command, DataOptions& options, const std::string& how);
void add_json_option(CLI::App& command, OutputOptions& options);
void add_report_options(CLI::App& command, OutputOptions& options);  // --json and -v
void add_perfetto_option(CLI::App& command, OutputOptions& options);
void add_html_option(CLI::App& command, OutputOptions& options);
void add_junit_option(CLI::App& command, std::string& file);

// The request that the options describe. Throws InputError naming the option that is wrong or
// missing.
Request request_of(const RequestOptions& options);
MemoryLimits memory_limits_of(const MachineOptions& options);

// Throws InputError if both options are given, as the first would then be ignored.
void refuse_both(bool given, std::string_view option, std::string_view other);

// The same for the options of a report that is replaced by `file` on standard output.
void refuse_unprinted(const OutputOptions& options, const std::string& file,
                      std::string_view file_option);

const PlannerRow& planner_of(const MachineOptions& options);
// All names, separated by bars.
std::string planner_names();

}  // namespace reshard::tools
