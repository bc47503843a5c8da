// SPDX-License-Identifier: BSD-3-Clause
// The frame of every fuzz target: text from outside may be refused only with an InputError.
// Accepted text that is written again must be read back to the same value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/errors.h"

namespace reshard::fuzz {

// Ends the run: a property does not hold.
[[noreturn]] inline void broken(const std::string& what) {
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

// InputError is the only way out that is fine.
template <typename Body>
int refused_or_fine(Body body) {
  try {
    body();
  } catch (const InputError& error) {
    if (*error.what() == '\0') broken("an InputError without words");
  }
  return 0;
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace reshard::fuzz
