// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/flows.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

namespace {

std::vector<std::int64_t> capacities_of(const Topology& topology) {
  std::vector<std::int64_t> capacities;
  capacities.reserve(to_index(topology.resource_count()));
  for (std::int32_t id = 0; id < topology.resource_count(); ++id)
    capacities.push_back(topology.resource_bytes_per_s(ResourceId{id}));
  return capacities;
}

}  // namespace

std::size_t longest_route(const Topology& topology) {
  std::size_t longest = 1;
  for (const RouteRule& rule : topology.node().rules) longest = std::max(longest, rule.hops.size());
  return longest;
}

Flows::Flows(const Topology& topology, FlowObserver* observer)
    : topology_(topology),
      observer_(observer),
      shares_(capacities_of(topology), longest_route(topology)),
      uses_(to_index(topology.resource_count())),
      route_uses_(topology.node().rules.size()),
      busy_since_ps_(uses_.size(), 0) {}

void Flows::add_use(ResourceId resource, const ResourceUse& use) {
  ResourceUse& sum = uses_[resource];
  if (sum.bytes > kMaxBytes - use.bytes)
    throw InputError(fmt::format("resource {}: expected at most 2^62 bytes in all, found more",
                                 topology_.resource_name(resource)));
  sum.bytes += use.bytes;
  sum.busy_ps += use.busy_ps;
}

void Flows::add_route_use(std::size_t rule, const RouteUse& use) {
  route_uses_[rule].bytes += use.bytes;
  route_uses_[rule].flows += use.flows;
}

Flows::Opened Flows::open(const Transit& transit, std::int64_t now_ps) {
  if (free_.empty()) {
    if (transits_.size() >= to_index(kMaxInFlight))
      throw InputError(fmt::format(
          "simulation: expected at most {} transfers at one time, found more", kMaxInFlight));
    free_.push_back(static_cast<std::int32_t>(transits_.size()));
    transits_.emplace_back();
    rules_.push_back(nullptr);
    for (auto* column : {&starts_ps_, &sequences_}) column->push_back(0);
  }
  std::int32_t flow = free_.back();
  free_.pop_back();
  transits_[flow] = transit;
  starts_ps_[flow] = now_ps;
  sequences_[flow] = next_sequence_++;
  const RouteRule& rule = topology_.rule(transit.source, transit.destination);
  rules_[flow] = &rule;
  add_route_use(to_index(&rule - topology_.node().rules.data()), {transit.bytes, 1});
  return {flow, transit.terms ? transit.terms->latency_ps : rule.latency_ps};
}

void Flows::close(std::int32_t flow) { free_.push_back(flow); }

void Flows::join(std::int32_t flow, std::int64_t now_ps) {
  const Transit& carried = transit(flow);
  const RouteRule& rule = *rules_[flow];
  path_.clear();
  for (const Hop& hop : rule.hops)
    path_.push_back(topology_.resource(hop, carried.source, carried.destination));
  for (ResourceId resource : path_)
    if (shares_.load(resource) >= shares_.capacity(resource))
      throw InputError(
          fmt::format("resource {}: expected at most one flow per byte/s, found more than {} flows",
                      topology_.resource_name(resource), shares_.capacity(resource)));
  std::int64_t cap = rule.cap_bytes_per_s.value_or(FairShare::kNoCap);
  if (carried.terms) cap = std::min(cap, carried.terms->cap_bytes_per_s);
  shares_.add(flow, path_, cap, Int128{carried.bytes} * kUnitsPerByte);
  for (ResourceId resource : path_) {
    add_use(resource, {carried.bytes, 0});
    if (shares_.load(resource) == 1) busy_since_ps_[resource] = now_ps;
  }
}

void Flows::solve(std::int64_t now_ps) {
  shares_.solve(now_ps, observer_ ? &changed_ : nullptr);
  if (observer_) observer_->solved(now_ps, shares_, changed_);
}

void Flows::retire(std::int64_t now_ps, std::vector<std::int32_t>& finished) {
  finished.clear();
  shares_.find_finished(now_ps, finished);
  auto earlier = [this](std::int32_t a, std::int32_t b) { return sequences_[a] < sequences_[b]; };
  if (!std::is_sorted(finished.begin(), finished.end(), earlier))
    std::sort(finished.begin(), finished.end(), earlier);
  for (std::int32_t flow : finished) {
    Int128 excess = observer_ ? shares_.excess(flow, now_ps) : 0;
    shares_.remove(flow, now_ps);
    if (observer_) observer_->finished(now_ps, shares_, flow, excess);
    for (ResourceId resource : shares_.path(flow))
      if (shares_.load(resource) == 0) uses_[resource].busy_ps += now_ps - busy_since_ps_[resource];
  }
}

}  // namespace reshard::sim
