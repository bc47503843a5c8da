// SPDX-License-Identifier: BSD-3-Clause
#include "sim/weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/printable.h"

namespace reshard::sim {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path, std::string_view what) {
  auto refuse = [&](std::string_view found) {
    throw InputError(fmt::format("{}: expected {}, found {}", shown_path(path), what, found));
  };
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) refuse(errno == ENOENT ? "no such file" : std::strerror(errno));
  struct stat status {};
  if (fstat(file.number, &status) != 0) refuse(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) refuse("a directory");
  if (!S_ISREG(status.st_mode)) refuse("no regular file");
  if (status.st_size == 0) return;
  auto size = static_cast<std::size_t>(status.st_size);
  void* at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (at == MAP_FAILED) refuse(std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(at), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

// Releases whole pages; the last one can extend beyond the file.
void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty()) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size());
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace reshard::sim
