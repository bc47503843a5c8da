// SPDX-License-Identifier: BSD-3-Clause
// `reshard topo`: machines by name and from files. `list` lists the names, `show` describes one,
// `convert` writes it in another format, and `check` looks for implausible figures.
#include <algorithm>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/machine_files/formats.h"
#include "sim/machine_files/writers/writers.h"
#include "sim/machines/plausible.h"
#include "sim/machines/presets.h"
#include "sim/picture/drawing.h"
#include "sim/picture/pictures.h"
#include "sim/report/json.h"
#include "sim/report/table.h"
#include "sim/report/writers/topology_writer.h"
#include "sim/transport/nccl/nccl_graph.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_files.h"

namespace reshard::tools {

std::string presets_table() {
  sim::Table table({"topology", "summary"});
  for (const sim::PresetInfo& preset : sim::presets()) table.add_row({preset.name, preset.summary});
  return table.text(screen_width());
}

nlohmann::ordered_json presets_json() {
  return sim::list_json(sim::presets(), [](const sim::PresetInfo& preset) -> sim::Json {
    return {{"name", preset.name}, {"summary", preset.summary}};
  });
}

namespace {

struct TopoOptions {
  OutputOptions output;
  std::string name, output_file = "-";
  std::string emit = "report", to = "text", svg;
};

// Assumptions, which the file did not state, go above its contents.
std::string text_of(const TopologyDescription& description) {
  std::string text = to_text(description), assumed;
  for (const std::string& line : description.assumed) assumed += "# assumed: " + line + "\n";
  return text.insert(text.find('\n') + 1, assumed);
}

void run_show(const TopoOptions& options) {
  refuse_both(options.output.json && options.emit != "report", "--json", "--emit topology");
  refuse_both(!options.svg.empty() && options.emit != "report", "--svg", "--emit topology");
  require_files({{options.svg, "--svg"}}, {{sim::file_of(options.name), "TOPOLOGY"}});
  if (options.emit == "topology") {
    print(text_of(sim::find_description(options.name).description));
    return;
  }
  refuse_unprinted(options.output, options.svg, "--svg -");
  Topology topology = sim::find_topology(options.name);
  OutputFiles written;
  if (!options.svg.empty())
    written.write(options.svg, "--svg", [&](std::ostream& out) {
      sim::write_picture(out, [&](sim::Node parent) { sim::draw_topology(parent, topology); });
    });
  if (options.svg != "-")
    print(options.output.json ? sim::topology_json(topology)
                              : sim::topology_table(topology, screen_width()));
  written.commit();
}

// The formats of `convert`, one row each.
struct FormRow {
  const char* name;
  std::string (*write)(const TopologyDescription& description, const Topology& topology);
};
constexpr FormRow kForms[] = {
    {"text",
     [](const TopologyDescription& description, const Topology&) { return text_of(description); }},
    {"nccl-xml",
     [](const TopologyDescription& description, const Topology& topology) {
       return sim::to_nccl_xml(description, sim::nccl::gpus_of(topology).compute_capability);
     }},
    {"dot", [](const TopologyDescription& description,
               const Topology&) { return sim::to_dot(description); }},
};

std::vector<std::string> form_names() {
  std::vector<std::string> names;
  for (const FormRow& row : kForms) names.emplace_back(row.name);
  return names;
}

void run_convert(const TopoOptions& options) {
  require_files({{options.output_file, "--output"}}, {{sim::file_of(options.name), "IN"}});
  sim::NamedTopology named = sim::find_description(options.name);
  Topology topology = build_topology(named.description, named.count);
  TopologyDescription& description = named.description;
  if (named.count && description.counts == TopologyDescription::Counts::Nodes)
    description.nodes = static_cast<std::int32_t>(*named.count);
  else if (named.count)
    description.devices = static_cast<std::int32_t>(*named.count);
  const FormRow& form =
      *std::ranges::find_if(kForms, [&](const FormRow& row) { return options.to == row.name; });
  std::string text = form.write(description, topology);
  OutputFiles written;
  written.write(options.output_file, "--output", [&](std::ostream& out) { out << text; });
  written.commit();
}

void run_check(const TopoOptions& options) {
  require_files({}, {{sim::file_of(options.name), "TOPOLOGY"}});
  sim::NamedTopology named = sim::find_description(options.name);
  std::string name = build_topology(named.description, named.count).name(),
              file = sim::file_of(options.name);
  std::vector<std::string> doubts = std::move(named.doubts);
  for (std::string& doubt : sim::doubts_about(named.description, file.empty() ? name : file))
    doubts.push_back(std::move(doubt));
  if (options.output.json)
    print(sim::written({{"schema", "reshard.topology_check/1"},
                        {"topology", name},
                        {"plausible", doubts.empty()},
                        {"doubts", doubts},
                        {"assumed", named.description.assumed}}));
  else
    print(doubts.empty() ? name + ": nothing implausible\n"
                         : fmt::format("{}\n", fmt::join(doubts, "\n")));
  if (!doubts.empty())
    throw CheckNotHeld{{fmt::format(
        "{}: {}", name, counted(static_cast<std::int64_t>(doubts.size()), "implausible value"))}};
}

void add_name(CLI::App& command, const char* name, TopoOptions& options) {
  add_argument(command, name, options.name,
               "preset, preset:count, or a file: " + sim::topology_formats());
}

void run_list(const OutputOptions& options) {
  print(options.json
            ? sim::written({{"schema", "reshard.topologies/1"}, {"topologies", presets_json()}})
            : presets_table());
}

void add_list(CLI::App& topo) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App& list = add_command(topo, "list", "list the built-in machines",
                               "Example:\n  reshard topo list", [options] { run_list(*options); });
  add_json_option(list, *options);
}

void add_show(CLI::App& topo) {
  auto options = std::make_shared<TopoOptions>();
  CLI::App& show = add_command(
      topo, "show", "show the devices, links and routes of a machine",
      "Example:\n  reshard topo show dgx-h100:2\n  reshard topo show pcie-8x3090 --emit topology > "
      "mine.topo",
      [options] { run_show(*options); });
  add_name(show, "TOPOLOGY", *options);
  OptionGroup group(show, "Output");
  group.add_choice("--emit", "WHAT", options->emit, {"report", "topology"},
                   "report, or topology: a file to start your own machine from");
  group.add_file("--svg", options->svg,
                 "draw the machine into FILE as SVG ('-': to standard output, without the report)");
  add_json_option(show, options->output);
}

void add_convert(CLI::App& topo) {
  auto options = std::make_shared<TopoOptions>();
  CLI::App& convert =
      add_command(topo, "convert", "convert a machine to another format",
                  "Example:\n  reshard topo convert dump.xml --output mine.topo\n"
                  "  reshard topo convert dgx-h200 --to dot | dot -Tsvg > machine.svg",
                  [options] { run_convert(*options); });
  add_name(convert, "IN", *options);
  OptionGroup group(convert, "Output");
  group.add_choice("--to", "FORMAT", options->to, form_names(),
                   "text: a topology file; nccl-xml: for NCCL_TOPO_FILE; dot: for Graphviz");
  group.add_file("--output", options->output_file,
                 "write to FILE ('-', the default: to standard output)");
}

}  // namespace

void add_topo_command(CLI::App& app) {
  CLI::App& topo = add_command_group(app, "topo", "list, show, convert and check machines",
                                     "Example:\n  reshard topo show dgx-h100:2");
  add_list(topo);
  add_show(topo);
  add_convert(topo);
  auto options = std::make_shared<TopoOptions>();
  CLI::App& check = add_command(
      topo, "check", "report implausible values of a machine",
      "The exit code is 1 if something is implausible.\nExample:\n  reshard topo check dump.xml",
      [options] { run_check(*options); });
  add_name(check, "TOPOLOGY", *options);
  add_json_option(check, options->output);
}

}  // namespace reshard::tools
