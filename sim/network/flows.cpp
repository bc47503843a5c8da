// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/flows.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"

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

Flows::Flows(const Topology& topology, FlowObserver* observer, bool soles)
    : topology_(topology),
      observer_(observer),
      soles_allowed_(soles),
      sole_on_(to_index(topology.resource_count()), kNone),
      uses_(to_index(topology.resource_count())),
      route_uses_(topology.node().rules.size()),
      busy_since_ps_(uses_.size(), 0) {
  if (observer_) begin_sharing();
}

void Flows::begin_sharing() {
  if (!shares_) shares_.emplace(capacities_of(topology_), longest_route(topology_));
}

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
  begin_sharing();
  if (free_.empty()) {
    if (transits_.size() >= to_index(kMaxInFlight))
      throw InputError(fmt::format(
          "simulation: expected at most {} transfers at the same time, found more", kMaxInFlight));
    free_.push_back(static_cast<std::int32_t>(transits_.size()));
    transits_.emplace_back();
    rules_.push_back(nullptr);
    soles_.emplace_back();
    allowed_.push_back(kRatioOne);
    shares_since_ps_.push_back(kNone);
    shares_work_.push_back(0);
    for (auto* column : {&starts_ps_, &sequences_}) column->push_back(0);
  }
  std::int32_t flow = free_.back();
  free_.pop_back();
  transits_[flow] = transit;
  starts_ps_[flow] = now_ps;
  allowed_[flow] = kRatioOne;
  shares_since_ps_[flow] = kNone;
  sequences_[flow] = next_sequence_++;
  const RouteRule& rule = topology_.rule(transit.source, transit.destination);
  rules_[flow] = &rule;
  add_route_use(to_index(&rule - topology_.node().rules.data()), {transit.bytes, 1});
  std::int64_t latency_ps = transit.terms ? transit.terms->latency_ps : rule.latency_ps;
  return {flow, latency_ps + delay_ps(flow)};
}

// Latency added by faults.
std::int64_t Flows::delay_ps(std::int32_t flow) {
  std::int64_t delay = 0;
  if (!delays_ps_.empty()) {
    find_path(flow);
    for (ResourceId resource : path_) delay += delays_ps_[resource];
  }
  for (Rank rank : {transit(flow).source, transit(flow).destination})
    if (auto it = rank_delays_ps_.find(rank); it != rank_delays_ps_.end()) delay += it->second;
  return delay;
}

void Flows::close(std::int32_t flow) { free_.push_back(flow); }

void Flows::find_path(std::int32_t flow) {
  const Transit& carried = transit(flow);
  path_.clear();
  for (const Hop& hop : rules_[flow]->hops)
    path_.push_back(topology_.resource(hop, carried.source, carried.destination));
}

std::optional<std::int64_t> Flows::join(std::int32_t flow, std::int64_t now_ps) {
  const Transit& carried = transit(flow);
  find_path(flow);
  std::int64_t cap = cap_of(flow);
  for (ResourceId resource : path_) add_use(resource, {carried.bytes, 0});
  if (soles_allowed_ && is_alone(now_ps)) return begin_sole(flow, cap, now_ps);
  for (const Hop& hop : rules_[flow]->hops)
    end_sole_on(topology_.resource(hop, carried.source, carried.destination), now_ps);
  find_path(flow);
  share(flow, cap, Int128{carried.bytes} * kUnitsPerByte, now_ps);
  return std::nullopt;
}

// Cap of the flow; expects its path in path_.
std::int64_t Flows::cap_of(std::int32_t flow) const {
  std::int64_t cap = rules_[flow]->cap_bytes_per_s.value_or(FairShare::kNoCap);
  if (const Terms* terms = transit(flow).terms) cap = std::min(cap, terms->cap_bytes_per_s);
  if (allowed_[flow] == kRatioOne) return cap;
  for (ResourceId resource : path_) cap = std::min(cap, shares_->capacity(resource));
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(Int128{cap} * allowed_[flow] / kRatioOne));
}

// Removes the flow from those that share; returns its remaining work.
Int128 Flows::take_out(std::int32_t flow, std::int64_t now_ps) {
  Int128 left =
      shares_since_ps_[flow] == now_ps ? shares_work_[flow] : -shares_->excess(flow, now_ps);
  shares_->remove(flow, now_ps);
  shares_since_ps_[flow] = kNone;
  if (observer_) observer_->finished(now_ps, *shares_, flow, 0);
  find_path(flow);
  for (ResourceId resource : path_)
    if (shares_->load(resource) == 0) uses_[resource].busy_ps += now_ps - busy_since_ps_[resource];
  return left;
}

