// SPDX-License-Identifier: BSD-3-Clause
// Helpers for all code that creates topology descriptions.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/machine_files/node_parts.h"

namespace reshard::sim {
namespace {

// Keeps the parts that are crossed, and renumbers the hops of `routes`.
template <class Part>
void keep_crossed(IndexVector<std::int32_t, Part>& list, std::vector<RouteLine>& routes,
                  Hop::Kind kind, Hop::Kind other) {
  IndexVector<std::int32_t, std::int32_t> number(list.size(), -1);
  auto each = [&](auto&& visit) {
    for (RouteLine& route : routes)
      for (Hop& hop : route.rule.hops)
        if (hop.kind == kind || hop.kind == other) visit(hop);
  };
  each([&](Hop& hop) { number[hop.index] = 0; });
  IndexVector<std::int32_t, Part> kept;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(list.size()); ++i)
    if (number[i] == 0) {
      number[i] = static_cast<std::int32_t>(kept.size());
      kept.push_back(std::move(list[i]));
    }
  each([&](Hop& hop) { hop.index = number[hop.index]; });
  list = std::move(kept);
}

}  // namespace

void drop_uncrossed(TopologyDescription& description) {
  keep_crossed(description.ports, description.routes, Hop::Kind::SourceOut,
               Hop::Kind::DestinationIn);
  keep_crossed(description.shared, description.routes, Hop::Kind::SourceNodeShared,
               Hop::Kind::DestinationNodeShared);
}

void assume_latencies(TopologyDescription& description) {
  std::map<PathClass, std::int64_t> used;
  for (const RouteLine& route : description.routes)
    used[route.rule.path_class()] = route.rule.latency_ps;
  std::string each;
  for (auto [path_class, latency_ps] : used)
    each += fmt::format("{}{} {}", each.empty() ? "" : ", ", text(path_class),
                        duration_text(latency_ps));
  if (!each.empty()) description.assumed.push_back("latencies: " + each);
}

void require_sayable(const TopologyDescription& description, const std::string& file) {
  try {
    parse_topology(to_text(description), file);
  } catch (const InputError& error) {
    throw InputError(fmt::format(
        "{}: expected a machine within the limits of a topology, found: {}", file, error.what()));
  }
}

std::string machine_name(const std::string& file) {
  std::size_t slash = file.rfind('/');
  std::string out;
  for (char c : slash == std::string::npos ? file : file.substr(slash + 1)) {
    bool letter = (c | 32) >= 'a' && (c | 32) <= 'z', digit = c >= '0' && c <= '9';
    if (c == '.' && !out.empty()) break;
    if (letter || (!out.empty() && (digit || c == '-' || c == '_')))
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
    if (out.size() == kMaxNameLength) break;
  }
  return out.empty() ? "machine" : out;
}

}  // namespace reshard::sim
