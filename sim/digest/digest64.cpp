// SPDX-License-Identifier: BSD-3-Clause
#include "sim/digest/digest64.h"

#include <charconv>

#include <fmt/core.h>
#include <xxhash.h>

#include "core/base/errors.h"

namespace reshard::sim {

std::uint64_t digest64_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string digest64_text(std::uint64_t digest) { return fmt::format("{:016x}", digest); }

std::optional<std::uint64_t> parse_digest64(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  for (char c : text)
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return std::nullopt;
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return out;
}

Hasher64::Hasher64() : state_(XXH3_createState()) {
  RESHARD_CHECK(state_ != nullptr, "XXH3_createState returned null");
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_));
}

Hasher64::~Hasher64() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void Hasher64::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

std::uint64_t Hasher64::take() {
  auto* state = static_cast<XXH3_state_t*>(state_);
  std::uint64_t out = XXH3_64bits_digest(state);
  XXH3_64bits_reset(state);
  return out;
}

}  // namespace reshard::sim
