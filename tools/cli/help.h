// SPDX-License-Identifier: BSD-3-Clause
// Wraps the help to the width of the screen: CLI11 does not wrap descriptions and footers.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "core/base/cursor.h"
#include "sim/report/table.h"

namespace reshard::tools {

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t width) : width_(width) {}

  std::string make_description(const CLI::App* app) const override {
    return fitted(Formatter::make_description(app));
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(Formatter::make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::stringstream out;
    CLI::detail::format_help(out, command->get_display_name(true),
                             wrapped(command->get_description()), column_width_);
    return out.str();
  }
  // CLI11 indents what belongs to a command by two columns.
  std::string make_expanded(const CLI::App* command) const override {
    std::string text = HelpFormatter(width_ - 2).Formatter::make_expanded(command), out;
    for (std::string_view rest = text; !rest.empty();) {
      std::string_view line = take_line(rest);
      out += line.substr(0, line.find_last_not_of(' ') + 1);
      out += '\n';
    }
    return out;
  }
  std::string make_footer(const CLI::App* app) const override {
    return fitted(Formatter::make_footer(app));
  }

 private:
  // Wraps text for the column next to the names.
  std::string wrapped(const std::string& text) const {
    return fmt::format("{}", fmt::join(sim::wrapped(text, width_ - column_width_), "\n"));
  }
  // Wraps line by line; an indented line is a shell command, which continues after a backslash.
  std::string fitted(const std::string& text) const {
    std::string out;
    for (std::string_view rest = text; !rest.empty();) {
      bool ends = rest.find('\n') != std::string_view::npos;
      std::string_view line = take_line(rest);
      if (line.starts_with("  "))
        out += fmt::format("  {}", fmt::join(command(line.substr(2)), " \\\n    "));
      else
        out += fmt::format("{}", fmt::join(sim::wrapped(line, width_), "\n"));
      if (ends) out += '\n';
    }
    return out;
  }
  // Breaks a command only before options, so that each stays with its value.
  std::vector<std::string> command(std::string_view line) const {
    constexpr char kKept = '\x01';  // a blank at which no line may break
    std::string held(line);
    for (std::size_t at = 0; at < held.size(); ++at)
      if (held[at] == ' ' && held.compare(at + 1, 2, "--") != 0) held[at] = kKept;
    std::vector<std::string> lines = sim::wrapped(held, width_ - 6, " ", false);
    for (std::string& one : lines) std::replace(one.begin(), one.end(), kKept, ' ');
    return lines;
  }

  std::size_t width_;
};

}  // namespace reshard::tools
