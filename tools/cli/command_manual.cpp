// SPDX-License-Identifier: BSD-3-Clause
// `reshard manual` and `reshard completion bash`: what packages install beside the program. Both
// are read off the commands themselves, so that neither can be out of date.
#include <CLI/CLI.hpp>

#include "tools/cli/commands.h"
#include "tools/cli/output.h"

namespace reshard::tools {

namespace {

// Text as troff takes it: its own characters escaped, lines that would be requests guarded.
std::string troff(const std::string& text) {
  std::string out;
  for (char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '\'' ? "\\(aq" : std::string(1, c);
  }
  return out;
}

// Commands in the order in which they were added; `path` is "topo list".
template <class Visit>
void for_each_command(const CLI::App& app, const std::string& path, Visit&& visit) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::string name = path.empty() ? command->get_name() : path + " " + command->get_name();
    visit(*command, name);
    for_each_command(*command, name, visit);
  }
}

// The help of all commands, and their examples: what follows those in a footer, after a blank line,
// may depend on the machine.
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
         "\n.fi\n.SH EXIT STATUS\n0 done; 1 a check that was asked for did not hold; 2 wrong "
         "input; "
         "3 a bug of reshard; 4 a system call or library failed.\n"
         ".SH SEE ALSO\nThe pages under\n.IR /usr/share/doc/reshard .\n";
}

std::string option_words(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) out += " --" + name;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    out += " " + command->get_name();
  return out.empty() ? out : out.substr(1);
}

std::string bash_completion(const CLI::App& app) {
  std::string known, words = "    \"\") words=\"" + option_words(app) + "\" ;;\n";
  for_each_command(app, "", [&](const CLI::App& command, const std::string& name) {
    known += (known.empty() ? "\"" : " | \"") + name + "\"";
    words += "    \"" + name + "\") words=\"" + option_words(command) + "\" ;;\n";
  });
  return "# bash completion for reshard; written by `reshard completion bash`\n"
         "_reshard() {\n"
         "  local command=\"\" words=\"\" i\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    case \"${command:+$command }${COMP_WORDS[i]}\" in\n"
         "      " +
         known +
         ") command=\"${command:+$command }${COMP_WORDS[i]}\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$command\" in\n" +
         words +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
         "}\n"
         "complete -o default -F _reshard reshard\n";
}

}  // namespace

void add_manual_commands(CLI::App& app) {
  CLI::App* manual = app.add_subcommand("manual", "print the manual page");
  manual->footer("Example:\n  reshard manual | man -l -");
  manual->callback([&app] { print(manual_page(app)); });

  CLI::App* completion = app.add_subcommand("completion", "print completion for a shell");
  completion->footer("Example:\n  source <(reshard completion bash)");
  completion->require_subcommand(1);
  CLI::App* bash = completion->add_subcommand("bash", "for bash");
  bash->footer("Example:\n  source <(reshard completion bash)");
  bash->callback([&app] { print(bash_completion(app)); });
}

}  // namespace reshard::tools
