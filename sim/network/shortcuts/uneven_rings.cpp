// SPDX-License-Identifier: BSD-3-Clause
// Rings with members that do not end a round together: their links differ, or the elements of an
// all_reduce are not divisible by its n members, so that chunks of two sizes circulate. If no two
// transfers of a round cross one resource, each has the rate of its links alone, and ends are sums
// and maxima. With T(r, i) the time at which member i begins round r, and a transfer from i to j
//
//     start = max( T(r, i), T(r, j) )
//     end   = start + latency + ceil( bytes / rate )
//     T(r + 1, i) = the latest end of what i sends and receives in round r
//
// Later rounds never meet earlier ones on a resource: its only sender waits for itself. In round r
// of an all_reduce the member at position p sends chunk p - r - 1 modulo n; the first
// `larger_chunks` chunks are the larger ones. So each transfer needs only two durations, and a
// round is a walk over two arrays, whereas running its transfers costs hundreds of operations each.
#include <algorithm>
#include <array>

#include "core/base/errors.h"
#include "sim/network/shortcuts/whole_steps.h"

namespace reshard::sim {

// The transfer from a member to another, which is repeated in every round.
struct WholeSteps::RingEdge {
  std::int32_t source, destination;         // parts of the operation
  std::array<std::int64_t, 2> bytes;        // of a smaller chunk, of a larger one
  std::array<std::int64_t, 2> duration_ps;  // the same
};

bool WholeSteps::run_rings(const Transfers& transfers, std::span<const Rank> ranks) {
  std::vector<RingEdge> edges;
  auto n = to_index(transfers.group_size());
  for (std::size_t group = 0; group * n < ranks.size(); ++group) {
    edges.clear();
    for (std::size_t i = 0; i < n; ++i)
      if (!add_edges(transfers, ranks, static_cast<std::int32_t>(group * n + i), edges))
        return false;
    if (!run_group(transfers, static_cast<std::int32_t>(group), edges)) return false;
  }
  return true;
}

// False if two transfers share a resource, or a time exceeds its limit.
bool WholeSteps::add_edges(const Transfers& transfers, std::span<const Rank> ranks,
                           std::int32_t part, std::vector<RingEdge>& edges) {
  std::int32_t n = transfers.group_size(), position = transfers.ring_position(part), last = 0,
               zeroth = 0;
  if (!transfers.equal_rounds()) {
    // The member sends the last chunk in round `position`, and chunk 0 one round before or, at
    // position 0, in round n - 1.
    last = position;
    zeroth = position == 0 ? n - 1 : position - 1;
  }
  std::size_t first = edges.size(), at = first;
  bool ok = true;
  transfers.for_each_sent(
      part, last,
      [&](std::int32_t source, std::int32_t destination, std::int64_t bytes, const Terms* terms) {
        edges.push_back({source, destination, {bytes, 0}, {}});
        ok = ok && terms == nullptr;
      });
  transfers.for_each_sent(part, zeroth,
                          [&](std::int32_t, std::int32_t, std::int64_t bytes, const Terms*) {
                            edges[at++].bytes[1] = bytes;
                          });
  for (std::size_t i = first; ok && i < edges.size(); ++i) {
    RingEdge& edge = edges[i];
    Rank from = ranks[to_index(edge.source)], to = ranks[to_index(edge.destination)];
    if (from == to) return false;
    const RouteRule& rule = topology_.rule(from, to);
    std::int64_t rate = rule.cap_bytes_per_s.value_or(FairShare::kNoCap);
    for (const Hop& hop : rule.hops)
      rate = std::min(rate, topology_.resource_bytes_per_s(topology_.resource(hop, from, to)));
    for (std::size_t size = 0; size < 2; ++size) {
      Int128 moving_ps = ceil_div(Int128{edge.bytes[size]} * kUnitsPerByte, Int128{rate});
      if (moving_ps > kMaxTimePs - rule.latency_ps) return false;
      edge.duration_ps[size] = rule.latency_ps + static_cast<std::int64_t>(moving_ps);
    }
    ok = Int128{edge.duration_ps[1]} * transfers.rounds() <= kMaxTimePs &&
         add_edge_use(transfers, ranks, edge);
  }
  return ok;
}

// Adds the resource use of all rounds.
bool WholeSteps::add_edge_use(const Transfers& transfers, std::span<const Rank> ranks,
                              const RingEdge& edge) {
  std::int32_t n = transfers.group_size(), position = transfers.ring_position(edge.source);
  std::int64_t larger = transfers.expansion(edge.source / n).larger_chunks();
  // It sends every chunk twice, except chunks `position` and `position` + 1, which it sends once.
  std::int64_t large = 2 * larger - (position < larger) - ((position + 1) % n < larger),
               small = transfers.rounds() - large;
  Rank from = ranks[to_index(edge.source)], to = ranks[to_index(edge.destination)];
  const RouteRule& rule = topology_.rule(from, to);
  Int128 bytes = Int128{small} * edge.bytes[0] + Int128{large} * edge.bytes[1];
  RouteUse& route = routes_[&rule - topology_.node().rules.data()];
  if (bytes + route.bytes > kMaxBytes) return false;
  route.bytes += static_cast<std::int64_t>(bytes);
  route.flows += transfers.rounds();
  if (edge.bytes[1] == 0) return true;
  ResourceUse use{static_cast<std::int64_t>(bytes),
                  small * (edge.duration_ps[0] - rule.latency_ps) +
                      large * (edge.duration_ps[1] - rule.latency_ps)};
  for (const Hop& hop : rule.hops) {
    ResourceId resource = topology_.resource(hop, from, to);
    if (link_of_[resource] != kNone) return false;
    link_of_[resource] = static_cast<LinkIndex>(links_.size());
    links_.push_back({resource, use});
  }
  return true;
}

namespace {

// The transfer from each member of a ring to one other, by the member's position.
struct Ring {
  explicit Ring(std::size_t n)
      : to(n, -1),
        from(n),
        duration_ps{std::vector<std::int64_t>(n), std::vector<std::int64_t>(n)},
        end_ps(n) {}

