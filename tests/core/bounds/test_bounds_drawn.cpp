// SPDX-License-Identifier: BSD-3-Clause
// The parts of bounds on odd machines: each line of the data is one machine with a dozen requests,
// with a separate digest for each part. Other tests check that they are right; this one that
// nothing has changed. To accept an intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_bounds "parts of bounds*"
//
// rewrites tests/core/bounds/data/drawn_bounds.txt.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <string>

#include "core/base/digest.h"
#include "core/bounds/bounds.h"
#include "tests/support/bounds_cases.h"
#include "tests/support/cases.h"
#include "tests/support/least_volume.h"
#include "tests/support/odd_machine.h"
#include "tests/support/pinned.h"

namespace reshard::test {
namespace {

constexpr const char* kPath = "tests/core/bounds/data/drawn_bounds.txt";
constexpr std::uint64_t kMachines = 500;

// Of all that was added, as text.
class ShortDigest {
 public:
  void add(Int128 value) {
    hasher_.add(static_cast<std::int64_t>(value >> 64));
    hasher_.add(static_cast<std::int64_t>(value));
  }
  void add(std::string_view word) { hasher_.add(word); }
  std::string text() const { return hasher_.digest().hex().substr(0, 6); }

 private:
  Hasher hasher_;
};

struct Parts {
  ShortDigest sets, capacities, demand, prices, cut, volume, price, holder, latency, limit;
  std::string text() const {
    return fmt::format("{} {} {} {} {} {} {} {} {} {}", sets.text(), capacities.text(),
                       demand.text(), prices.text(), cut.text(), volume.text(), price.text(),
                       holder.text(), latency.text(), limit.text());
  }

  void add(const CutSets& of) {
    for (std::size_t set = 0; set < of.size(); ++set) {
      sets.add(of.name(set));
      capacities.add(of.capacity_in(set));
      capacities.add(of.passage_into(set).latency_ps);
    }
    for (const CutLevel& level : of.levels()) {
      capacities.add(level.capacity);
      if (!level.covers_job) continue;
      capacities.add(level.passages.latency_ps);
      for (const SharedCapacity& choice : level.passages.choices)
        for (Int128 rate : {choice.inside, choice.between, choice.both}) capacities.add(rate);
    }
  }
  void add(const RequestDemand& of) {
    for (Int128 bytes : of.in_bytes) demand.add(bytes);
    for (Int128 bytes : of.receipts_bytes) demand.add(bytes);
    demand.add(of.entry_ps);
    demand.add(of.owner_latency_ps);
    for (const PriceDemand& level : of.prices) {
      for (Int128 bytes : level.alone_bytes) prices.add(bytes);
      prices.add(level.other_receipts_bytes);
      prices.add(level.fold_price);
      prices.add(level.fold_cost_bytes);
    }
  }
  void add(const Bound& bound) {
    cut.add(bound.cut_ps);
    volume.add(bound.volume_ps);
    price.add(bound.price_ps);
    holder.add(bound.holder_ps);
    latency.add(bound.latency_ps);
    limit.add(reshard::text(bound.limited_by()));
    limit.add(bound.time_ps());
  }
};

std::optional<Request> draw(Prng& prng, std::int32_t devices) {
  if (prng.one_in(2)) {
    DrawnPair pair = draw_pair(prng, devices);
    try {
      return Request(pair.source, pair.destination);
    } catch (const InputError&) {
      return {};
    }
  }
  std::int64_t scale = prng.pick(std::vector<std::int64_t>{1, 17, 300});
  return random_request(prng, devices, scale);
}

std::string line_of(std::uint64_t seed) {
  Prng prng(seed);
  Topology topology = odd_machine(prng);
  Parts parts;
  for (int drawn = 0; drawn < 12;) {
    std::optional<Request> request = draw(prng, static_cast<std::int32_t>(topology.devices()));
    if (!request) continue;
    ++drawn;
    parts.demand.add(test::least_volume_bytes(*request));
    for (Switches use : {Switches::Forward, Switches::Reduce}) {
      CutSets sets(topology, request->ranks(), use);
      RequestDemand demand = demand_of(*request, sets);
      parts.add(sets);
      parts.add(demand);
      parts.add(bound_of(demand, sets));
    }
  }
  return fmt::format("{} {}", seed, parts.text());
}

}  // namespace

TEST_CASE("parts of bounds are what they were") { check_lines(kPath, kMachines, line_of); }

}  // namespace reshard::test
