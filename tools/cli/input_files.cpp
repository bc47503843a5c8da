// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/input_files.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/printable.h"
#include "sim/machines/presets.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {

namespace {

bool is_read_once(const std::string& path) {
  if (is_standard_input(path)) return true;
  std::optional<struct stat> found = status_of(path);
  return found && !S_ISREG(found->st_mode) && !S_ISDIR(found->st_mode);
}

bool is_same_input(const std::string& one, const std::string& other) {
  if (is_standard_input(one) || is_standard_input(other))
    return is_standard_input(one) && is_standard_input(other);
  // std::filesystem::equivalent does not compare pipes and devices.
  std::optional<struct stat> a = status_of(one), b = status_of(other);
  return a && b && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool is_at_hand(int descriptor, int wait_ms) {
  pollfd asked{descriptor, POLLIN, 0};
  return ::poll(&asked, 1, wait_ms) != 0;
}

// What reading has to wait for; empty if it does not.
std::string awaited(const NamedFile& input) {
  constexpr int kPatienceMs = 1000;
  std::optional<struct stat> found = status_of(input.path);
  if (is_standard_input(input.path)) {
    struct stat status {};
    if (::fstat(STDIN_FILENO, &status) != 0 || S_ISREG(status.st_mode)) return {};
    if (::isatty(STDIN_FILENO) != 0) return "standard input from this terminal (Ctrl-D ends it)";
    return is_at_hand(STDIN_FILENO, kPatienceMs) ? "" : "standard input";
  }
  if (!found) return {};
  if (S_ISFIFO(found->st_mode)) return "the pipe " + in_quotes(input.path);
  std::error_code error;
  std::string real = std::filesystem::canonical(input.path, error).string();
  bool terminal = real.starts_with("/dev/pts/") || real.starts_with("/dev/tty");
  return S_ISCHR(found->st_mode) && terminal ? "the terminal " + in_quotes(input.path) : "";
}

}  // namespace

bool is_standard_input(const std::string& path) {
  return path == "-" || path == "/dev/stdin" || path == "/dev/fd/0" || path == "/proc/self/fd/0";
}

std::string input_name(const std::string& path) {
  return path == "-" ? "<stdin>" : shown_path(path);
}

void require_files(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  require_outputs(outputs, inputs);
  require_inputs(inputs);
}

void require_inputs(const std::vector<NamedFile>& inputs) {
  for (auto input = inputs.begin(); input != inputs.end(); ++input) {
    if (input->path.empty() || !is_read_once(input->path)) continue;
    // A pipe that this process itself writes to would never end.
    std::optional<int> open = open_descriptor(input->path);
    if ((open == STDOUT_FILENO || open == STDERR_FILENO) && ::isatty(*open) == 0)
      throw InputError(fmt::format("{}: expected an input, found {}, which is also an output",
                                   input->option, in_quotes(input->path)));
    for (auto other = inputs.begin(); other != input; ++other)
      if (!other->path.empty() && is_same_input(input->path, other->path))
        throw InputError(fmt::format(
            "{}: expected an input other than that of {}, which can be read only once, found {}",
            input->option, other->option, in_quotes(input->path)));
  }
  if (Captured::on_this_thread() || ::isatty(STDERR_FILENO) == 0) return;
  for (const NamedFile& input : inputs)
    if (std::string what = input.path.empty() ? "" : awaited(input); !what.empty())
      std::fprintf(stderr, "reshard: %s: reading %s\n", std::string(input.option).c_str(),
                   what.c_str());
}

void require_standard_input() {
  std::cin.peek();
  if (std::ferror(stdin) != 0)
    throw InputError("<stdin>: expected a readable file, found: " + reason());
}

std::string read_input(const std::string& path, std::size_t limit_bytes) {
  if (path != "-") return sim::read_text_file(path, limit_bytes);
  require_standard_input();
  return sim::read_text(std::cin, input_name(path), limit_bytes);
}

}  // namespace reshard::tools
