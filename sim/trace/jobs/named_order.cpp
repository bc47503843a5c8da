// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/jobs/named_order.h"

#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/trace/cycles.h"
#include "sim/trace/findings.h"

namespace reshard::sim {

void NamedOrder::add(std::string id, std::vector<std::string> after) {
  ids_.push_back(std::move(id));
  after_.push_back(std::move(after));
}

TensorOrder NamedOrder::resolved() const {
  std::map<std::string_view, std::size_t> by_id;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (ids_[i].empty()) continue;
    auto [at, is_new] = by_id.try_emplace(ids_[i], i);
    if (!is_new)
      throw InputError(
          fmt::format("requests[{}].id: expected each id once, found {} again (first in "
                      "requests[{}])",
                      i, quoted(ids_[i]), at->second));
  }
  TensorOrder out(ids_.size());
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    for (const std::string& id : after_[i]) {
      auto at = by_id.find(id);
      if (at == by_id.end())
        throw InputError(
            fmt::format("requests[{}].after: expected the id of a request of this job, found {}, "
                        "which none has",
                        i, quoted(id)));
      out[i].push_back(id_of<TensorId>(at->second));
    }
    sort_once(out[i]);
  }
  std::vector<std::size_t> cycle = find_cycle<TensorId>(
      out.size(), [&](std::size_t i) -> std::span<const TensorId> { return out[i]; });
  if (cycle.empty()) return out;
  std::vector<std::string> names;
  for (std::size_t i : cycle) names.push_back(quoted(ids_[i]));
  throw InputError(fmt::format("requests[{}].after: expected no cycle, found {}", cycle.front(),
                               cycle_text(names, "requests")));
}

}  // namespace reshard::sim
