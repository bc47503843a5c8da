// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/critical_path.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/errors.h"

namespace reshard::sim {

namespace {

class Parts {
 public:
  explicit Parts(const Topology& topology) : topology_(topology) {}

  void add(const Wait& wait, const std::vector<LimitLog::Limit>& limits) {
    if (wait.transfer < 0) return add(wait, WaitedFor::Compute, wait.start_ps, wait.end_ps);
    const RouteRule& rule = topology_.rule(wait.source, wait.destination);
    std::int64_t launched_ps = std::max(wait.start_ps, wait.moving_ps - rule.latency_ps);
    add(wait, WaitedFor::Launch, wait.start_ps, launched_ps);
    add(wait, WaitedFor::Latency, launched_ps, wait.moving_ps);
    RESHARD_CHECK(
        limits.empty() ? wait.moving_ps == wait.end_ps : wait.moving_ps == limits.front().since_ps,
        "a transfer whose limits are not known");
    bool routes_cap = rule.cap_bytes_per_s && *rule.cap_bytes_per_s <= wait.cap_bytes_per_s;
    for (std::size_t i = 0; i < limits.size(); ++i) {
      std::optional<ResourceId> resource = limits[i].resource;
      add(wait,
          resource     ? WaitedFor::Resource
          : routes_cap ? WaitedFor::Cap
                       : WaitedFor::Protocol,
          limits[i].since_ps, i + 1 < limits.size() ? limits[i + 1].since_ps : wait.end_ps,
          resource.value_or(ResourceId{-1}));
    }
  }

  std::vector<PathPart> take() { return std::move(parts_); }

 private:
  void add(const Wait& wait, WaitedFor cause, std::int64_t start_ps, std::int64_t end_ps,
           ResourceId resource = ResourceId{-1}) {
    if (start_ps == end_ps) return;
    PathPart part{wait.op, wait.step, cause, resource, start_ps, end_ps};
    if (!parts_.empty() && parts_.back().differs_in_time_only(part))
      parts_.back().end_ps = end_ps;
    else
      parts_.push_back(part);
  }

  const Topology& topology_;
  std::vector<PathPart> parts_;
};

}  // namespace

std::string cause_text(const PathPart& part, const Topology& topology) {
  constexpr std::array<std::string_view, 6> kWords{"",    "latency",  "launch",
                                                   "cap", "protocol", "compute"};
  if (part.cause == WaitedFor::Resource) return topology.resource_name(part.resource);
  return std::string(kWords[to_index(part.cause)]);
}

std::vector<PathPart> path_of(std::span<const Wait> chain, const LimitLog& limits,
                              const Topology& topology) {
  std::vector<std::vector<LimitLog::Limit>> by_wait = limits.limits_of(chain);
  Parts parts(topology);
  for (std::size_t i = 0; i < chain.size(); ++i) parts.add(chain[i], by_wait[i]);
  return parts.take();
}

}  // namespace reshard::sim
