// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/output/output_files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_paths.h"
#include "tools/cli/output/output_stream.h"

namespace reshard::tools {

namespace {

// ---- signals: data that a handler may access

std::array<std::atomic<const char*>, 16> names_to_remove{};
std::atomic<int> being_put_in_place{0}, pending_signal{0};

void end_by(int number) {
  for (std::atomic<const char*>& name : names_to_remove)
    if (const char* path = name.load()) ::unlink(path);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void on_signal(int number) {
  if (being_put_in_place > 0)
    pending_signal = number;
  else
    end_by(number);
}

class WithoutSignals {
 public:
  WithoutSignals() { ++being_put_in_place; }
  ~WithoutSignals() {
    if (--being_put_in_place > 0) return;
    if (int number = pending_signal.exchange(0); number != 0) end_by(number);
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
};

// ---- system calls

[[noreturn]] void fail(const std::string& call, const std::string& path) {
  throw BackendError("system", call + " " + in_quotes(path), errno_name(), -1);
}

// Moves a file to a descriptor above those of standard input, output and error: if one of those is
// closed, the file could get its number, and whatever is printed would go into it.
int above_standard(int file) {
  if (file < 0 || file > STDERR_FILENO) return file;
  int above = ::fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
  ::close(file);
  errno = error;
  return above;
}

// An unpredictable name next to the target; short, as the target's name may be of the maximum
// length.
std::string temporary_name(const std::filesystem::path& target) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<std::uint64_t>(::getpid());
  return (folder_of(target) / fmt::format(".reshard-{:016x}", number)).string();
}

// Takes owner and mode of the file that is replaced. If the group cannot be kept, the group's
// permissions are dropped, so that no other group gets them.
void take_owner_and_mode(int file, const struct stat& old) {
  bool owner = ::fchown(file, old.st_uid, old.st_gid) == 0;
  bool group = owner || ::fchown(file, static_cast<uid_t>(-1), old.st_gid) == 0;
  mode_t mode = old.st_mode & 07777U;
  if (!owner) mode &= ~static_cast<mode_t>(S_ISUID);
  if (!group) mode &= ~static_cast<mode_t>(S_ISGID | S_IRWXG);
  ::fchmod(file, mode);
}

// Whether unnamed files, which vanish with the process, can be created and named later.
bool may_be_nameless() { return ::access("/proc/self/fd", X_OK) == 0; }

}  // namespace

// One file that is not in place yet.
class OutputFiles::File {
 public:
  File(const std::string& path, std::string_view option)
      : path_(path), target_(target_of(path, option)) {
    std::optional<struct stat> old = status_of(target_);
    open(old ? 0600 : 0666);
    if (descriptor_ < 0)
      throw InputError(fmt::format("{}: cannot create {}: {}", option, in_quotes(path), reason()));
    if (old) take_owner_and_mode(descriptor_, *old);
  }
  ~File() {
    remove();
    ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const std::function<void(std::ostream&)>& write) const {
    if (int error = write_to(descriptor_, write); error != 0) {
      errno = error;
      fail("write", path_);
    }
    // Some file systems report only here that they are full; some do not support the call.
    if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail("fsync", path_);
  }

  void give_name() {
    if (!name_.empty()) return;
    std::string self = fmt::format("/proc/self/fd/{}", descriptor_), name;
    do name = temporary_name(target_);
    while (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0 &&
           errno == EEXIST);
    if (::access(name.c_str(), F_OK) != 0) fail("linkat", path_);
    name_ = std::move(name);
  }

  void put_in_place() {
    if (::rename(name_.c_str(), target_.c_str()) != 0) fail("rename to", target_.string());
    forget_name();
  }

  std::filesystem::path folder() const { return folder_of(target_); }

 private:
  void open(mode_t mode) {
    std::string folder = folder_of(target_).string();
    if (may_be_nameless()) {
      descriptor_ = above_standard(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
      bool unknown = errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL;
      if (descriptor_ >= 0 || !unknown) return;
    }
    do {
      name_ = temporary_name(target_);
      remember_name();
      descriptor_ = above_standard(
          ::open(name_.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, mode));
      if (descriptor_ < 0) forget_name();
    } while (descriptor_ < 0 && errno == EEXIST);
  }

  // The handler may unlink a name shortly before the file exists: the name is unpredictable, so it
  // belongs to no other process.
  void remember_name() const {
    for (std::atomic<const char*>& name : names_to_remove) {
      const char* none = nullptr;
      if (name.compare_exchange_strong(none, name_.c_str())) return;
    }
  }
  void forget_name() {
    for (std::atomic<const char*>& name : names_to_remove) {
      const char* mine = name_.c_str();
      if (name.compare_exchange_strong(mine, nullptr)) break;
    }
    name_.clear();
  }
  void remove() {
    if (name_.empty()) return;
    ::unlink(name_.c_str());
    forget_name();
  }

  std::string path_;
  std::filesystem::path target_;
  std::string name_;  // empty: no name yet
  int descriptor_ = -1;
};

OutputFiles::OutputFiles() = default;
OutputFiles::~OutputFiles() = default;

namespace {

void write_at_once(const std::string& path, std::string_view option,
                   const std::function<void(std::ostream&)>& write) {
  std::optional<int> open = open_descriptor(path);
  if (open == STDOUT_FILENO || path == "-") return print(write);
  int file = above_standard(open ? ::dup(*open) : ::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file < 0)
    throw InputError(fmt::format("{}: cannot create {}: {}", option, in_quotes(path), reason()));
  int error = 0;
  try {
    error = write_to(file, write);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
  errno = error;
  if (error != 0) fail("write", path);
}

}  // namespace

void OutputFiles::write(const std::string& path, std::string_view option,
                        const std::function<void(std::ostream&)>& write) {
  if (path != "-") require_writable({path, option});
  if (path == "-" || is_written_at_once(path)) return write_at_once(path, option, write);
  files_.push_back(std::make_unique<File>(path, option));
  files_.back()->write(write);
}

void OutputFiles::commit() {
  std::set<std::filesystem::path> folders;
  {
    WithoutSignals guard;
    for (const auto& file : files_) file->give_name();
    for (const auto& file : files_) file->put_in_place();
  }
  for (const auto& file : files_) folders.insert(file->folder());
  files_.clear();
  // Syncing the folders, so that the names last, is best effort: some file systems do not support
  // it.
  for (const std::filesystem::path& folder : folders) {
    int open = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (open < 0) continue;
    ::fsync(open);
    ::close(open);
  }
}

void clean_up_on_signals() {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = on_signal;
    ours.sa_flags = SA_RESTART;
    ::sigaction(number, &ours, nullptr);
  }
}

}  // namespace reshard::tools