void Flows::set_share(std::int32_t flow, std::int64_t share, std::int64_t now_ps) {
  if (allowed_[flow] == share) return;
  allowed_[flow] = share;
  if (shares_since_ps_[flow] == kNone) return;
  Int128 left = take_out(flow, now_ps);
  this->share(flow, cap_of(flow), left, now_ps);
}

void Flows::add_work_left(std::int64_t now_ps, IndexVector<ResourceId, Int128>& to) const {
  for (std::size_t i = 0; i < transits_.size(); ++i) {
    const auto flow = static_cast<std::int32_t>(i);
    const Transit& carried = transits_[flow];
    Int128 left = 0;
    if (soles_[flow].end_ps != kNone)
      left = Int128{carried.bytes} * kUnitsPerByte -
             Int128{soles_[flow].rate} * (now_ps - soles_[flow].start_ps);
    else if (shares_since_ps_[flow] == now_ps)
      left = shares_work_[flow];
    else if (shares_since_ps_[flow] != kNone)
      left = -shares_->excess(flow, now_ps);
    if (left <= 0) continue;
    for (const Hop& hop : rules_[flow]->hops)
      to[topology_.resource(hop, carried.source, carried.destination)] += left;
  }
}

// ---- faults

void Flows::happen(const Fault& fault, std::int64_t now_ps) {
  begin_sharing();
  if (fault.kind == Fault::Kind::RankLatency) rank_delays_ps_[fault.rank] = fault.amount;
  if (fault.kind == Fault::Kind::LinkLatency) {
    delays_ps_.resize(uses_.size(), 0);
    delays_ps_[fault.resource] = fault.amount;
  }
  if (fault.kind == Fault::Kind::LinkShare) set_capacity(fault.resource, fault.amount, now_ps);
}

// All flows that cross the resource start again, with their remaining work.
void Flows::set_capacity(ResourceId resource, std::int64_t share, std::int64_t now_ps) {
  down_.resize(uses_.size(), false);
  std::vector<std::int32_t> rejoining;
  for (std::size_t i = 0; i < transits_.size(); ++i) {
    auto flow = static_cast<std::int32_t>(i);
    if (shares_since_ps_[flow] == kNone) continue;
    std::span<const ResourceId> path = shares_->path(flow);
    if (std::find(path.begin(), path.end(), resource) != path.end()) rejoining.push_back(flow);
  }
  std::sort(rejoining.begin(), rejoining.end(),
            [this](std::int32_t a, std::int32_t b) { return sequences_[a] < sequences_[b]; });
  for (std::int32_t flow : rejoining) shares_work_[flow] = take_out(flow, now_ps);
  down_[resource] = share == 0;
  std::int64_t full = topology_.resource_bytes_per_s(resource);
  shares_->set_capacity(
      resource,
      std::max<std::int64_t>(1, static_cast<std::int64_t>(Int128{full} * share / kRatioOne)));
  for (std::int32_t flow : stopped_) {
    rejoining.push_back(flow);
    if (observer_) observer_->held(flow, std::nullopt);
  }
  stopped_.clear();
  for (std::int32_t flow : rejoining) {
    find_path(flow);
    this->share(flow, cap_of(flow), shares_work_[flow], now_ps);
  }
}

bool Flows::waits_for_link(std::int32_t flow) {
  if (down_.empty()) return false;
  auto down =
      std::find_if(path_.begin(), path_.end(), [this](ResourceId id) { return is_down(id); });
  if (down == path_.end()) return false;
  stopped_.push_back(flow);
  if (observer_) observer_->held(flow, *down);
  return true;
}

std::optional<Flows::Stopped> Flows::stopped() const {
  if (stopped_.empty()) return std::nullopt;
  std::int32_t flow = *std::min_element(
      stopped_.begin(), stopped_.end(),
      [this](std::int32_t a, std::int32_t b) { return sequences_[a] < sequences_[b]; });
  for (const Hop& hop : rules_[flow]->hops) {
    ResourceId resource = topology_.resource(hop, transit(flow).source, transit(flow).destination);
    if (is_down(resource)) return Stopped{flow, resource};
  }
  return std::nullopt;
}

