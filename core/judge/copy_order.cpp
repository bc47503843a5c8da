// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/copy_order.h"

#include <unordered_set>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard {

void CopyOrder::add(std::int64_t line, std::string_view id, const std::vector<std::string>& after) {
  for (const std::string& other : after) {
    auto found = line_of_.find(other);
    if (found == line_of_.end())
      throw InputError(
          fmt::format("after: expected ids of earlier lines, found {}", quoted(other, 200)));
    after_[line].push_back(found->second);
  }
  if (!id.empty() && !line_of_.emplace(id, line).second)
    throw InputError(fmt::format("id: expected each id once, found {} again", quoted(id, 200)));
}

bool CopyOrder::is_before(std::int64_t line, std::int64_t other) {
  if (by_lines_ || line >= other) return line < other;
  std::vector<std::int64_t> open{other};
  std::unordered_set<std::int64_t> seen{other};
  while (!open.empty()) {
    auto found = after_.find(open.back());
    open.pop_back();
    if (found == after_.end()) continue;
    for (std::int64_t earlier : found->second) {
      if (earlier == line) return true;
      if (earlier > line && seen.insert(earlier).second) open.push_back(earlier);
      if (--budget_ < 0)
        throw InputError("after: expected fewer copies in order, found too many to follow");
    }
  }
  return false;
}

}  // namespace reshard
