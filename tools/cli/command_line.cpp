// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/command_line.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard::tools {
namespace {

// A check for CLI11: returns what is wrong, or an empty text.
std::string not_empty(const std::string& given) {
  return given.empty() ? "expected a value, found ''" : "";
}

std::function<std::string(const std::string&)> whole_number(std::int64_t low, std::int64_t high) {
  return [low, high](const std::string& given) {
    std::int64_t number = 0;
    const char* end = given.data() + given.size();
    auto [rest, error] = std::from_chars(given.data(), end, number);
    bool plain = given == "0" || given.find_first_not_of('-') == given.find_first_not_of("-0");
    if (error == std::errc() && rest == end && plain && low <= number && number <= high)
      return std::string();
    return fmt::format("expected a whole number from {} to {}, found {}", low, high,
                       reshard::quoted(given));
  };
}

// Brackets and commas belong to the values.
template <class Value>
CLI::Option* option(CLI::App& command, const char* heading, const char* name,
                    const char* value_name, Value& value, const std::string& help) {
  return command.add_option(name, value, help)
      ->type_name(value_name)
      ->group(heading)
      ->allow_extra_args(false);
}

}  // namespace

CLI::App& add_command(CLI::App& app, const char* name, const std::string& description,
                      const std::string& footer, std::function<void()> run) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer(footer);
  command->callback(std::move(run));
  return *command;
}

CLI::App& add_command(CLI::App& app, const char* name, const std::string& description,
                      std::function<std::string()> footer, std::function<void()> run) {
  CLI::App& command = add_command(app, name, description, std::string(), std::move(run));
  command.footer(std::move(footer));
  return command;
}

CLI::App& add_command_group(CLI::App& app, const char* name, const std::string& description,
                            const std::string& footer) {
  CLI::App* group = app.add_subcommand(name, description);
  group->footer(footer);
  group->require_subcommand(1);
  return *group;
}

template <class Value>
void add_argument(CLI::App& command, const char* name, Value& value, const std::string& help) {
  command.add_option(name, value, help)->required()->check(not_empty);
}
template void add_argument(CLI::App&, const char*, std::string&, const std::string&);
template void add_argument(CLI::App&, const char*, std::vector<std::string>&, const std::string&);

template <class Value>
void add_optional_argument(CLI::App& command, const char* name, Value& value,
                           const std::string& help) {
  command.add_option(name, value, help);
}
template void add_optional_argument(CLI::App&, const char*, std::string&, const std::string&);
template void add_optional_argument(CLI::App&, const char*, std::vector<std::string>&,
                                    const std::string&);

void require_with(CLI::App& command, const char* option, const char* other) {
  command.get_option(option)->needs(command.get_option(other));
}

template <class Value>
void OptionGroup::add_maybe_empty(const char* name, const char* value_name, Value& value,
                                  const std::string& help, bool* given) const {
  CLI::Option* added = option(command_, heading_, name, value_name, value, help);
  if (given) added->each([given](const std::string&) { *given = true; });
}

template <class Value>
void OptionGroup::add(const char* name, const char* value_name, Value& value,
                      const std::string& help) const {
  option(command_, heading_, name, value_name, value, help)->check(not_empty);
}

template <class Value>
void OptionGroup::add_required(const char* name, const char* value_name, Value& value,
                               const std::string& help) const {
  option(command_, heading_, name, value_name, value, help)->check(not_empty)->required();
}

using Text = std::string;
using Texts = std::vector<std::string>;
using Help = const std::string&;
template void OptionGroup::add(const char*, const char*, Text&, Help) const;
template void OptionGroup::add(const char*, const char*, Texts&, Help) const;
template void OptionGroup::add_required(const char*, const char*, Text&, Help) const;
template void OptionGroup::add_required(const char*, const char*, Texts&, Help) const;
template void OptionGroup::add_maybe_empty(const char*, const char*, Text&, Help, bool*) const;
template void OptionGroup::add_maybe_empty(const char*, const char*, Texts&, Help, bool*) const;

// If the value looks like an option, the file name was forgotten.
void OptionGroup::add_file(const char* name, std::string& value, const std::string& help) const {
  auto file_name = [](const std::string& given) {
    return given.starts_with("--") ? "expected a file name, found " + reshard::quoted(given) +
                                         " (./" + given + " is a file of this name)"
                                   : "";
  };
  option(command_, heading_, name, "FILE", value, help)->check(not_empty)->check(file_name);
}

void OptionGroup::add_choice(const char* name, const char* value_name, std::string& value,
                             const std::vector<std::string>& choices,
                             const std::string& help) const {
  auto one_of_them = [choices](const std::string& given) {
    if (std::find(choices.begin(), choices.end(), given) != choices.end()) return std::string();
    return fmt::format("expected one of {}, found {}", fmt::join(choices, " "),
                       reshard::quoted(given));
  };
  option(command_, heading_, name, value_name, value, help)->check(not_empty)->check(one_of_them);
}

template <class Integer>
void OptionGroup::add_count(const char* name, const char* value_name, Integer& value, Integer low,
                            Integer high, const std::string& help) const {
  option(command_, heading_, name, value_name, value, help)
      ->check(not_empty)
      ->check(whole_number(low, high));
}
template void OptionGroup::add_count(const char*, const char*, std::int64_t&, std::int64_t,
                                     std::int64_t, Help) const;
template void OptionGroup::add_count(const char*, const char*, int&, int, int, Help) const;

void OptionGroup::add_flag(const char* name, bool& value, const std::string& help) const {
  command_.add_flag(name, value, help)->group(heading_);
}

}  // namespace reshard::tools
