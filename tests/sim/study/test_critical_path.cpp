// SPDX-License-Identifier: BSD-3-Clause
// What a run waited for, derived by hand to the picosecond: 1 GB/s moves a byte in 1000 ps.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/study/critical_path.h"
#include "sim/study/recorded_run.h"
#include "tests/sim/network/networks.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::test;

namespace {

using Lines = std::vector<std::string>;

// "operation step cause start end" of every part.
Lines path_of(const Workload& workload, const Topology& topology, sim::Carrier* carrier = nullptr,
              const std::vector<sim::Fault>& faults = {}) {
  const sim::RecordedRun run =
      sim::record(workload, topology, {.path = true}, {.carriers = {carrier}, .faults = faults});
  REQUIRE(run.path.has_value());
  Lines out;
  for (const sim::PathPart& part : *run.path)
    out.push_back(fmt::format("{} {} {} {} {}", to_index(part.op), part.step,
                              sim::cause_text(part, topology), part.start_ps, part.end_ps));
  return out;
}

Lines path_of(const Plan& plan, const Topology& topology) {
  return path_of(workload_of(std::make_shared<const Plan>(plan)), topology);
}

Operation compute(std::vector<Rank> on, std::int64_t duration_ps, std::int32_t stream = 0,
                  std::vector<OpId> after = {}) {
  return {Compute{std::move(on), duration_ps}, stream, std::move(after)};
}

// Every message with a latency of 2000 ps and a cap of its own.
class Dear : public sim::Carrier {
 public:
  explicit Dear(std::int64_t cap) : cap_(cap) {}
  Transfers step(const Plan& plan, const Step& step) override { return Transfers(plan, step); }
  Transfers message(const PointToPoint& message) override {
    return Transfers::flows(std::vector<Slot>{0, 1},
                            std::vector<Flow>{{0, 1, message.bytes, {2000, cap_}}});
  }
  Transfers collective(const BareCollective&) override { return Transfers::none(0); }

 private:
  std::int64_t cap_;
};

}  // namespace

TEST_CASE("two steps in sequence: each its latency, then its link") {
  Plan plan = empty_plan(2);
  StepId first = plan.add_step(exchange({{0, 1, 10}}), {});
  plan.add_step(exchange({{1, 0, 5}}), {first});
  CHECK(path_of(plan, switched(2, kGB, 500)) ==
        Lines{"0 0 latency 0 500", "0 0 node0.gpu0.port.out 500 10500", "0 1 latency 10500 11000",
              "0 1 node0.gpu0.port.in 11000 16000"});
}

TEST_CASE("two flows on one link: it bounds while they share it, the first of the rest after") {
  // Into device 2 both get half: 10 bytes take 20,000 ps, and 20 of the 30 are left. Alone, these
  // are bounded by both their links alike; the lower is named.
  Plan plan = empty_plan(3);
  plan.add_step(exchange({{0, 2, 30}, {1, 2, 10}}), {});
  CHECK(path_of(plan, switched(3, kGB)) ==
        Lines{"0 0 node0.gpu2.port.in 0 20000", "0 0 node0.gpu0.port.out 20000 40000"});
}

TEST_CASE("a cap is waited for where it is less than the share") {
  Workload one{{message(0, 1, 10, 0)}};
  CHECK(path_of(one, switched(2, kGB, 500, kGB / 4)) ==
        Lines{"0 -1 latency 0 500", "0 -1 cap 500 40500"});
  // Three share 1 GB/s below their caps of 400 MB/s: 1000 bytes at 333,333,333 B/s end at
  // 3,000,001. Then 2 x 10^15 - 333,333,333 x 3,000,001 = 999,999,667,666,667 of 10^-12 byte are
  // left of operation 2, at 400 MB/s 2,500,000 ps.
  Workload three{
      {message(0, 1, 1000, 0), message(1, 2, 1000, 1, {}, 1, 1), message(2, 0, 2000, 2, {}, 2, 2)}};
  CHECK(path_of(three, shared_medium(3, kGB, 0, 400'000'000)) ==
        Lines{"2 -1 node0.staging 0 3000001", "2 -1 cap 3000001 5500001"});
}

TEST_CASE("a ring of small chunks waits for latencies") {
  Workload w;
  w.operations.push_back(
      {BareCollective{CollectiveKind::AllGather, Algorithm::Ring, ranks(4), 1}, 0, {}});
  CHECK(path_of(w, switched(4, kGB, 1'000'000)) ==
        Lines{"0 -1 latency 0 1000000", "0 -1 node0.gpu0.port.out 1000000 1001000",
              "0 -1 latency 1001000 2001000", "0 -1 node0.gpu0.port.out 2001000 2002000",
              "0 -1 latency 2002000 3002000", "0 -1 node0.gpu0.port.out 3002000 3003000"});
}

