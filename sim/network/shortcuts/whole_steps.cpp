// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/shortcuts/whole_steps.h"

#include <algorithm>
#include <tuple>

#include "core/base/errors.h"

namespace reshard::sim {

WholeSteps::WholeSteps(const Topology& topology)
    : topology_(topology),
      stride_(longest_route(topology)),
      round_routes_(topology.node().rules.size()),
      link_of_(to_index(topology.resource_count()), kNone),
      routes_(round_routes_.size()) {}

void WholeSteps::clear(std::size_t parts) {
  for (const Link& link : links_) link_of_[link.resource] = kNone;
  links_.clear();
  crossed_.clear();
  std::fill(routes_.begin(), routes_.end(), RouteUse{});
  durations_ps_.assign(parts, 0);
}

bool WholeSteps::takes(const Transfers& transfers, std::span<const Rank> ranks) {
  // Equal rounds are computed once; for other rounds, uneven rings are faster if they apply.
  bool equal = transfers.equal_rounds(), taken = false;
  for (bool as_ring : {!equal, equal}) {
    if (taken || (as_ring && !transfers.is_ring())) continue;
    clear(ranks.size());
    taken = as_ring ? run_rings(transfers, ranks) : run(transfers, ranks);
  }
  // If the step has to be run instead, running it needs the memory.
  sent_ = {};
  paths_ = {};
  return taken;
}

bool WholeSteps::run(const Transfers& transfers, std::span<const Rank> ranks) {
  bool equal = transfers.equal_rounds();
  for (std::int32_t round = 0; round < (equal ? 1 : transfers.rounds()); ++round)
    if (!run_round(transfers, round, ranks) || !add_round(equal ? transfers.rounds() : 1))
      return false;
  return true;
}

bool WholeSteps::run_round(const Transfers& transfers, std::int32_t round,
                           std::span<const Rank> ranks) {
  clear_round(ranks.size());
  if (!collect(transfers, round, ranks) || !share()) return false;
  find_limits();
  if (!find_ends() || !all_known()) return false;
  // The next round can only be computed as a whole if all parts begin it together.
  return transfers.rounds() == 1 || std::all_of(ends_.begin(), ends_.end(), [&](const End& end) {
           return end.exact >= 0 && end.exact == ends_[0].exact;
         });
}

void WholeSteps::clear_round(std::size_t parts) {
  sent_.clear();
  paths_.clear();
  for (LinkIndex at : crossed_) links_[at] = {links_[at].resource, links_[at].use};
  crossed_.clear();
  ends_.assign(parts, {});
  std::fill(round_routes_.begin(), round_routes_.end(), RouteUse{});
}

bool WholeSteps::collect(const Transfers& transfers, std::int32_t round,
                         std::span<const Rank> ranks) {
  bool ok = true;
  auto add = [&](std::int32_t source, std::int32_t destination, std::int64_t bytes,
                 const Terms* terms) {
    Rank from = ranks[to_index(source)], to = ranks[to_index(destination)];
    if (from == to) ok = false;
    if (!ok) return;
    const RouteRule& rule = topology_.rule(from, to);
    RouteUse& use = round_routes_[&rule - topology_.node().rules.data()];
    use.bytes += bytes;
    ++use.flows;
    std::int64_t latency_ps = terms ? terms->latency_ps : rule.latency_ps;
    if (bytes == 0) {
      for (std::int32_t part : {source, destination}) ends_[part].add(latency_ps, true);
      return;
    }
    std::int64_t cap = rule.cap_bytes_per_s.value_or(FairShare::kNoCap);
    if (terms) cap = std::min(cap, terms->cap_bytes_per_s);
    sent_.push_back({source, destination, bytes, cap});
    for (const Hop& hop : rule.hops) {
      paths_.push_back(link_of(topology_.resource(hop, from, to)));
      ok = cross(paths_.back(), bytes, latency_ps) && ok;
    }
    paths_.resize(sent_.size() * stride_, kNone);
  };
  for (std::int32_t part = 0; ok && part < static_cast<std::int32_t>(ranks.size()); ++part)
    transfers.for_each_sent(part, round, add);
  return ok;
}

inline WholeSteps::LinkIndex WholeSteps::link_of(ResourceId resource) {
  LinkIndex& at = link_of_[resource];
  if (at == kNone) {
    at = static_cast<LinkIndex>(links_.size());
    links_.push_back({resource});
  }
  return at;
}

// False if transfers that share the resource reach it at different times.
inline bool WholeSteps::cross(LinkIndex at, std::int64_t bytes, std::int64_t latency_ps) {
  Link& link = links_[at];
  if (link.flows == 0) {
    crossed_.push_back(at);
    link.latency_ps = latency_ps;
    link.each_bytes = bytes;
  }
  ++link.flows;
  link.bytes += bytes;
  link.limiting = link.limiting && link.each_bytes == bytes;
  return link.latency_ps == latency_ps;
}

bool WholeSteps::share() {
  for (LinkIndex at : crossed_) {
    Link& link = links_[at];
    link.share = topology_.resource_bytes_per_s(link.resource) / link.flows;
    if (link.share == 0) return false;
  }
  return true;
}

inline std::span<const WholeSteps::LinkIndex> WholeSteps::path(std::size_t sent) const {
  const LinkIndex* first = &paths_[sent * stride_];
  return {first, std::find(first, first + stride_, kNone)};
}

// Finds the least rate that every transfer keeps, and the resources that are limiting.
void WholeSteps::find_limits() {
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    Sent& sent = sent_[i];
    std::span<const LinkIndex> hops = path(i);
    LinkIndex least = *std::min_element(hops.begin(), hops.end(), [&](LinkIndex a, LinkIndex b) {
      return std::tie(links_[a].share, links_[a].resource) <
             std::tie(links_[b].share, links_[b].resource);
    });
    if (links_[least].share < sent.rate) {
      sent.rate = links_[least].share;
      sent.limit = least;
    }
    for (LinkIndex hop : hops)
      if (hop != sent.limit) links_[hop].limiting = false;
  }
}

