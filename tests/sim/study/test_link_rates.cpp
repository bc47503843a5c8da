// SPDX-License-Identifier: BSD-3-Clause
// Rates of links over time: exact if every change is kept, and the right bytes however many changes
// are left out.
#include <catch2/catch.hpp>

#include "sim/network/engine.h"
#include "sim/study/link_rates.h"
#include "tests/sim/network/networks.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::test;

namespace {

constexpr Int128 kByte = 1'000'000'000'000;

Timeline observed(const Workload& workload, const Topology& topology, sim::LinkRates& rates) {
  return sim::run(workload, topology, {.observer = &rates});
}

// {time, bytes by then}; work that is no whole byte is -1.
std::vector<std::array<std::int64_t, 2>> bytes_at(const sim::LinkRates& rates, ResourceId link) {
  std::vector<std::array<std::int64_t, 2>> out;
  for (const WorkDone& knot : rates.knots(link))
    out.push_back({knot.time_ps, knot.work % kByte == 0
                                     ? static_cast<std::int64_t>(knot.work / kByte)
                                     : std::int64_t{-1}});
  return out;
}

}  // namespace

TEST_CASE("a link's rate changes with its flows, and stands while there are none") {
  // Into 2: 30 and 10 bytes at half rate to 20,500; 20 bytes alone to 40,500; 500 of latency; 5.
  Plan plan = empty_plan(3);
  StepId first = plan.add_step(exchange({{0, 2, 30}, {1, 2, 10}}), {});
  plan.add_step(exchange({{0, 2, 5}}), {first});
  Topology topology = switched(3, kGB, 500);
  sim::LinkRates rates(topology.resource_count());
  Timeline t = observed(workload_of(std::make_shared<const Plan>(plan)), topology, rates);
  CHECK(t.end_ps == 46'000);
  using Knots = std::vector<std::array<std::int64_t, 2>>;
  CHECK(bytes_at(rates, into(2)) ==
        Knots{{500, 0}, {20'500, 20}, {40'500, 40}, {41'000, 40}, {46'000, 45}});
  CHECK(bytes_at(rates, out_of(0)) ==
        Knots{{500, 0}, {20'500, 10}, {40'500, 30}, {41'000, 30}, {46'000, 35}});
  CHECK(bytes_at(rates, out_of(2)).empty());
}

TEST_CASE("whatever the rates, a link has carried its bytes when its last flow ends") {
  Topology topology = switched(9, 333'333'331, 77);
  sim::LinkRates rates(topology.resource_count());
  Timeline t = observed(all_pairs(9, uneven_bytes), topology, rates);
  for (std::size_t link = 0; link < t.resources.size(); ++link) {
    const auto& knots = rates.knots(id_of<ResourceId>(link));
    REQUIRE(knots.size() > 2);
    CHECK(knots.front().work == 0);
    CHECK(knots.back().work == t.resources[link].bytes * kByte);
    for (std::size_t i = 1; i < knots.size(); ++i) {
      CHECK(knots[i - 1].time_ps < knots[i].time_ps);
      CHECK(knots[i - 1].work <= knots[i].work);
      CHECK(knots[i].work - knots[i - 1].work <=
            Int128{333'333'331} * (knots[i].time_ps - knots[i - 1].time_ps));
    }
  }
}

TEST_CASE("a link of many changes keeps some of them, from first to last") {
  // 5000 messages one after the other, each after its latency.
  Workload w;
  for (int i = 0; i < 5000; ++i) w.operations.push_back(message(0, 1, 1 + i % 7, i));
  Topology topology = switched(2, kGB, 500);
  sim::LinkRates rates(topology.resource_count());
  Timeline t = observed(w, topology, rates);
  const auto& knots = rates.knots(out_of(0));
  CHECK(knots.size() < sim::LinkRates::kMostKnots);
  CHECK(knots.size() > sim::LinkRates::kMostKnots / 4);
  CHECK((knots.front().time_ps == 500 && knots.back().time_ps == t.end_ps));
  CHECK(knots.back().work == t.resources[to_index(out_of(0))].bytes * kByte);
  // Each is where the link really was: the work of so many whole messages, a multiple of bytes.
  for (const auto& knot : knots) CHECK(knot.work % kByte == 0);
  // Cells of one width: no two kept knots but the last are in one.
  std::int64_t widest = 0;
  for (std::size_t i = 1; i < knots.size(); ++i)
    widest = std::max(widest, knots[i].time_ps - knots[i - 1].time_ps);
  CHECK(widest < 8 * t.end_ps / static_cast<std::int64_t>(sim::LinkRates::kMostKnots));
}

TEST_CASE("a link that is down carries nothing until it is up") {
  // 4 of 8 bytes by 4,000; down until 10,000; the other 4.
  Workload w;
  w.operations = {message(0, 1, 8, 0)};
  Topology topology = switched(2, kGB);
  sim::LinkRates rates(topology.resource_count());
  std::vector<sim::Fault> faults{{sim::Fault::Kind::LinkShare, 4'000, 0, out_of(0)},
                                 {sim::Fault::Kind::LinkShare, 10'000, 1'000'000, out_of(0)}};
  sim::run(w, topology, {.faults = faults, .observer = &rates});
  using Knots = std::vector<std::array<std::int64_t, 2>>;
  CHECK(bytes_at(rates, out_of(0)) == Knots{{0, 0}, {4'000, 4}, {10'000, 4}, {14'000, 8}});
  CHECK(bytes_at(rates, into(1)) == Knots{{0, 0}, {4'000, 4}, {10'000, 4}, {14'000, 8}});
}
