// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/application.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/printable.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/help.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {
namespace {

// The command that the arguments selected, as far as they were understood.
const CLI::App& innermost(const CLI::App& app) {
  auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

}  // namespace

void add_commands(CLI::App& app, std::span<const CommandRow> rows,
                  std::span<const std::string> arguments) {
  app.formatter(std::make_shared<HelpFormatter>(screen_width()));
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", std::string("reshard ") + kVersion);
  app.set_help_all_flag("--help-all", "print the help of all commands");
  auto named = [&](const CommandRow& row) {
    return !arguments.empty() && row.name == arguments.front();
  };
  // Other names among the arguments can be those of commands, too.
  auto is_name = [&](const std::string& argument) {
    return argument == "--help-all" ||
           std::any_of(rows.begin(), rows.end(),
                       [&](const CommandRow& row) { return row.name == argument; });
  };
  bool one = std::any_of(rows.begin(), rows.end(), named) &&
             std::none_of(arguments.begin() + 1, arguments.end(), is_name);
  for (const CommandRow& row : rows)
    if (!one || named(row)) row.add(app);
  app.footer(
      "Example:\n  reshard simulate --mesh 4x4 --shape 32,8192,4096 --from 'S(0)S(1)' --to "
      "'S(1)S(0)'\n\nRun reshard COMMAND --help for more.");
}

// CLI11 only reports that a command is missing, or lists all arguments that it did not expect.
std::string text(const CLI::ParseError& error, const CLI::App& app) {
  const CLI::App& at = innermost(app);
  std::vector<std::string> left = app.remaining(true);
  std::string found = left.empty() ? "none" : reshard::quoted(left.front());
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
      at.get_require_subcommand_min() > 0 && at.get_subcommands().empty()) {
    std::vector<std::string> names;
    for (const CLI::App* command : at.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    return fmt::format("{}expected a command ({}), found {}",
                       &at == &app ? "" : at.get_name() + ": ", fmt::join(names, ", "), found);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    return fmt::format("{}: expected no argument {} (--help lists the arguments)", at.get_name(),
                       found);
  // CLI11 repeats the user's text, which may contain anything.
  constexpr std::size_t kMost = 400;
  std::string what = printable(error.what(), kMost);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr &&
      what.find("At Most") != std::string::npos)
    return what.substr(0, what.find(':')) + ": expected once, found several times";
  return what;
}

CommandOutput output_of(std::vector<std::string> arguments) {
  CLI::App app(kPurpose, "reshard");
  constexpr CommandRow kCommands[] = {{"plan", add_plan_command},
                                      {"simulate", add_simulate_command},
                                      {"replay", add_replay_command},
                                      {"sweep", add_sweep_command},
                                      {"calibrate", add_calibrate_command},
                                      {"topo", add_topo_command},
                                      {"check", add_check_command},
                                      {"digest", add_digest_command},
                                      {"layout", add_layout_command},
                                      {"where", add_where_command},
                                      {"kv", add_kv_command},
                                      {"compare", add_compare_command},
                                      {"model", add_model_command},
                                      {"ops", add_ops_command}};
  add_commands(app, kCommands, arguments);
  Captured printed;
  CommandOutput output;
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(std::move(arguments));
  } catch (const CLI::Success& success) {
    std::ostringstream help;
    app.exit(success, help, help);
    print(help.str());
  } catch (const CLI::ParseError& error) {
    throw InputError(text(error, app));
  } catch (const CheckNotHeld& check) {
    output.findings = check.findings;
  }
  output.text = printed.take();
  return output;
}

}  // namespace reshard::tools
