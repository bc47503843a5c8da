// SPDX-License-Identifier: BSD-3-Clause
// The files that a command writes: all of them or none. Each is first written as an unnamed file in
// its target's folder (or with a temporary name, if the file system has no unnamed files), and all
// replace their targets at the end, once everything is written and printed. Until then any failure
// (a full disk, a limit, a signal) leaves the old files unchanged and no new ones; only SIGKILL can
// leave a temporary file, with a name that begins with ".reshard-".
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::tools {

class OutputFiles {
 public:
  OutputFiles();
  ~OutputFiles();  // removes files that were not put in place
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  // Calls `write` to produce the new content of `path`, which keeps the owner and the mode of the
  // old file. If `path` is a link, its target is replaced. "-" is standard output; devices and
  // pipes are written immediately. Throws InputError naming `option` if the file cannot be created,
  // and BackendError if a write fails.
  void write(const std::string& path, std::string_view option,
             const std::function<void(std::ostream&)>& write);

  // Puts all files in place. Call when everything else that can fail is done. Throws BackendError.
  void commit();

 private:
  class File;
  std::vector<std::unique_ptr<File>> files_;
};

// From here on SIGINT, SIGTERM and SIGHUP, if they would end the process, first remove files that
// were not put in place, and are delayed while files are being put in place. For programs only: a
// library leaves signals to its host.
void clean_up_on_signals();

}  // namespace reshard::tools
