// SPDX-License-Identifier: BSD-3-Clause
// A file that is mapped into memory: checkpoints can be larger than memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace reshard::sim {

class MappedFile {
 public:
  // Throws InputError for a file that is missing, unreadable or no regular file; `what` says what
  // was expected.
  MappedFile(const std::string& path, std::string_view what);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  // Gives back the memory of bytes that were read; read again, they come from the file again.
  void release(std::span<const std::byte> part) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace reshard::sim