// A sole flow on the resource shares from now on, unless it ends now.
void Flows::end_sole_on(ResourceId resource, std::int64_t now_ps) {
  std::int32_t flow = sole_on_[resource];
  if (flow == kNone || soles_[flow].end_ps == now_ps) return;
  Sole sole = soles_[flow];
  end_sole(flow, now_ps);
  share(flow, sole.cap,
        Int128{transit(flow).bytes} * kUnitsPerByte - Int128{sole.rate} * (now_ps - sole.start_ps),
        now_ps);
}

// Whether path_ has no other flow; flows that end now do not count.
bool Flows::is_alone(std::int64_t now_ps) const {
  return std::all_of(path_.begin(), path_.end(), [&](ResourceId resource) {
    std::int32_t sole = sole_on_[resource];
    return shares_->load(resource) == 0 && (sole == kNone || soles_[sole].end_ps == now_ps);
  });
}

std::int64_t Flows::begin_sole(std::int32_t flow, std::int64_t cap, std::int64_t now_ps) {
  std::int64_t rate = cap, bytes = transit(flow).bytes;
  for (ResourceId resource : path_) {
    rate = std::min(rate, shares_->capacity(resource));
    if (sole_on_[resource] == kNone) busy_since_ps_[resource] = now_ps;
    sole_on_[resource] = flow;
  }
  if (last_sole_.bytes != bytes || last_sole_.rate != rate)
    last_sole_ = {bytes, rate, finish_ps(0, Int128{bytes} * kUnitsPerByte, rate)};
  soles_[flow] = {now_ps, later_ps(now_ps, last_sole_.duration_ps), rate, cap};
  return soles_[flow].end_ps;
}

bool Flows::ends_sole(std::int32_t flow, std::int64_t sequence, std::int64_t now_ps) {
  if (sequences_[flow] != sequence || soles_[flow].end_ps != now_ps) return false;
  end_sole(flow, now_ps);
  return true;
}

// Another flow may already have joined on one of its resources, at this instant.
void Flows::end_sole(std::int32_t flow, std::int64_t now_ps) {
  soles_[flow].end_ps = kNone;
  find_path(flow);
  for (ResourceId resource : path_) {
    if (sole_on_[resource] != flow) continue;
    sole_on_[resource] = kNone;
    if (shares_->load(resource) == 0) uses_[resource].busy_ps += now_ps - busy_since_ps_[resource];
  }
}

// The flow shares from now on; expects its path in path_.
void Flows::share(std::int32_t flow, std::int64_t cap, Int128 work, std::int64_t now_ps) {
  shares_work_[flow] = work;
  if (waits_for_link(flow)) return;
  for (ResourceId resource : path_)
    if (shares_->load(resource) >= shares_->capacity(resource))
      throw InputError(
          fmt::format("resource {}: expected at most one flow per byte/s, found more than {} flows",
                      topology_.resource_name(resource), shares_->capacity(resource)));
  shares_->add(flow, path_, cap, work);
  shares_since_ps_[flow] = now_ps;
  for (ResourceId resource : path_)
    if (shares_->load(resource) == 1 && sole_on_[resource] == kNone)
      busy_since_ps_[resource] = now_ps;
}

void Flows::solve(std::int64_t now_ps) {
  if (!shares_) return;
  shares_->solve(now_ps, observer_ ? &changes_ : nullptr);
  if (observer_) observer_->solved(now_ps, *shares_, changes_);
}

void Flows::retire(std::int64_t now_ps, std::vector<std::int32_t>& finished) {
  finished.clear();
  shares_->find_finished(now_ps, finished);
  auto earlier = [this](std::int32_t a, std::int32_t b) { return sequences_[a] < sequences_[b]; };
  if (!std::is_sorted(finished.begin(), finished.end(), earlier))
    std::sort(finished.begin(), finished.end(), earlier);
  for (std::int32_t flow : finished) {
    Int128 excess = observer_ ? shares_->excess(flow, now_ps) : 0;
    shares_->remove(flow, now_ps);
    shares_since_ps_[flow] = kNone;
    if (observer_) observer_->finished(now_ps, *shares_, flow, excess);
    for (ResourceId resource : shares_->path(flow))
      if (shares_->load(resource) == 0)
        uses_[resource].busy_ps += now_ps - busy_since_ps_[resource];
  }
}

}  // namespace reshard::sim
