// SPDX-License-Identifier: BSD-3-Clause
// How a command declares itself and its options. CLI11, which has headers that take seconds to
// compile, is included by command_line.cpp and by what handles the whole command line, and by no
// command.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace reshard::tools {

// Adds a command under `app`; `footer` follows its help. The second form builds the footer when the
// help is printed. `run` is called if the command is chosen.
CLI::App& add_command(CLI::App& app, const char* name, const std::string& description,
                      const std::string& footer, std::function<void()> run);
CLI::App& add_command(CLI::App& app, const char* name, const std::string& description,
                      std::function<std::string()> footer, std::function<void()> run);
// A command that only has commands, one of which is required.
CLI::App& add_command_group(CLI::App& app, const char* name, const std::string& description,
                            const std::string& footer);

// Adds a positional argument: text or a list of text, not empty.
template <class Value>
void add_argument(CLI::App& command, const char* name, Value& value, const std::string& help);
template <class Value>
void add_optional_argument(CLI::App& command, const char* name, Value& value,
                           const std::string& help);

// Refuses `option` where `other` is not given.
void require_with(CLI::App& command, const char* option, const char* other);

// The options of a command that are listed under one heading of its help. `value_name` is the name
// of an option's value there. Values are text or lists of text; a list is given by repeating the
// option.
class OptionGroup {
 public:
  OptionGroup(CLI::App& command, const char* heading) : command_(command), heading_(heading) {}
  // The value must not be empty.
  template <class Value>
  void add(const char* name, const char* value_name, Value& value, const std::string& help) const;
  template <class Value>
  void add_required(const char* name, const char* value_name, Value& value,
                    const std::string& help) const;
  // The value may be empty; `given`, if not null, is set where the option occurs.
  template <class Value>
  void add_maybe_empty(const char* name, const char* value_name, Value& value,
                       const std::string& help, bool* given = nullptr) const;
  void add_file(const char* name, std::string& value, const std::string& help) const;
  void add_choice(const char* name, const char* value_name, std::string& value,
                  const std::vector<std::string>& choices, const std::string& help) const;
  // Decimal digits only: CLI11 itself would read 010 as 8 and 0x10 as 16.
  template <class Integer>
  void add_count(const char* name, const char* value_name, Integer& value, Integer low,
                 Integer high, const std::string& help) const;
  void add_flag(const char* name, bool& value, const std::string& help) const;

 private:
  CLI::App& command_;
  const char* heading_;
};

}  // namespace reshard::tools
