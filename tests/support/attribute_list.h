// SPDX-License-Identifier: BSD-3-Clause
// Attributes of a call, written as a list.
#pragma once

#include <initializer_list>
#include <utility>

#include "core/ops/call.h"

namespace reshard::test {

inline OpAttributes with(std::initializer_list<std::pair<const char*, OpValue>> values) {
  OpAttributes out;
  for (const auto& [name, value] : values) out.set(name, value);
  return out;
}

}  // namespace reshard::test
