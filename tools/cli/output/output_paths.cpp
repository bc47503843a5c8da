// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/output/output_paths.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/printable.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(std::string_view option, std::string_view expected,
                         const std::string& path) {
  throw InputError(fmt::format("{}: expected {}, found {}", option, expected, in_quotes(path)));
}

[[noreturn]] void cannot(const char* verb, std::string_view option, const std::string& path) {
  throw InputError(fmt::format("{}: cannot {} {}: {}", option, verb, in_quotes(path), reason()));
}

// Whether everyone may add names to the folder but not remove those of others, as in /tmp.
bool is_shared(const struct stat& folder) {
  return (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
}

}  // namespace

std::string in_quotes(const std::string& path) { return fmt::format("'{}'", shown_path(path)); }

std::optional<struct stat> status_of(const fs::path& path) {
  struct stat out {};
  return ::stat(path.c_str(), &out) == 0 ? std::optional(out) : std::nullopt;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::optional<int> open_descriptor(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    std::string digits = path.substr(folder.size());
    if (digits.empty() || digits.size() > 5 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      continue;
    return std::stoi(digits);
  }
  return std::nullopt;
}

bool is_written_at_once(const std::string& path) {
  std::optional<struct stat> found = status_of(path);
  return open_descriptor(path) || (found && !S_ISREG(found->st_mode));
}

fs::path target_of(const std::string& path, std::string_view option) {
  constexpr int kMostLinks = 40;  // the kernel's limit
  fs::path out = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(out, error); ++i) {
    struct stat link {};
    std::optional<struct stat> folder = status_of(folder_of(out));
    if (::lstat(out.c_str(), &link) == 0 && folder && is_shared(*folder) &&
        link.st_uid != ::geteuid() && link.st_uid != folder->st_uid)
      refuse(option, "a file or a link that this user owns", path);
    out = out.parent_path() / fs::read_symlink(out, error);
  }
  return out;
}

namespace {

void require_replaceable(const fs::path& target, const NamedFile& output) {
  const fs::path parent = folder_of(target);
  std::optional<struct stat> folder = status_of(parent), old = status_of(target);
  if (!folder || !S_ISDIR(folder->st_mode))
    refuse(output.option, "a file in a folder that exists", output.path);
  // Such as a name that is too long, or a cycle of links.
  if (!old && errno != ENOENT) cannot("write", output.option, output.path);
  if (::access(parent.c_str(), W_OK) != 0) cannot("write", output.option, output.path);
  if (!old) return;
  uid_t self = ::geteuid();
  if ((folder->st_mode & S_ISVTX) != 0 && self != 0 && self != old->st_uid &&
      self != folder->st_uid)
    refuse(output.option, "a file that this user may replace", output.path);
  // Standard output would go into the old file, which has no name any more.
  struct stat printed {};
  if (::fstat(STDOUT_FILENO, &printed) == 0 && printed.st_dev == old->st_dev &&
      printed.st_ino == old->st_ino)
    refuse(output.option, "a file other than that of standard output", output.path);
}

}  // namespace

void require_writable(const NamedFile& output) {
  const auto& [path, option] = output;
  std::optional<struct stat> found = status_of(path);
  if (found && S_ISDIR(found->st_mode))
    throw InputError(
        fmt::format("{}: expected a file, found the directory {}", option, in_quotes(path)));
  if (open_descriptor(path)) return;
  if (!is_written_at_once(path)) return require_replaceable(target_of(path, option), output);
  if (::access(path.c_str(), W_OK) != 0) cannot("write", option, path);
}

namespace {

bool is_same_file(const NamedFile& one, const NamedFile& other) {
  std::error_code error;
  if (fs::equivalent(one.path, other.path, error)) return true;  // also true for hard links
  auto place = [&](const NamedFile& file) {
    return fs::weakly_canonical(fs::absolute(target_of(file.path, file.option), error), error);
  };
  return place(one) == place(other);
}

void require_apart(const NamedFile& output, const NamedFile& other) {
  if (other.path.empty() || other.path == "-" || is_written_at_once(output.path)) return;
  if (is_same_file(output, other))
    refuse(output.option, fmt::format("a file other than that of {}", other.option), output.path);
}

}  // namespace

void require_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty()) continue;
    bool printed = output->path == "-";
    if (!printed) require_writable(*output);
    for (auto other = outputs.begin(); other != output; ++other)
      if (printed && other->path == "-")
        throw InputError(
            fmt::format("{}: expected a file, as {} goes to standard output, found '-'",
                        output->option, other->option));
      else if (!printed)
        require_apart(*output, *other);
    if (printed) continue;
    for (const NamedFile& input : inputs) require_apart(*output, input);
  }
}

}  // namespace reshard::tools
