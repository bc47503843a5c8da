// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/flows.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

namespace {

constexpr std::int64_t kUnitsPerByte = 1'000'000'000'000;

// For division, which compilers make faster without a sign.
__extension__ typedef unsigned __int128 Unsigned128;

std::vector<std::int64_t> capacities_of(const Topology& topology) {
  std::vector<std::int64_t> capacities;
  capacities.reserve(to_index(topology.resource_count()));
  for (std::int32_t id = 0; id < topology.resource_count(); ++id)
    capacities.push_back(topology.resource_bytes_per_s(ResourceId{id}));
  return capacities;
}

std::int32_t longest_route(const Topology& topology) {
  std::size_t longest = 1;
  for (const RouteRule& rule : topology.node().rules) longest = std::max(longest, rule.hops.size());
  return static_cast<std::int32_t>(longest);
}

}  // namespace

std::int64_t later_ps(std::int64_t now_ps, Int128 delay_ps) {
  if (delay_ps > kMaxTimePs - now_ps)
    throw InputError("simulated time: expected an end within 2^62 ps (53 days), found a later one");
  return now_ps + static_cast<std::int64_t>(delay_ps);
}

Flows::Flows(const Topology& topology, FlowObserver* observer)
    : topology_(topology),
      observer_(observer),
      shares_(capacities_of(topology), longest_route(topology)),
      uses_(to_index(topology.resource_count())),
      busy_since_ps_(uses_.size(), 0) {}

std::int32_t Flows::open(const Transit& transit, std::int64_t now_ps) {
  if (free_.empty()) {
    if (transits_.size() >= to_index(kMaxInFlight))
      throw InputError(fmt::format(
          "simulation: expected at most {} transfers at one time, found more", kMaxInFlight));
    free_.push_back(static_cast<std::int32_t>(transits_.size()));
    transits_.emplace_back();
    for (auto* column : {&starts_ps_, &sequences_, &changed_ps_}) column->push_back(0);
    remaining_.push_back(0);
  }
  std::int32_t flow = free_.back();
  free_.pop_back();
  transits_[flow] = transit;
  starts_ps_[flow] = now_ps;
  sequences_[flow] = next_sequence_++;
  return flow;
}

std::int64_t Flows::latency_ps(std::int32_t flow) const {
  const Transit& carried = transit(flow);
  if (carried.terms) return carried.terms->latency_ps;
  return topology_.rule(carried.source, carried.destination).latency_ps;
}

void Flows::close(std::int32_t flow) { free_.push_back(flow); }

void Flows::join(std::int32_t flow, std::int64_t now_ps) {
  const Transit& carried = transit(flow);
  const RouteRule& rule = topology_.rule(carried.source, carried.destination);
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
  shares_.add(flow, path_, cap);
  for (ResourceId resource : path_) {
    ResourceUse& use = uses_[resource];
    if (use.bytes > kMaxBytes - carried.bytes)
      throw InputError(fmt::format("resource {}: expected at most 2^62 bytes in all, found more",
                                   topology_.resource_name(resource)));
    use.bytes += carried.bytes;
    if (shares_.load(resource) == 1) busy_since_ps_[resource] = now_ps;
  }
  remaining_[flow] = Int128{carried.bytes} * kUnitsPerByte;
  changed_ps_[flow] = now_ps;
}

void Flows::solve(std::int64_t now_ps) {
  shares_.solve(changes_);
  for (const FairShare::Change& change : changes_) {
    std::int32_t at = change.flow;
    remaining_[at] -= Int128{change.old_rate} * (now_ps - changed_ps_[at]);
    changed_ps_[at] = now_ps;
    // A flow that has not finished has work left, so nothing here is negative.
    auto remaining = static_cast<Unsigned128>(remaining_[at]);
    auto rate = static_cast<std::uint64_t>(shares_.rate(change.flow));
    finishes_ps_.set(change.flow,
                     later_ps(now_ps, static_cast<Int128>((remaining + rate - 1) / rate)));
  }
  if (observer_) observer_->solved(now_ps, shares_, changes_);
}

void Flows::retire(std::int64_t now_ps, std::vector<std::int32_t>& finished) {
  finished.clear();
  finishes_ps_.find_minimum(finished);
  auto earlier = [this](std::int32_t a, std::int32_t b) { return sequences_[a] < sequences_[b]; };
  if (!std::is_sorted(finished.begin(), finished.end(), earlier))
    std::sort(finished.begin(), finished.end(), earlier);
  for (std::int32_t flow : finished) {
    RESHARD_CHECK(
        finishes_ps_.at(flow) == now_ps,
        fmt::format("flow {} finishes at {}, now {}", flow, finishes_ps_.at(flow), now_ps));
    finishes_ps_.set(flow, MinimumTree::kNever);
    shares_.remove(flow);
    if (observer_)
      observer_->finished(
          now_ps, shares_, flow,
          Int128{shares_.rate(flow)} * (now_ps - changed_ps_[flow]) - remaining_[flow]);
    for (ResourceId resource : shares_.path(flow))
      if (shares_.load(resource) == 0) uses_[resource].busy_ps += now_ps - busy_since_ps_[resource];
  }
}

}  // namespace reshard::sim