inline void WholeSteps::End::add(std::int64_t end, bool is_exact) {
  latest = std::max(latest, end);
  if (is_exact) exact = std::max(exact, end);
}

// False if an end might exceed the time limit.
bool WholeSteps::find_ends() {
  // Most transfers equal the previous one.
  std::int64_t bytes = 0, rate = 0;
  Int128 moving_ps = 0;
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    const Sent& sent = sent_[i];
    if (sent.bytes != bytes || sent.rate != rate) {
      bytes = sent.bytes;
      rate = sent.rate;
      moving_ps = ceil_div(Int128{bytes} * kUnitsPerByte, Int128{rate});
    }
    bool exact = sent.limit == kNone || links_[sent.limit].limiting;
    std::span<const LinkIndex> hops = path(i);
    if (moving_ps > kMaxTimePs - links_[hops[0]].latency_ps) return false;
    std::int64_t end_ps = links_[hops[0]].latency_ps + static_cast<std::int64_t>(moving_ps);
    for (std::int32_t part : {sent.source, sent.destination}) ends_[part].add(end_ps, exact);
    for (LinkIndex hop : hops) links_[hop].end.add(end_ps, exact);
  }
  return true;
}

bool WholeSteps::all_known() const {
  auto known = [](const End& end) { return end.latest == end.exact; };
  return std::all_of(ends_.begin(), ends_.end(), known) &&
         std::all_of(crossed_.begin(), crossed_.end(),
                     [&](LinkIndex at) { return known(links_[at].end); });
}

// False if a sum exceeds its limit; the step is then run, which reports the error.
bool WholeSteps::add_round(std::int64_t times) {
  for (LinkIndex at : crossed_) {
    Link& link = links_[at];
    Int128 bytes = link.bytes * times + link.use.bytes;
    if (bytes > kMaxBytes) return false;
    link.use.bytes = static_cast<std::int64_t>(bytes);
    link.use.busy_ps += (link.end.latest - link.latency_ps) * times;
  }
  for (std::size_t rule = 0; rule < routes_.size(); ++rule) {
    routes_[rule].bytes += round_routes_[rule].bytes * times;
    routes_[rule].flows += round_routes_[rule].flows * times;
  }
  for (std::size_t part = 0; part < durations_ps_.size(); ++part) {
    Int128 end_ps =
        durations_ps_[part] + Int128{std::max<std::int64_t>(ends_[part].latest, 0)} * times;
    if (end_ps > kMaxTimePs) return false;
    durations_ps_[part] = static_cast<std::int64_t>(end_ps);
  }
  return true;
}

void WholeSteps::add_uses(Flows& flows) const {
  for (const Link& link : links_) flows.add_use(link.resource, link.use);
  for (std::size_t rule = 0; rule < routes_.size(); ++rule)
    flows.add_route_use(rule, routes_[rule]);
}

}  // namespace reshard::sim
