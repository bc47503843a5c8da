// SPDX-License-Identifier: BSD-3-Clause
// The bounds against every plan that moves whole elements: up to four elements on four ranks, each
// over any set of transfers, relays included, that takes it from its owners to all that need it.
// Latencies are 0, so a plan takes as long as its busiest resource.
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/bounds/bounds.h"
#include "core/topology/topology_text.h"
#include "tests/core/bounds/bounds_oracle.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"

namespace reshard::test {
namespace {

using Loads = std::vector<std::int64_t>;  // elements per resource

std::vector<std::pair<Rank, Rank>> pairs_of(const std::vector<Rank>& job) {
  std::vector<std::pair<Rank, Rank>> out;
  for (Rank from : job)
    for (Rank to : job)
      if (from != to) out.push_back({from, to});
  return out;
}

// Every rank that needs the item has it in the end; nobody sends what he never gets.
bool serves(const Item& item, const std::vector<std::pair<Rank, Rank>>& transfers) {
  std::set<Rank> have = item.holders.begin()->second;
  for (bool grows = true; grows;) {
    grows = false;
    for (auto [from, to] : transfers)
      if (have.contains(from)) grows = have.insert(to).second || grows;
  }
  return std::includes(have.begin(), have.end(), item.needers.begin(), item.needers.end());
}

bool at_most(const Loads& a, const Loads& b) {
  return std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>());
}

// The loads of all ways to serve one item, without those that another one undercuts everywhere.
std::vector<Loads> divisions_of(const Item& item, const std::vector<Rank>& job,
                                const Topology& topology) {
  std::vector<std::pair<Rank, Rank>> pairs = pairs_of(job);
  std::set<Loads> found;
  for (std::uint32_t chosen = 0; chosen < 1u << pairs.size(); ++chosen) {
    std::vector<std::pair<Rank, Rank>> transfers;
    Loads loads(to_index(topology.resource_count()), 0);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if ((chosen >> i & 1) == 0) continue;
      transfers.push_back(pairs[i]);
      for (ResourceId id : topology.route(pairs[i].first, pairs[i].second).resources)
        ++loads[to_index(id)];
    }
    if (transfers.size() <= job.size() && serves(item, transfers)) found.insert(loads);
  }
  std::vector<Loads> out;
  for (const Loads& loads : found)
    if (std::none_of(found.begin(), found.end(),
                     [&](const Loads& o) { return o != loads && at_most(o, loads); }))
      out.push_back(loads);
  return out;
}

std::int64_t busiest_ps(const Loads& loads, std::int64_t element_bytes, const Topology& topology) {
  std::int64_t time = 0;
  for (std::size_t i = 0; i < loads.size(); ++i)
    time = std::max(time, transfer_ps(Int128{loads[i]} * element_bytes,
                                      topology.resource_bytes_per_s(id_of<ResourceId>(i))));
  return time;
}

std::int64_t fastest_ps(const Items& items, const std::vector<Rank>& job,
                        const Topology& topology) {
  std::set<Loads> sums{Loads(to_index(topology.resource_count()), 0)};
  std::map<std::pair<std::set<Rank>, std::set<Rank>>, std::vector<Loads>> known;
  for (const Item& item : items.items) {
    auto [divisions, is_new] =
        known.try_emplace({item.holders.begin()->second, item.needers}, std::vector<Loads>{});
    if (is_new) divisions->second = divisions_of(item, job, topology);
    std::set<Loads> next;
    for (const Loads& sum : sums)
      for (Loads loads : divisions->second) {
        std::transform(loads.begin(), loads.end(), sum.begin(), loads.begin(), std::plus<>());
        next.insert(loads);
      }
    sums = next;
  }
  std::int64_t fastest = std::numeric_limits<std::int64_t>::max();
  for (const Loads& loads : sums)
    fastest = std::min(fastest, busiest_ps(loads, items.width_bytes, topology));
  return fastest;
}

