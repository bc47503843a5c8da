// SPDX-License-Identifier: BSD-3-Clause
#include "sim/store/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace reshard::sim {

std::int64_t memory_of_machine_bytes() {
  std::int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  std::int64_t bytes =
      pages > 0 && page > 0 ? pages * page : std::numeric_limits<std::int64_t>::max();
  // In a control group without a limit the file contains "max".
  std::int64_t limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit) bytes = std::min(bytes, limit);
  return bytes;
}

}  // namespace reshard::sim
