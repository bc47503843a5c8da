// SPDX-License-Identifier: BSD-3-Clause
#include "tools/options.h"

#include <CLI/CLI.hpp>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/layout/request_text.h"

namespace reshard::tools {

std::string planner_names() {
  std::string out;
  for (const PlannerRow& row : planners()) out += (out.empty() ? "" : "|") + std::string(row.name);
  return out;
}

void add_request_options(CLI::App& command, RequestOptions& options) {
  const char* group = "Request";
  command
      .add_option("--mesh", options.mesh,
                  "ranks of the source as an array: 4x4, dp=4,tp=4 or [[0,1],[2,3]]")
      ->type_name("MESH")
      ->group(group);
  command
      .add_option("--ranks", options.ranks,
                  "global ranks of the mesh, row-major: 0-7 or 0-3,8-11 (default 0..n-1)")
      ->type_name("RANKS")
      ->group(group);
  command
      .add_option("--to-mesh", options.to_mesh, "ranks of the destination (default: the source's)")
      ->type_name("MESH")
      ->group(group);
  command.add_option("--to-ranks", options.to_ranks, "global ranks of the destination mesh")
      ->type_name("RANKS")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--shape",
          [&options](const std::string& text) {
            options.shape = text;
            options.shape_given = true;
          },
          "global shape: 32,8192,4096 ('' is a scalar)")
      ->type_name("SHAPE")
      ->group(group);
  command
      .add_option("--dtype", options.dtype,
                  "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 bool c64 (default f32)")
      ->type_name("DTYPE")
      ->group(group);
  command
      .add_option("--from", options.from,
                  "placements of the source, one per mesh axis: 'S(0)R', 'Shard(0),Partial(sum)'")
      ->type_name("PLACEMENTS")
      ->group(group);
  command.add_option("--to", options.to, "placements of the destination")
      ->type_name("PLACEMENTS")
      ->group(group);
  command
      .add_option("--plan", options.plan_file,
                  "read a plan (from `reshard plan --emit plan`) in place of a request")
      ->type_name("FILE")
      ->group(group);
}

std::string check_file_name(const std::string& name) {
  return name.empty() ? "expected a file name, found ''" : "";
}

void add_machine_options(CLI::App& command, MachineOptions& options) {
  const char* group = "Machine and planner";
  command
      .add_option(
          "--topology", options.topology,
          "preset, preset:count or file (default: dgx-h100 with as many nodes as the ranks need)")
      ->type_name("TOPOLOGY")
      ->group(group);
  command.add_option("--planner", options.planner, planner_names() + " (default auto)")
      ->type_name("NAME")
      ->group(group);
  command
      .add_option("--memory-limit", options.memory_limit,
                  "most bytes that a rank may hold at once, such as 8GiB")
      ->type_name("BYTES")
      ->group(group);
  command
      .add_option("--plan-cache", options.cache_size,
                  "plans kept for equal requests (default 1024)")
      ->type_name("COUNT")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000}))
      ->group(group);
}

void add_json_option(CLI::App& command, OutputOptions& options) {
  command.add_flag("--json", options.json, "print JSON (tools/json-schemas.md) instead of tables")
      ->group("Output");
  command.add_flag("-v,--verbose", options.verbose, "print more")->group("Output");
}

void add_perfetto_option(CLI::App& command, OutputOptions& options) {
  command
      .add_option("--perfetto", options.perfetto,
                  "write the timeline for ui.perfetto.dev ('-': to standard output, in place of "
                  "the report)")
      ->type_name("FILE")
      ->check(check_file_name)
      ->group("Output");
}

void add_data_budget_option(CLI::App& command, std::string& budget) {
  command
      .add_option("--data-budget", budget,
                  "bytes of all ranks that may be moved at full size; more is moved at a reduced "
                  "shape (default 2GiB)")
      ->type_name("BYTES")
      ->group("Data");
}

namespace {

void require(bool given, const char* option) {
  if (!given) throw InputError(std::string(option) + ": required, or give --plan FILE");
}

}  // namespace

Request request_of(const RequestOptions& options) {
  require(!options.mesh.empty(), "--mesh");
  require(options.shape_given, "--shape");
  require(!options.from.empty(), "--from");
  require(!options.to.empty(), "--to");
  return parse_request({options.mesh, options.ranks, options.to_mesh, options.to_ranks,
                        options.shape, options.dtype, options.from, options.to},
                       "--");
}

std::optional<std::int64_t> memory_limit_of(const MachineOptions& options) {
  if (options.memory_limit.empty()) return std::nullopt;
  return parse_bytes(options.memory_limit, "--memory-limit");
}

}  // namespace reshard::tools