TEST_CASE("compute and messages, through streams and `after`") {
  // 0 computes and sends; 1 was ready long before. Operation 3 comes after 2, which ends last.
  Workload w{{compute(ranks(1), 5000), message(0, 1, 10, 1), compute(ranks(1, 1), 3000),
              compute(ranks(1), 100, 7, {OpId{2}}), compute(ranks(1), 9000, 8)}};
  CHECK(path_of(w, switched(2, kGB, 500)) == Lines{"0 -1 compute 0 5000", "1 -1 latency 5000 5500",
                                                   "1 -1 node0.gpu0.port.out 5500 15500",
                                                   "2 -1 compute 15500 18500",
                                                   "3 -1 compute 18500 18600"});
}

TEST_CASE("what a transport adds is told from what the route takes") {
  Workload w{{message(0, 1, 10, 0)}};
  Dear slow(kGB / 10), fast(2 * kGB);
  CHECK(path_of(w, switched(2, kGB, 500), &slow) ==
        Lines{"0 -1 launch 0 1500", "0 -1 latency 1500 2000", "0 -1 protocol 2000 102000"});
  CHECK(path_of(w, switched(2, kGB, 500), &fast) == Lines{"0 -1 launch 0 1500",
                                                          "0 -1 latency 1500 2000",
                                                          "0 -1 node0.gpu0.port.out 2000 12000"});
  CHECK(path_of(w, switched(2, kGB, 500, kGB / 20), &slow).back() == "0 -1 cap 2000 202000");
}

TEST_CASE(
    "of what ends together the lowest by operation and ranks is named, wherever it is listed") {
  // Three messages of one length; then a compute that comes after all of them.
  for (auto [a, b, c] : {std::array{0, 1, 2}, std::array{2, 0, 1}, std::array{1, 2, 0}}) {
    Plan plan = empty_plan(6);
    std::vector<StepId> all;
    std::array<std::array<int, 2>, 3> pairs{{{4, 5}, {2, 3}, {0, 1}}};
    for (int i : {a, b, c}) {
      auto [from, to] = pairs[to_index(i)];
      all.push_back(plan.add_step(exchange({{from, to, 10}}), {}));
    }
    // The steps differ, so the first listed is named.
    CHECK(path_of(plan, switched(6, kGB)) ==
          Lines{fmt::format("0 0 node0.gpu{}.port.out 0 10000", pairs[to_index(a)][0])});
  }
  Plan together = empty_plan(6);
  StepId first = together.add_step(exchange({{0, 1, 10}, {2, 3, 10}, {4, 5, 10}}), {});
  together.add_step(exchange({{3, 1, 10}}), {first});
  CHECK(path_of(together, switched(6, kGB)) ==
        Lines{"0 0 node0.gpu0.port.out 0 10000", "0 1 node0.gpu1.port.in 10000 20000"});
}

TEST_CASE("a run without time has no path, and what takes none is no part of one") {
  CHECK(path_of(Workload{}, switched(2, kGB)).empty());
  CHECK(path_of(empty_plan(2), switched(2, kGB)).empty());
  // A message of no bytes without latency, to itself, a compute of no length: then one that counts.
  Workload w{{message(0, 1, 0, 0), message(0, 0, 5, 1, {}, 0, 1), compute(ranks(2), 0),
              compute(ranks(2), 7)}};
  CHECK(path_of(w, switched(2, kGB)) == Lines{"3 -1 compute 0 7"});
}

TEST_CASE("faults are on the path: slower links, longer latencies, links that are down") {
  using Kind = sim::Fault::Kind;
  Workload w;
  w.operations = {message(0, 1, 8, 0)};
  auto path = [&](std::vector<sim::Fault> faults) {
    return path_of(w, switched(2, kGB, 500), nullptr, faults);
  };
  // At half the rate from 4,500 on: 4 bytes, then 4 in 8,000.
  CHECK(path({{Kind::LinkShare, 4'500, 500'000, into(1)}}) ==
        Lines{"0 -1 latency 0 500", "0 -1 node0.gpu0.port.out 500 4500",
              "0 -1 node0.gpu1.port.in 4500 12500"});
  CHECK(path({{Kind::LinkLatency, 0, 300, into(1)}}) ==
        Lines{"0 -1 launch 0 300", "0 -1 latency 300 800", "0 -1 node0.gpu0.port.out 800 8800"});
  // Down before the transfer comes to it, and in the midst of it.
  CHECK(path({{Kind::LinkShare, 0, 0, into(1)}, {Kind::LinkShare, 1'000, 1'000'000, into(1)}}) ==
        Lines{"0 -1 latency 0 500", "0 -1 node0.gpu1.port.in 500 1000",
              "0 -1 node0.gpu0.port.out 1000 9000"});
  CHECK(
      path({{Kind::LinkShare, 4'500, 0, into(1)}, {Kind::LinkShare, 6'000, 1'000'000, into(1)}}) ==
      Lines{"0 -1 latency 0 500", "0 -1 node0.gpu0.port.out 500 4500",
            "0 -1 node0.gpu1.port.in 4500 6000", "0 -1 node0.gpu0.port.out 6000 10000"});
}
