// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/digest.h"

#include <array>

#include <fmt/core.h>
#include <xxhash.h>

#include "core/base/errors.h"

namespace reshard {
namespace {

Digest from(XXH128_hash_t hash) { return Digest{hash.high64, hash.low64}; }

}  // namespace

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Digest digest_of(std::span<const std::byte> bytes) {
  return from(XXH3_128bits(bytes.data(), bytes.size()));
}
Digest digest_of(std::string_view text) { return from(XXH3_128bits(text.data(), text.size())); }

Hasher::Hasher() : state_(XXH3_createState()) {
  RESHARD_CHECK(state_ != nullptr, "XXH3_createState returned null");
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}

Hasher::~Hasher() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void Hasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

void Hasher::add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }

void Hasher::add(std::int64_t value) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < 8; ++i)
    bytes[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
  add(std::span<const std::byte>(bytes));
}

Digest Hasher::digest() const {
  return from(XXH3_128bits_digest(static_cast<XXH3_state_t*>(state_)));
}

}  // namespace reshard