std::vector<Topology> small_machines() {
  std::string head = "reshard-topology 1\nname m\ncount nodes\n";
  std::vector<Topology> out;
  for (const char* text :
       {"devices 2\nport a 5GB/s\nport n 1GB/s\nroute within via a.out a.in latency 0 transport "
        "nvlink\nroute between via n.out n.in latency 0 transport network\n",
        "devices 3\nport a 9GB/s\nport n 1GB/s\nroute within via a.out a.in latency 0 transport "
        "nvlink\nroute between via n.out n.in latency 0 transport network\n",
        // The port of both kinds of routes is one, the NICs belong to the node.
        "devices 3\nport a 4GB/s\nshared nic-out 3GB/s\nshared nic-in 3GB/s\nroute within via "
        "a.out a.in latency 0 transport pcie\n"
        "route between via a.out source.nic-out destination.nic-in a.in latency 0 transport "
        "network\n",
        "devices 4\nport a 4GB/s\nshared up 3GB/s\ngroup low 0-1\ngroup high 2-3\n"
        "route low high via a.out up a.in latency 0 transport pcie\n"
        "route low via a.out a.in latency 0 transport pcie\n"
        "route high via a.out a.in latency 0 transport pcie\n"
        "route between via a.out a.in latency 0 transport network\n"})
    out.push_back(build_topology(parse_topology(head + text, "m.topo"), 2));
  return out;
}

TEST_CASE("no plan of whole elements is faster than the bound") {
  std::vector<Topology> topologies = small_machines();
  std::map<LimitedBy, std::int64_t> limited_by;
  std::int64_t equal = 0, compared = 0;
  for (std::uint64_t seed = 0; seed < 1500 / test::kOneOf; ++seed) {
    Prng prng(seed);
    const Topology& topology = prng.pick(topologies);
    std::vector<Rank> ranks;
    for (std::int32_t r = 0; r < topology.devices(); ++r) ranks.push_back(static_cast<Rank>(r));
    if (prng.one_in(2)) prng.shuffle(ranks);
    ranks.resize(4);
    auto mesh_of = [&] {
      prng.one_in(2) ? prng.shuffle(ranks) : std::sort(ranks.begin(), ranks.end());
      std::vector<std::int32_t> shape{static_cast<std::int32_t>(prng.between(1, 2)),
                                      static_cast<std::int32_t>(prng.between(1, 2))};
      auto size = shape[0] * shape[1];
      return std::make_shared<const Mesh>(shape,
                                          std::vector<Rank>(ranks.begin(), ranks.begin() + size));
    };
    auto placement = [&] { return prng.one_in(2) ? Placement::replicate() : Placement::shard(0); };
    Shape shape{prng.between(1, 4)};
    // One draw after the other: the order of arguments is the compiler's.
    auto layout_of = [&] {
      MeshRef mesh = mesh_of();
      Placement first = placement(), second = placement();
      return Layout(shape, DType::F32, mesh, {first, second});
    };
    Layout source = layout_of(), destination = layout_of();
    Request request(source, destination);
    CAPTURE(seed, request.text());
    Bound bound = bound_of(request, topology);
    std::int64_t fastest = fastest_ps(items_of(request), request.ranks(), topology);
    CAPTURE(bound.cut_ps, bound.volume_ps, bound.price_ps, bound.holder_ps);
    REQUIRE(bound.time_ps() <= fastest);
    if (fastest == 0) continue;
    ++compared;
    equal += bound.time_ps() == fastest;
    ++limited_by[bound.limited_by()];
  }
  CHECK(compared > 800 / test::kOneOf);
  CHECK(equal > 300 / test::kOneOf);
  CHECK(limited_by[LimitedBy::Price] + limited_by[LimitedBy::Holder] > 4 / test::kOneOf);
}

}  // namespace
}  // namespace reshard::test