  std::vector<std::int32_t> to, from;
  std::array<std::vector<std::int64_t>, 2> duration_ps;  // of smaller chunks, of larger ones
  std::vector<std::int64_t> end_ps;                      // of the round

  // Sends from the members at positions begin to end - 1, which have chunks of the same size.
  void send(const std::vector<std::int64_t>& now, std::int32_t begin, std::int32_t end,
            std::size_t size) {
    const std::int64_t *come = now.data(), *taken = duration_ps[size].data();
    const std::int32_t* other = to.data();
    std::int64_t* out = end_ps.data();
    for (std::int32_t i = begin; i < end; ++i)
      out[i] = std::max(come[i], come[other[i]]) + taken[i];
  }
  // Sets the time at which each member is done with what it sends and receives.
  void arrive(std::vector<std::int64_t>& next) const {
    const std::int64_t* sent = end_ps.data();
    const std::int32_t* other = from.data();
    std::int64_t* out = next.data();
    for (std::size_t i = 0; i < next.size(); ++i)
      out[i] = std::max(out[i], std::max(sent[i], sent[other[i]]));
  }
};

}  // namespace

bool WholeSteps::run_group(const Transfers& transfers, std::int32_t group,
                           const std::vector<RingEdge>& edges) {
  std::int32_t n = transfers.group_size(), first = group * n;
  std::int32_t larger = transfers.expansion(group).larger_chunks();
  auto position = [&](std::int32_t part) { return transfers.ring_position(part); };
  // If some members send to two others, members that send to one repeat that transfer; members that
  // receive from one count as their own second sender. Neither changes a maximum.
  std::vector<Ring> rings(edges.size() > to_index(n) ? 2 : 1, Ring(to_index(n)));
  for (Ring& ring : rings)
    for (std::size_t i = 0; i < ring.from.size(); ++i) ring.from[i] = static_cast<std::int32_t>(i);
  for (const RingEdge& edge : edges) {
    auto at = to_index(position(edge.source));
    std::int32_t to = position(edge.destination);
    std::size_t which = rings[0].to[at] < 0 ? 0 : 1;
    for (std::size_t k = which; k < rings.size(); ++k) {
      rings[k].to[at] = to;
      for (std::size_t size = 0; size < 2; ++size)
        rings[k].duration_ps[size][at] = edge.duration_ps[size];
    }
    std::int32_t& from = rings[which].from[to_index(to)];
    if (from != to) return false;
    from = static_cast<std::int32_t>(at);
  }
  if (std::ranges::count(rings[0].to, -1) > 0) return false;
  std::vector<std::int64_t> now(to_index(n), 0), next(to_index(n), 0);
  for (std::int32_t round = 0; round < transfers.rounds(); ++round) {
    // Positions lo .. lo + larger - 1, modulo n, send larger chunks.
    std::int32_t lo = (round + 1) % n, wrapped = std::max(0, lo + larger - n),
                 hi = std::min(n, lo + larger);
    std::ranges::fill(next, 0);
    for (Ring& ring : rings) {
      ring.send(now, 0, wrapped, 1);
      ring.send(now, wrapped, lo, 0);
      ring.send(now, lo, hi, 1);
      ring.send(now, hi, n, 0);
      ring.arrive(next);
    }
    now.swap(next);
  }
  for (std::int32_t part = first; part < first + n; ++part)
    durations_ps_[to_index(part)] = now[to_index(position(part))];
  return true;
}

}  // namespace reshard::sim
