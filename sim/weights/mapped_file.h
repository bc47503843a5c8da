// SPDX-License-Identifier: BSD-3-Clause
// A file mapped into memory, because checkpoints can be larger than memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace reshard::sim {

class MappedFile {
 public:
  // Throws InputError if the file is missing, unreadable or not a regular file; `what` describes
  // what was expected.
  MappedFile(const std::string& path, std::string_view what);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  // Frees the memory of bytes that were read. If they are needed again, they are read from the file
  // again.
  void release(std::span<const std::byte> part) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace reshard::sim
