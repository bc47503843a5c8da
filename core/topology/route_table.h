// SPDX-License-Identifier: BSD-3-Clause
// From route lines to classes of devices and their table of rules.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/topology/topology_text.h"

namespace reshard {

struct RouteTable {
  std::vector<RouteRule> rules;        // one per route line, in order
  std::vector<std::int32_t> class_of;  // as NodeTemplate
  std::vector<std::int32_t> rule_within;
  std::int32_t rule_between = -1;

  std::vector<bool> taken;  // per route line: whether some pair takes it
  // Local devices that no line gives a route.
  std::optional<std::pair<std::int32_t, std::int32_t>> missing;
  bool too_many_classes = false;  // more than kMaxDeviceClasses; nothing else is filled then
};

// Group and device numbers must be in range.
RouteTable make_route_table(const TopologyDescription& description);

}  // namespace reshard
