// SPDX-License-Identifier: BSD-3-Clause
// Links and ranks that change while a workload runs, to the picosecond.
#include <catch2/catch.hpp>

#include "core/base/units.h"
#include "sim/network/engine.h"
#include "tests/sim/network/networks.h"
#include "tests/support/prng.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::test;
using sim::Fault;

namespace {

constexpr std::int64_t kHalf = kRatioOne / 2;

Fault at_share(std::int64_t share, std::int64_t from_ps, ResourceId resource = out_of(0)) {
  return {Fault::Kind::LinkShare, from_ps, share, resource};
}

std::int64_t end_of(const Workload& w, const std::vector<Fault>& faults,
                    const Topology& topology = switched(4, kGB)) {
  return sim::run(w, topology, {.faults = faults}).end_ps;
}

// 8 bytes from rank 0 to 1: 8,000 ps.
Workload one_message() {
  Workload w;
  w.operations = {message(0, 1, 8, 0)};
  return w;
}

}  // namespace

TEST_CASE("a link at a share of its rate slows what crosses it, from then on") {
  CHECK(end_of(one_message(), {}) == 8'000);
  // 4 bytes by 4,000, the other 4 at half the rate.
  CHECK(end_of(one_message(), {at_share(kHalf, 4'000)}) == 12'000);
  CHECK(end_of(one_message(), {at_share(kHalf, 0)}) == 16'000);
  CHECK(end_of(one_message(), {at_share(kHalf, 4'000, into(1))}) == 12'000);
  CHECK(end_of(one_message(), {at_share(kHalf, 4'000, into(2))}) == 8'000);
  // And back: 4, then 1 in 2,000, then 3.
  CHECK(end_of(one_message(), {at_share(kHalf, 4'000), at_share(kRatioOne, 6'000)}) == 9'000);
  // What is behind the end changes nothing, the end neither.
  CHECK(end_of(one_message(), {at_share(kHalf, 8'000), at_share(0, 100'000)}) == 8'000);
}

TEST_CASE("a link that is down holds transfers until it is up, or for ever") {
  CHECK(end_of(one_message(), {at_share(0, 4'000), at_share(kRatioOne, 10'000)}) == 14'000);
  CHECK(end_of(one_message(), {at_share(0, 0), at_share(kHalf, 1'000)}) == 17'000);
  // Two links on the way: both must be up.
  CHECK(end_of(one_message(), {at_share(0, 4'000), at_share(0, 4'000, into(1)),
                               at_share(kRatioOne, 5'000), at_share(kRatioOne, 6'000, into(1))}) ==
        10'000);
  CHECK_THROWS_WITH(end_of(one_message(), {at_share(0, 4'000)}),
                    "message from rank 0 to rank 1 waits for node0.gpu0.port.out, which is down");
  try {
    end_of(one_message(), {at_share(0, 0, into(1))});
    FAIL("it ended");
  } catch (const sim::TransferStopped& stopped) {
    CHECK(stopped.operation == OpId{0});
    CHECK(stopped.resource == into(1));
  }
  // Others go on.
  Workload w = one_message();
  w.operations.push_back(message(2, 3, 8, 1));
  CHECK_THROWS_AS(end_of(w, {at_share(0, 0)}), sim::TransferStopped);
  CHECK(end_of(w, {at_share(0, 0), at_share(kRatioOne, 20'000)}) == 28'000);
}

TEST_CASE("flows that share a link which changes keep sharing it") {
  // 4 bytes each to 1 and 2 at half the port: 2 bytes each by 4,000, then a quarter: 8,000 more.
  Workload w;
  w.operations = {message(0, 1, 4, 0, {}, 0, 1), message(0, 2, 4, 1, {}, 2, 3)};
  CHECK(end_of(w, {}) == 8'000);
  CHECK(end_of(w, {at_share(kHalf, 4'000)}) == 12'000);
  // One of them is held below by its own way in: the other takes what it leaves.
  CHECK(end_of(w, {at_share(kRatioOne / 4, 0, into(1))}) == 16'000);
  Timeline t =
      sim::run(w, switched(4, kGB),
               {.record_flows = true, .faults = std::vector{at_share(kRatioOne / 4, 0, into(1))}});
  CHECK(t.flows[0].end_ps == 16'000);
  CHECK(t.flows[1].end_ps == 5'334);  // 4 bytes at 0.75
}

TEST_CASE("a link at half its rate from the start is a link of half the rate") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Prng prng(seed);
    Workload w;
    for (std::int32_t i = 0; i < 20; ++i) {
      auto from = static_cast<std::int32_t>(prng.below(4));
      w.operations.push_back(message(from,
                                     (from + 1 + static_cast<std::int32_t>(prng.below(3))) % 4,
                                     prng.between(1, 1000), i, {}, i, i + 100));
    }
    CHECK(sim::run(w, shared_medium(4, kGB),
                   {.faults = std::vector{at_share(kHalf, 0, ResourceId{0})}})
              .spans == sim::run(w, shared_medium(4, kGB / 2)).spans);
  }
}

TEST_CASE("an extra latency delays what begins behind it") {
  Workload w;
  w.operations = {message(0, 1, 8, 0), message(0, 1, 8, 1)};
  auto with = [&](Fault fault) { return end_of(w, {fault}, switched(4, kGB, 100)); };
  CHECK(end_of(w, {}, switched(4, kGB, 100)) == 16'200);
  CHECK(with({Fault::Kind::LinkLatency, 0, 500, out_of(0)}) == 17'200);
  CHECK(with({Fault::Kind::LinkLatency, 1'000, 500, out_of(0)}) == 16'700);
  CHECK(with({Fault::Kind::LinkLatency, 0, 500, out_of(1)}) == 16'200);
  CHECK(with({Fault::Kind::RankLatency, 0, 500, {}, Rank{1}}) == 17'200);
  CHECK(with({Fault::Kind::RankLatency, 0, 500, {}, Rank{0}}) == 17'200);
  CHECK(with({Fault::Kind::RankLatency, 0, 500, {}, Rank{2}}) == 16'200);
}

TEST_CASE("a rank that is slow computes slowly, in the midst of a compute too") {
  Workload w;
  w.operations = {{Compute{{Rank{0}}, 4'000}, 0, {}}, {Compute{{Rank{1}}, 4'000}, 0, {}}};
  Fault slow{Fault::Kind::RankShare, 1'000, kHalf, {}, Rank{0}};
  Timeline t = sim::run(w, switched(4, kGB), {.faults = std::vector{slow}});
  CHECK(t.spans[0].end_ps == 7'000);
  CHECK(t.spans[1].end_ps == 4'000);
  Fault well{Fault::Kind::RankShare, 3'000, kRatioOne, {}, Rank{0}};
  CHECK(end_of(w, {slow, well}) == 5'000);
}

TEST_CASE("a later fault of the same kind and place replaces the one before it") {
  // The first message begins at 0, the second at 8,600.
  Workload w;
  w.operations = {message(0, 1, 8, 0), message(0, 1, 8, 1)};
  auto with = [&](Fault first, Fault later) {
    return end_of(w, {first, later}, switched(4, kGB, 100));
  };
  CHECK(with({Fault::Kind::LinkLatency, 0, 500, out_of(0)},
             {Fault::Kind::LinkLatency, 1'000, 200, out_of(0)}) == 16'900);
  CHECK(with({Fault::Kind::RankLatency, 0, 500, {}, Rank{1}},
             {Fault::Kind::RankLatency, 1'000, 200, {}, Rank{1}}) == 16'900);
}

TEST_CASE("latencies of all that a route crosses and of both its ranks add up") {
  CHECK(end_of(one_message(), {{Fault::Kind::LinkLatency, 0, 500, out_of(0)},
                               {Fault::Kind::LinkLatency, 0, 300, into(1)},
                               {Fault::Kind::RankLatency, 0, 70, {}, Rank{0}},
                               {Fault::Kind::RankLatency, 0, 9, {}, Rank{1}}}) == 8'879);
}

TEST_CASE("of transfers that wait for ever the one that began first is named") {
  Workload w;
  w.operations = {message(2, 3, 8, 0), message(0, 1, 8, 1)};
  try {
    end_of(w, {at_share(0, 4'000), at_share(0, 5'000, out_of(2))});
    FAIL("it ended");
  } catch (const sim::TransferStopped& stopped) {
    CHECK(stopped.operation == OpId{0});
    CHECK(stopped.resource == out_of(2));
  }
}

TEST_CASE("a link is busy while something moves on it, however often its rate changes") {
  auto busy = [](const std::vector<Fault>& faults) {
    return sim::run(one_message(), switched(4, kGB), {.faults = faults})
        .resources[to_index(out_of(0))]
        .busy_ps;
  };
  CHECK(busy({at_share(kHalf, 4'000)}) == 12'000);
  // Down from 4,000 to 10,000.
  CHECK(busy({at_share(0, 4'000), at_share(kRatioOne, 10'000)}) == 8'000);
}

TEST_CASE("a transport's own latency is delayed like a route's") {
  class Carried : public sim::Carrier {
   public:
    Transfers step(const Plan& plan, const Step& step) override { return {plan, step}; }
    Transfers message(const PointToPoint& message) override {
      return Transfers::flows(std::vector<Slot>{0, 1},
                              std::vector<Flow>{{0, 1, message.bytes, {2'000, 100 * kGB}}});
    }
    Transfers collective(const BareCollective&) override { return Transfers::none(0); }
  } carried;
  CHECK(sim::run(one_message(), switched(4, kGB),
                 {.carriers = {&carried, {}},
                  .faults = std::vector<Fault>{{Fault::Kind::LinkLatency, 0, 500, out_of(0)}}})
            .end_ps == 10'500);
}
