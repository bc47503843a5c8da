// SPDX-License-Identifier: BSD-3-Clause
// Where outputs may go: what a path means (a file to replace, or something that is written
// immediately), and which paths are refused before any work.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace reshard::tools {

// A file as named by an option. Empty: not given; "-": standard input or output.
struct NamedFile {
  std::string path;
  std::string_view option;
};

// Throws InputError naming the option if an output cannot become a file (it is a directory, its
// folder does not exist, or it is a link that another user put into a folder writable by all), if
// it is also an input (also through links), or if two outputs are the same. Devices and pipes are
// allowed. Call before long work.
void require_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);
// The same for one output.
void require_writable(const NamedFile& output);

// The path as shown in messages.
std::string in_quotes(const std::string& path);

std::optional<struct stat> status_of(const std::filesystem::path& path);
std::filesystem::path folder_of(const std::filesystem::path& path);

// /dev/stdout, /dev/fd/3: the descriptor, if the path names a file that this process has open.
std::optional<int> open_descriptor(const std::string& path);

// Devices, pipes and open files are written immediately, not replaced.
bool is_written_at_once(const std::string& path);

// The file that a link finally points to, whether it exists or not; other paths unchanged. The link
// itself is kept, and its target is replaced. As the kernel does when it opens a file, refuses to
// follow another user's link in a folder such as /tmp.
std::filesystem::path target_of(const std::string& path, std::string_view option);

}  // namespace reshard::tools
