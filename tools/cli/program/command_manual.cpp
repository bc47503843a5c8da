// SPDX-License-Identifier: BSD-3-Clause
// `reshard manual` and `reshard completion bash|zsh`: files that packages install with the program.
// Both are generated from the commands themselves, so neither can be out of date.
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "core/planners/planner.h"
#include "sim/machines/presets.h"
#include "sim/trace/trace.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {

namespace {

// Escapes text for troff: its special characters, and lines that would be requests.
std::string troff(const std::string& text) {
  std::string out;
  for (char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '\'' ? "\\(aq" : std::string(1, c);
  }
  return out;
}

// Visits commands in the order in which they were added; `path` is "topo list".
template <class Visit>
void for_each_command(const CLI::App& app, const std::string& path, Visit&& visit) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::string name = path.empty() ? command->get_name() : path + " " + command->get_name();
    visit(*command, name);
    for_each_command(*command, name, visit);
  }
}

// The help of all commands, and the examples in their footers. What follows those after a blank
// line may depend on the machine, so it is left out.
std::string manual_page(const CLI::App& app) {
  std::string help = app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::All);
  std::string examples;
  for_each_command(app, "", [&](const CLI::App& command, const std::string&) {
    std::string footer = command.get_footer();
    if (std::size_t begin = footer.find('\n'); begin != std::string::npos)
      examples += footer.substr(begin, footer.find("\n\n") - begin);
  });
  return std::string(".TH RESHARD 1 \"\" \"reshard ") + kVersion + "\" \"User Commands\"\n" +
         ".SH NAME\nreshard \\- plan, prove, time and run the redistribution of sharded tensors\n"
         ".SH SYNOPSIS\n.B reshard\n.I COMMAND\n[\\fIoptions\\fR]\n.SH DESCRIPTION\n.nf\n" +
         troff(help) + "\n.fi\n.SH EXAMPLES\n.nf" + troff(examples) +
         "\n.fi\n.SH EXIT STATUS\n0 success; 1 a requested check did not hold; 2 invalid input; 3 "
         "a bug in reshard; 4 a system call or library failed.\n"
         ".SH SEE ALSO\nThe pages under\n.IR /usr/share/doc/reshard .\n";
}

using Words = std::vector<std::string>;

template <class Rows>
Words names_of(const Rows& rows) {
  Words out;
  for (const auto& row : rows) out.emplace_back(row.name);
  return out;
}

Words option_words(const CLI::App& app) {
  Words out;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    out.push_back(command->get_name());
  return out;
}

// The possible values of an option, if they can be listed: CLI11 describes a choice as
// "NAME:{local,mpi}".
Words values_of(const CLI::Option& option) {
  std::string type = option.get_type_name();
  std::size_t open = type.find(":{");
  if (open == std::string::npos) return {};
  Words out{""};
  for (char c : type.substr(open + 2)) {
    if (c == '}') break;
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

// The cases of a shell's `case` on the previous word: the values of options.
std::string value_cases(const CLI::App& app) {
  std::map<std::string, std::set<std::string>> values{};
  std::set<std::string> files;
  for_each_command(app, "", [&](const CLI::App& command, const std::string&) {
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames()) {
        for (const std::string& value : values_of(*option)) values["--" + name].insert(value);
        if (option->get_type_name() == "FILE") files.insert("--" + name);
      }
  });
  for (const std::string& name : names_of(planners())) values["--planner"].insert(name);
  for (const std::string& name : names_of(sim::presets())) values["--topology"].insert(name);
  for (const std::string& name : names_of(sim::trace_formats())) values["--format"].insert(name);
  for (int d = 0; d < kDTypeCount; ++d) values["--dtype"].emplace(text(static_cast<DType>(d)));
  std::string out;
  for (const auto& [option, words] : values)
    out += fmt::format("    {}) words=\"{}\" ;;\n", option, fmt::join(words, " "));
  return out + fmt::format("    {}) COMPREPLY=(); return ;;\n", fmt::join(files, " | "));
}

constexpr const char* kZshStart =
    "(( $+functions[compdef] )) || { autoload -U compinit && compinit; }\n"
    "autoload -U +X bashcompinit && bashcompinit\n";

// bash completes file names if no word fits; zsh runs the same script through its bashcompinit,
// which requires zsh's own completion to be enabled.
std::string completion(const CLI::App& app, bool zsh) {
  std::string commands,
      words = fmt::format("    \"\") words=\"{}\" ;;\n", fmt::join(option_words(app), " "));
  for_each_command(app, "", [&](const CLI::App& command, const std::string& name) {
    commands += fmt::format("{}\"{}\"", commands.empty() ? "" : " | ", name);
    words +=
        fmt::format("    \"{}\") words=\"{}\" ;;\n", name, fmt::join(option_words(command), " "));
  });
  const char* shell = zsh ? "zsh" : "bash";
  return fmt::format(
      "# {0} completion for reshard; written by `reshard completion {0}`\n"
      "{1}"
      "_reshard() {{\n"
      "  local command=\"\" words=\"\" i\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    case \"${{command:+$command }}${{COMP_WORDS[i]}}\" in\n"
      "      {2}) command=\"${{command:+$command }}${{COMP_WORDS[i]}}\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$command\" in\n{3}  esac\n"
      "  case \"${{COMP_WORDS[COMP_CWORD-1]}}\" in\n{4}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n"
      "}}\n"
      "complete -o default -F _reshard reshard\n",
      shell, zsh ? kZshStart : "", commands, words, value_cases(app));
}

void add_completion(CLI::App& app, CLI::App& command, const char* shell, const char* example) {
  CLI::App* own = command.add_subcommand(shell, fmt::format("for {}", shell));
  own->footer(fmt::format("Example:\n  {}", example));
  bool zsh = std::string_view(shell) == "zsh";
  own->callback([&app, zsh] { print(completion(app, zsh)); });
}

}  // namespace

void add_manual_commands(CLI::App& app) {
  CLI::App* manual = app.add_subcommand("manual", "print the manual page");
  manual->footer("Example:\n  reshard manual | man -l -");
  manual->callback([&app] { print(manual_page(app)); });

  CLI::App* command = app.add_subcommand("completion", "print completion for a shell");
  command->footer("Example:\n  source <(reshard completion bash)");
  command->require_subcommand(1);
  add_completion(app, *command, "bash", "source <(reshard completion bash)");
  add_completion(app, *command, "zsh", "source <(reshard completion zsh)");
}

}  // namespace reshard::tools
