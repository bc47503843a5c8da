// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/options.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/layout/request.h"
#include "core/torch/debug_line.h"
#include "sim/transport/nccl/nccl_constants.h"

namespace reshard::tools {

namespace {

void require(bool given, const char* option) {
  if (!given)
    throw InputError(std::string(option) + ": required, or give --requests FILE or --plan FILE");
}

}  // namespace

void refuse_both(bool given, std::string_view option, std::string_view other) {
  if (given)
    throw InputError(fmt::format("{}: expected only without {}, found both", option, other));
}

void refuse_unprinted(const OutputOptions& options, const std::string& file,
                      std::string_view file_option) {
  if (file != "-") return;
  refuse_both(options.json, "--json", file_option);
  refuse_both(options.verbose, "--verbose", file_option);
}

const PlannerRow& planner_of(const MachineOptions& options) {
  return find_planner(options.planner.empty() ? "auto" : options.planner, "--planner");
}

std::string planner_names() {
  std::string out;
  for (const PlannerRow& row : planners()) out += (out.empty() ? "" : "|") + std::string(row.name);
  return out;
}

void add_request_options(CLI::App& command, RequestOptions& options) {
  OptionGroup group(command, "Request");
  group.add("--mesh", "MESH", options.mesh,
            "ranks of the source as an array: 4x4, dp=4,tp=4 or [[0,1],[2,3]]");
  group.add("--ranks", "RANKS", options.ranks,
            "global ranks of the mesh, row-major: 0-7 or 0-3,8-11 (default 0..n-1)");
  group.add("--to-mesh", "MESH", options.to_mesh,
            "ranks of the destination (default: the source's)");
  group.add("--to-ranks", "RANKS", options.to_ranks, "global ranks of the destination mesh");
  group.add_maybe_empty("--shape", "SHAPE", options.shape,
                        "global shape: 32,8192,4096 ('' is a scalar)", &options.shape_given);
  group.add("--dtype", "DTYPE", options.dtype,
            "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 bool c64 (default f32)");
  group.add("--from", "PLACEMENTS", options.from,
            "placements of the source, one per mesh axis: 'S(0)R', 'Shard(0),Partial(sum)'; or the "
            "boxes of ranks: 'boxes(0: [0:4,:]; 1: [4:8,:])'");
  group.add("--to", "PLACEMENTS", options.to, "placements of the destination");
  group.add("--debug-line", "LINE", options.debug_line,
            "a redistribute_input line of PyTorch's DebugMode, for shape, dtype, from and to");
  group.add("--requests", "FILE", options.requests_file,
            "the tensors of a job, planned and moved together: JSON lines, each the fields of a "
            "trace's redistribute line; or layouts (docs/check.md) ('-': standard input)");
  group.add("--plan", "FILE", options.plan_files,
            "read a plan (from `reshard plan --emit plan`; '-': standard input) in place of a "
            "request; may be repeated, for one plan of all the tensors");
}

void add_topology_option(const OptionGroup& group, MachineOptions& options) {
  group.add(
      "--topology", "TOPOLOGY", options.topology,
      "preset, preset:count or file (default: dgx-h100 with as many nodes as the ranks need)");
}

void add_transport_options(const OptionGroup& group, MachineOptions& options) {
  group.add_choice("--transport", "NAME", options.transport,
                   {kTransportNames.begin(), kTransportNames.end()},
                   "how steps are carried: by links alone, or by NCCL or copy engines with their "
                   "costs (default: as the topology states; presets: nccl)");
  group.add("--nccl-version", "VERSION", options.nccl_version,
            "version whose choices the nccl transport makes: " + sim::nccl::known_versions() +
                " (default the newest)");
}

void add_cold_option(const OptionGroup& group, MachineOptions& options) {
  group.add_flag(
      "--cold", options.cold,
      "include first use: creating communicators and connecting peers (docs/communicators.md)");
}

void add_memory_options(const OptionGroup& group, MachineOptions& options) {
  group.add("--memory-limit", "BYTES", options.memory_limit,
            "the most bytes that a rank may hold at once, such as 8GiB");
  group.add("--extra-memory", "BYTES", options.extra_memory,
            "the most bytes that a rank may hold beyond source and destination, such as 2GiB");
  group.add_flag("--free-source", options.free_source,
                 "count a source only until it is sent: the executor may free it then");
}

void add_machine_options(CLI::App& command, MachineOptions& options) {
  OptionGroup group(command, kMachineHeading);
  add_topology_option(group, options);
  group.add("--planner", "NAME", options.planner, planner_names() + " (default auto)");
  add_transport_options(group, options);
  add_memory_options(group, options);
  group.add_count("--plan-cache", "COUNT", options.cache_size, std::int64_t{0},
                  std::int64_t{1'000'000}, "plans kept for equal requests (default 1024)");
}

void add_data_options(CLI::App& command, DataOptions& options, const std::string& how) {
  OptionGroup group(command, "Data");
  group.add_choice("--data", "HOW", options.how, {"full", "proof"}, how);
  group.add("--data-budget", "BYTES", options.budget,
            "bytes of all ranks up to which data is moved at full size; above, at a reduced shape "
            "(default 2GiB)");
}

void add_json_option(CLI::App& command, OutputOptions& options) {
  OptionGroup(command, "Output")
      .add_flag("--json", options.json, "print JSON (tools/json-schemas.md) instead of tables");
}

void add_report_options(CLI::App& command, OutputOptions& options) {
  add_json_option(command, options);
  OptionGroup(command, "Output").add_flag("-v,--verbose", options.verbose, "print more");
}

void add_perfetto_option(CLI::App& command, OutputOptions& options) {
  OptionGroup(command, "Output")
      .add_file("--perfetto", options.perfetto,
                "write the timeline for ui.perfetto.dev ('-': to standard output, in place of the "
                "report)");
}

void add_html_option(CLI::App& command, OutputOptions& options) {
  OptionGroup(command, "Output")
      .add_file("--html", options.html,
                "write the report as one self-contained page ('-': to standard output, in place of "
                "the report)");
}

void add_junit_option(CLI::App& command, std::string& file) {
  OptionGroup(command, "Output")
      .add_file("--junit", file,
                "write the result as tests in JUnit's XML, which CI systems show ('-': to standard "
                "output, in place of the report)");
}

// Whether the shape in the line is that of the tensor, or of some rank's shard.
bool fits(const Layout& layout, const DebugLine& line) {
  if (!line.shape) return true;
  if (!line.of_one_rank) return layout.shape() == *line.shape;
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    if (layout.local_shape(position) == *line.shape) return true;
  return false;
}

// The line may lack the shape, if it names an argument by its place, and it cannot give the true
// shape of a tensor if its shards differ in size; --shape may add it.
Request request_of_debug_line(const RequestOptions& options) {
  constexpr const char* kOption = "--debug-line";
  for (const auto& [given, name] : {std::pair{!options.to_mesh.empty(), "--to-mesh"},
                                    {!options.to_ranks.empty(), "--to-ranks"},
                                    {!options.from.empty(), "--from"},
                                    {!options.to.empty(), "--to"},
                                    {!options.dtype.empty(), "--dtype"}})
    refuse_both(given, name, kOption);
  DebugLine line = parse_debug_line(options.debug_line, kOption);
  auto mesh = std::make_shared<const Mesh>(parse_mesh(options.mesh, options.ranks, "--mesh"));
  std::string shape = options.shape, dtype = line.dtype.empty() ? "f32" : line.dtype;
  if (!options.shape_given) {
    if (!line.shape) throw InputError("--shape: required if --debug-line has none");
    shape = text(global_shape(line, *mesh, kOption));
  }
  parse_dtype(dtype, kOption);
  Layout from = parse_layout(shape, dtype, mesh, line.from, kOption);
  if (!fits(from, line))
    throw InputError(fmt::format(
        "--shape: expected a tensor of which a rank holds [{}], as in --debug-line, found [{}]",
        text(*line.shape), text(from.shape())));
  return Request(std::move(from), parse_layout(shape, dtype, mesh, line.to, kOption));
}

Request request_of(const RequestOptions& options) {
  require(!options.mesh.empty(), "--mesh");
  if (!options.debug_line.empty()) return request_of_debug_line(options);
  require(options.shape_given, "--shape");
  require(!options.from.empty(), "--from");
  require(!options.to.empty(), "--to");
  return parse_request({options.mesh, options.ranks, options.to_mesh, options.to_ranks,
                        options.shape, options.dtype, options.from, options.to},
                       "--");
}

MemoryLimits memory_limits_of(const MachineOptions& options) {
  MemoryLimits out;
  if (!options.memory_limit.empty())
    out.limit_bytes = parse_bytes(options.memory_limit, "--memory-limit");
  if (!options.extra_memory.empty())
    out.extra_bytes = parse_bytes(options.extra_memory, "--extra-memory");
  out.free_sources = options.free_source;
  return out;
}

}  // namespace reshard::tools
