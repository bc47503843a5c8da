// SPDX-License-Identifier: BSD-3-Clause
// `reshard doctor`: what was found on this machine, what is missing, and how to get it.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/planners/planner.h"
#include "sim/machines/presets.h"
#include "sim/report/table.h"
#include "tools/backend_choice.h"
#include "tools/commands.h"
#include "tools/machine_facts.h"
#include "tools/options.h"
#include "tools/output.h"

namespace reshard::tools {

namespace {

std::string doctor_table() {
  std::string out = std::string("reshard ") + kVersion + "\n\n";
  sim::Table machine({{"this machine"}, {""}, {""}});
  for (const Fact& fact : machine_facts())
    machine.add_row({fact.name, fact.found ? "ok" : "--", fact.value});
  sim::Table carriers({{"backend"}, {""}, {"for"}, {"found"}});
  for (const BackendInfo& backend : backend_infos()) {
    const backends::BackendStatus& status = backend.status;
    carriers.add_row({backend.name, status.usable ? "ok" : "--", backend.purpose,
                      status.usable ? status.what : status.what + "; " + status.how_to_get});
  }
  sim::Table strategies({{"planner"}, {"for"}});
  for (const PlannerRow& row : planners())
    strategies.add_row({std::string(row.name), std::string(row.purpose)});
  sim::Table machines({{"topology"}, {"summary"}});
  for (const sim::PresetInfo& preset : sim::presets())
    machines.add_row({preset.name, preset.summary});
  out += machine.text();
  out += "\n" + carriers.text();
  out += "\n" + strategies.text();
  out += "\n" + machines.text();
  return out;
}

std::string doctor_json() {
  nlohmann::ordered_json out;
  out["schema"] = "reshard.doctor/1";
  out["version"] = kVersion;
  out["machine"] = nlohmann::ordered_json::array();
  for (const Fact& fact : machine_facts())
    out["machine"].push_back({{"name", fact.name}, {"found", fact.found}, {"value", fact.value}});
  out["backends"] = nlohmann::ordered_json::array();
  for (const BackendInfo& backend : backend_infos())
    out["backends"].push_back({{"name", backend.name},
                               {"purpose", backend.purpose},
                               {"usable", backend.status.usable},
                               {"what", backend.status.what},
                               {"how_to_get", backend.status.how_to_get}});
  out["planners"] = nlohmann::ordered_json::array();
  for (const PlannerRow& row : planners())
    out["planners"].push_back({{"name", row.name}, {"purpose", row.purpose}});
  out["topologies"] = nlohmann::ordered_json::array();
  for (const sim::PresetInfo& preset : sim::presets())
    out["topologies"].push_back({{"name", preset.name}, {"summary", preset.summary}});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "what was found on this machine, what is missing and how to get it");
  add_json_option(*command, *options);
  command->footer("Example:\n  reshard doctor");
  command->callback([options] { print(options->json ? doctor_json() : doctor_table()); });
}

}  // namespace reshard::tools
