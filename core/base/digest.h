// SPDX-License-Identifier: BSD-3-Clause
// XXH3-128 digests: the same bytes give the same 32 hex digits on every machine.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace reshard {

struct Digest {
  std::uint64_t high = 0, low = 0;
  friend auto operator<=>(const Digest&, const Digest&) = default;
  std::string hex() const;  // 32 lower-case digits
};

Digest digest_of(std::span<const std::byte> bytes);
Digest digest_of(std::string_view text);

// Digest of data that is added in pieces; equals digest_of of their concatenation.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  void add(std::int64_t value);  // as 8 little-endian bytes
  Digest digest() const;

 private:
  void* state_;  // owned XXH3_state_t
};

}  // namespace reshard
