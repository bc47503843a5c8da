// SPDX-License-Identifier: BSD-3-Clause
// XXH3-64 digests, equal to what `xxhsum -H3` prints. They are half as long as those of
// core/base/digest.h, and meant for long lists of data that is not made equal on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reshard::sim {

std::uint64_t digest64_of(std::span<const std::byte> bytes);

// Writes 16 lower-case hex digits, and reads them; nothing for any other text.
std::string digest64_text(std::uint64_t digest);
std::optional<std::uint64_t> parse_digest64(std::string_view text);

// The digest of data that is added in pieces; equals digest64_of of their concatenation.
class Hasher64 {
 public:
  Hasher64();
  ~Hasher64();
  Hasher64(const Hasher64&) = delete;
  Hasher64& operator=(const Hasher64&) = delete;

  void add(std::span<const std::byte> bytes);
  // The digest of everything that was added since the last call, or since the beginning.
  std::uint64_t take();

 private:
  void* state_;  // XXH3_state_t, owned
};

}  // namespace reshard::sim
