// SPDX-License-Identifier: BSD-3-Clause
// `reshard topo list|show`: the machines that are known by name, and what one of them, or a file,
// holds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "core/base/errors.h"
#include "sim/machines/presets.h"
#include "sim/report/writers.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"

namespace reshard::tools {

namespace {

struct TopoOptions {
  OutputOptions output;
  std::string name;
  std::string emit = "report";
};

void run_list(const TopoOptions& options) {
  std::vector<sim::TopologySummary> rows;
  for (const sim::PresetInfo& preset : sim::presets())
    rows.push_back({preset.name, preset.summary});
  print(options.output.json ? sim::topology_list_json(rows) : sim::topology_list_table(rows));
}

void run_show(const TopoOptions& options) {
  if (options.emit == "topology") {
    print(to_text(sim::find_description(options.name).description));
    return;
  }
  Topology topology = sim::find_topology(options.name);
  print(options.output.json ? sim::topology_json(topology) : sim::topology_table(topology));
}

}  // namespace

void add_topo_command(CLI::App& app) {
  auto options = std::make_shared<TopoOptions>();
  CLI::App* command = app.add_subcommand("topo", "list and show machines");
  command->require_subcommand(1);
  CLI::App* list = command->add_subcommand("list", "the machines that are known by name");
  add_json_option(*list, options->output);
  list->footer("Example:\n  reshard topo list");
  list->callback([options] { run_list(*options); });

  CLI::App* show = command->add_subcommand("show", "devices, links and routes of a machine");
  show->add_option("TOPOLOGY", options->name, "preset, preset:count or file")->required();
  show->add_option("--emit", options->emit,
                   "report, or topology: a file to start an own machine from")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"report", "topology"}))
      ->group("Output");
  add_json_option(*show, options->output);
  show->footer(
      "Example:\n  reshard topo show dgx-h100:2\n  reshard topo show pcie-8x3090 --emit topology > "
      "mine.topo");
  show->callback([options] { run_show(*options); });
  command->footer("Example:\n  reshard topo show dgx-h100:2");
}

}  // namespace reshard::tools
