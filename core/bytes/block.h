// SPDX-License-Identifier: BSD-3-Clause
// Aligned memory for shards in this process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reshard {

// Bytes aligned to a cache line; large blocks use huge pages if the system has them. Throws
// std::bad_alloc if there is no memory left.
class Block {
 public:
  explicit Block(std::int64_t bytes);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();
  std::byte* data() const { return data_; }
  std::int64_t size() const { return bytes_; }

 private:
  std::byte* data_;
  std::int64_t bytes_;
};

}  // namespace reshard
