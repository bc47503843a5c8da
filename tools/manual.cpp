// SPDX-License-Identifier: BSD-3-Clause
#include "tools/manual.h"

#include <CLI/CLI.hpp>

#include "tools/commands.h"

namespace reshard::tools {
namespace {

// Text as troff takes it: its own characters escaped, lines that would be requests or break the
// page guarded.
std::string troff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else
      out += c;
    line_start = c == '\n';
  }
  return out;
}

// "-v, --verbose BYTES" with fonts.
std::string option_head(const CLI::Option& option) {
  std::string out;
  auto add = [&](const std::string& name) {
    out += (out.empty() ? "" : ", ") + ("\\fB" + troff(name) + "\\fR");
  };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  if (out.empty()) out = "\\fI" + troff(option.get_name()) + "\\fR";
  std::string type = option.get_type_name();
  if (option.get_items_expected_max() > 0 && !type.empty()) out += " \\fI" + troff(type) + "\\fR";
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

// The lines of a footer's example, without its heading. What follows after a blank line is for the
// screen: it may depend on the machine.
std::string example_of(const CLI::App& app) {
  std::string footer = app.get_footer();
  footer = footer.substr(0, footer.find("\n\n"));
  const std::string heading = "Example:\n";
  return footer.rfind(heading, 0) == 0 ? footer.substr(heading.size()) : footer;
}

void add_examples(const CLI::App& app, std::string& out) {
  std::string example = example_of(app);
  if (!example.empty()) out += ".PP\n.nf\n" + troff(example) + "\n.fi\n";
}

void add_options(const CLI::App& app, std::string& out) {
  for (const CLI::Option* option : app.get_options())
    out += ".TP\n" + option_head(*option) + "\n" + troff(option->get_description()) + "\n";
}

std::string option_words(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) out += " --" + name;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    out += " " + command->get_name();
  return out.empty() ? out : out.substr(1);
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string out =
      std::string(".TH RESHARD 1 \"\" \"reshard ") + kVersion + "\" \"User Commands\"\n";
  out += ".SH NAME\nreshard \\- plan, prove, time and run the redistribution of sharded tensors\n";
  out += ".SH SYNOPSIS\n.B reshard\n.I COMMAND\n[\\fIoptions\\fR]\n";
  out += ".SH DESCRIPTION\n" + troff(app.get_description()) + "\n";
  add_examples(app, out);
  out += ".SH OPTIONS\n";
  add_options(app, out);
  out += ".SH COMMANDS\n";
  for_each_command(app, "", [&](const CLI::App& command, const std::string& name) {
    out += ".SS \"reshard " + troff(name) + "\"\n" + troff(command.get_description()) + "\n";
    add_options(command, out);
    add_examples(command, out);
  });
  out +=
      ".SH EXIT STATUS\n0 done; 1 a check that was asked for did not hold; 2 wrong input; 3 a bug "
      "of reshard; 4 a system call or library failed.\n"
      ".SH SEE ALSO\nThe pages under\n.IR /usr/share/doc/reshard .\n";
  return out;
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

}  // namespace reshard::tools
