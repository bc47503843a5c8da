// SPDX-License-Identifier: BSD-3-Clause
// Where outputs may go: what a name stands for (a file to be replaced, what is written at once),
// and what is refused before any work.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace reshard::tools {

// A file as an option names it; empty where it was not given, "-" for standard input or output.
struct NamedFile {
  std::string path;
  std::string_view option;
};

// Throws InputError naming the option where an output cannot become a file (a directory, a folder
// that is not there, a link that another user planted in a folder that all may write to), where it
// is a file that is read, through links too, or where two outputs are the same; devices and pipes
// may be. Call before long work.
void require_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);
// The same of one output.
void require_writable(const NamedFile& output);

// As messages show it.
std::string in_quotes(const std::string& path);

std::optional<struct stat> status_of(const std::filesystem::path& path);
std::filesystem::path folder_of(const std::filesystem::path& path);

// /dev/stdout, /dev/fd/3: what is open in this process already.
std::optional<int> open_descriptor(const std::string& path);

// Devices, pipes, what is open: written at once, not replaced.
bool is_written_at_once(const std::string& path);

// What a link points to in the end, whether that exists or not; other paths as they are. A link
// keeps pointing where it does; what it points to is replaced. As the kernel does where it opens a
// file, no link of another user is followed in a folder such as /tmp.
std::filesystem::path target_of(const std::string& path, std::string_view option);

}  // namespace reshard::tools
