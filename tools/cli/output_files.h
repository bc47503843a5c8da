// SPDX-License-Identifier: BSD-3-Clause
// The files that a command writes: all or none. Each is written as a file without a name in its
// target's folder, or with a name of its own where the file system has no such files, and all take
// their targets' places at the end, once everything is written and printed. Until then whatever
// happens (a full disk, a limit, a signal) leaves the old files as they were and nothing beside
// them; only SIGKILL leaves one with a name, which begins with ".reshard-".
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
  ~OutputFiles();  // removes what was not put in place
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  // Has `write` write what will stand at `path`, with the owner and the mode of the file that
  // stands there now. What a link points to is replaced. "-" is standard output; devices and pipes
  // are written at once. Throws InputError naming `option` where the file cannot be created,
  // BackendError where a write fails.
  void write(const std::string& path, std::string_view option,
             const std::function<void(std::ostream&)>& write);

  // Puts all files in place. Call when all else that may fail is done. Throws BackendError.
  void commit();

 private:
  class File;
  std::vector<std::unique_ptr<File>> files_;
};

// From here on SIGINT, SIGTERM and SIGHUP, where they end the process, first remove what was not
// put in place, and wait while files are put in place. For a program; a library leaves signals to
// its host.
void clean_up_on_signals();

}  // namespace reshard::tools
