// SPDX-License-Identifier: BSD-3-Clause
#include "core/plan/executor.h"

namespace reshard {

std::vector<std::vector<std::byte>> Processes::gather(std::span<const std::byte> mine) {
  return {{mine.begin(), mine.end()}};
}

std::vector<std::byte> Processes::broadcast(std::span<const std::byte> mine) {
  return {mine.begin(), mine.end()};
}

}  // namespace reshard
