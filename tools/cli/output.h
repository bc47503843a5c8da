// SPDX-License-Identifier: BSD-3-Clause
// Where results go: standard output at once and whole, files beside and renamed, progress on a
// terminal only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::tools {

// Writes all of `text`. A reader that has gone (`| head`) ends the program quietly; other failures
// are BackendErrors.
void print(std::string_view text);

// A file as an option names it; empty where it was not given, "-" for standard input or output.
struct NamedFile {
  std::string path;
  std::string_view option;
};

// Throws InputError naming the option where an output cannot become a file (a directory, a folder
// that is not there), where it is a file that is read, through links too, or where two outputs are
// the same; devices and pipes may be. Call before long work.
void require_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

// Writes a file under another name beside `path`, then renames it, so that `path` is either the old
// file or the whole new one, with the old one's mode. What a link points to is replaced. "-" is
// standard output; devices and pipes are written directly. Throws InputError naming `option` where
// it cannot be created, BackendError where a write fails.
void write_file(const std::string& path, std::string_view option,
                const std::function<void(std::ostream&)>& write);

// "planning: 120 of 723" on a terminal's standard error once half a second has passed, at most ten
// times a second; nothing elsewhere.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // At once: for commands of a few long stages that cannot say how far they are.
  void stage(std::string_view what);
  // Before anything else is printed.
  void clear();
  void show(std::string_view stage, std::int64_t done, std::int64_t total);

 private:
  bool on_terminal_, shown_ = false;
  std::chrono::steady_clock::time_point started_, last_;
};

}  // namespace reshard::tools
