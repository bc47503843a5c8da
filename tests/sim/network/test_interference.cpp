// SPDX-License-Identifier: BSD-3-Clause
// Compute and transfers that slow each other down: rates change when either begins or ends, to the
// picosecond.
#include <catch2/catch.hpp>

#include "core/base/units.h"
#include "sim/network/engine.h"
#include "sim/study/critical_path.h"
#include "sim/study/recorded_run.h"
#include "tests/sim/network/networks.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// Compute at half its rate beside kernels, kernels at 0.8 of theirs beside compute; engines at 0.9
// and 0.5.
Topology machine(std::int64_t sms = 0) {
  NodeTemplate node = switched(4, kGB).node();
  if (sms > 0) node.machine.set(Figure::Sms, sms * kRatioOne);
  if (sms == 0) {
    node.machine.set(Figure::ComputeUnderNccl, 500'000);
    node.machine.set(Figure::NcclUnderCompute, 800'000);
    node.machine.set(Figure::ComputeUnderCopy, 900'000);
    node.machine.set(Figure::CopyUnderCompute, 500'000);
  }
  return Topology("star", node, {}, 1);
}

// All messages by one mover, without latency.
class By : public sim::Carrier {
 public:
  explicit By(Mover mover, std::int32_t blocks = 0) : mover_(mover), blocks_(blocks) {}
  Transfers step(const Plan& plan, const Step& step) override { return {plan, step}; }
  Transfers message(const PointToPoint& message) override {
    std::vector<Flow> flows{{0, 1, message.bytes, {0, 100 * kGB, mover_, blocks_}}};
    return Transfers::flows(std::vector<Slot>{0, 1}, flows);
  }
  Transfers collective(const BareCollective& of) override { return Transfers::collective(of); }

 private:
  Mover mover_;
  std::int32_t blocks_;
};

Operation compute(std::int32_t rank, std::int64_t duration_ps, std::int32_t stream = 1,
                  std::int64_t blocks = 0) {
  return {Compute{{Rank{rank}}, duration_ps, blocks}, stream, {}};
}

// Ends by operation.
std::vector<std::int64_t> ends(const Workload& w, Mover mover, const Topology& topology = machine(),
                               std::int32_t blocks = 0) {
  By by(mover, blocks);
  std::vector<std::int64_t> out(w.operations.size(), 0);
  for (const Span& span : sim::run(w, topology, {.carriers = {&by, {}}}).spans)
    out[to_index(span.op)] = std::max(out[to_index(span.op)], span.end_ps);
  return out;
}

using Times = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("what lasts longer goes on at its full rate when the other is over") {
  // 8 bytes at 0.8 take 10,000; compute does half of 10,000 meanwhile and 5,000 more behind it.
  Workload w;
  w.operations = {compute(0, 10'000), message(0, 1, 8, 1)};
  CHECK(ends(w, Mover::Kernels) == Times{15'000, 10'000});
  // 2,000 of compute at half the rate take 4,000, in which 3.2 bytes go; 4.8 take 4,800.
  w.operations[0] = compute(0, 2'000);
  CHECK(ends(w, Mover::Kernels) == Times{4'000, 8'800});
  // The same where the receiving GPU computes.
  w.operations[0] = compute(1, 2'000);
  CHECK(ends(w, Mover::Kernels) == Times{4'000, 8'800});
  // A third GPU disturbs nobody, nor do links alone.
  w.operations[0] = compute(2, 2'000);
  CHECK(ends(w, Mover::Kernels) == Times{2'000, 8'000});
  w.operations[0] = compute(0, 2'000);
  CHECK(ends(w, Mover::Links) == Times{2'000, 8'000});
}

TEST_CASE("copy engines have figures of their own") {
  // 8 bytes at 0.5 take 16,000; compute at 0.9: 9,000 take 10,000, in which 5 bytes go; 3 more.
  Workload w;
  w.operations = {compute(0, 9'000), message(0, 1, 8, 1)};
  CHECK(ends(w, Mover::Engines) == Times{10'000, 13'000});
}

TEST_CASE("what begins in the midst of the other changes it from then on") {
  // The message begins at 4,000 behind another compute on rank 1 and takes 8 / 0.8 = 10,000.
  // Compute: 4,000, then 5,000 in the 10,000, then 1,000.
  Workload w;
  w.operations = {compute(0, 10'000), compute(1, 4'000, 0), message(0, 1, 8, 2)};
  w.operations[2].after = {OpId{1}};
  CHECK(ends(w, Mover::Kernels) == Times{15'000, 4'000, 14'000});
  // Compute begins in the midst of the message: 4 bytes by 4,000; then 4 / 0.8 = 5,000; of 2,000
  // half the rate leaves nothing behind 8,000.
  w.operations = {message(0, 1, 8, 0), compute(2, 4'000), compute(0, 2'000)};
  w.operations[2].after = {OpId{1}};
  // 0.8 bytes per 1,000 for 4,000: 3.2 of the 4; 0.8 take 800.
  CHECK(ends(w, Mover::Kernels) == Times{8'800, 4'000, 8'000});
}

TEST_CASE("two messages share a port below what either may reach") {
  // Each may reach 0.8, together they have 1: 0.5 each, compute or not. 4 bytes take 8,000.
  Workload w;
  w.operations = {compute(0, 100'000), message(0, 1, 4, 1, {}, 2, 2),
                  message(0, 2, 4, 2, {}, 3, 3)};
  Times found = ends(w, Mover::Kernels);
  CHECK(found[1] == 8'000);
  CHECK(found[2] == 8'000);
  CHECK(found[0] == 8'000 + 96'000);
}

TEST_CASE("a step that several computes share is as slow as each alone") {
  Workload w;
  w.operations = {compute(0, 1'000, 1), compute(0, 3'000, 2), message(0, 1, 8, 2)};
  // Compute ends at 2,000 and 6,000; by then 4.8 bytes are there, 3.2 take 3,200.
  CHECK(ends(w, Mover::Kernels) == Times{2'000, 6'000, 9'200});
}

TEST_CASE("thread blocks that a transfer takes are missing for waves of compute") {
  // 132 multiprocessors, 132 blocks: one wave; beside 24, two: half the rate. 100 blocks fit still.
  Workload w;
  w.operations = {compute(0, 4'000, 1, 132), message(0, 1, 100, 1)};
  CHECK(ends(w, Mover::Kernels, machine(132), 24) == Times{8'000, 100'000});
  w.operations[0] = compute(0, 4'000, 1, 100);
  CHECK(ends(w, Mover::Kernels, machine(132), 24)[0] == 4'000);
  // 1,000 blocks: 8 waves, beside 24 ten: 0.8.
  w.operations[0] = compute(0, 4'000, 1, 1'000);
  CHECK(ends(w, Mover::Kernels, machine(132), 24)[0] == 5'000);
  // Who says no number of blocks, or is moved by engines, is not slowed by this.
  w.operations[0] = compute(0, 4'000);
  CHECK(ends(w, Mover::Kernels, machine(132), 24)[0] == 4'000);
}

TEST_CASE("the critical path knows when a slowed compute ends") {
  Workload w;
  w.operations = {compute(0, 10'000), message(0, 1, 8, 1), compute(0, 1'000)};
  By by(Mover::Kernels);
  auto path = sim::record(w, machine(), {.path = true}, {.carriers = {&by, {}}}).path;
  REQUIRE(path);
  REQUIRE(path->size() == 2);
  CHECK((*path)[0].end_ps == 15'000);
  CHECK(path->back().end_ps == 16'000);
}

TEST_CASE("thread blocks serve both ways: the more of those that send and those that receive") {
  // 1,000 blocks on 132 multiprocessors are 8 waves, beside 24 ten; beside 48 they would be twelve.
  Workload w;
  w.operations = {compute(0, 4'000, 1, 1'000), message(0, 1, 100, 1), message(1, 0, 100, 2)};
  w.operations[2].seats = {{OpId{2}, 2}, {OpId{2}, 2}};
  CHECK(ends(w, Mover::Kernels, machine(132), 24)[0] == 5'000);
  // The GPU that only receives has them as well.
  w.operations = {compute(1, 4'000, 1, 132), message(0, 1, 100, 1)};
  CHECK(ends(w, Mover::Kernels, machine(132), 24)[0] == 8'000);
}

TEST_CASE("a wave that just fits is one") {
  // 108 multiprocessors are left of 132.
  Workload w;
  w.operations = {compute(0, 4'000, 1, 108), message(0, 1, 100, 1)};
  CHECK(ends(w, Mover::Kernels, machine(132), 24)[0] == 4'000);
  w.operations[0] = compute(0, 4'000, 1, 109);
  CHECK(ends(w, Mover::Kernels, machine(132), 24)[0] == 8'000);
}

TEST_CASE("a slow rank and a slow link are slowed by each other's work all the same") {
  using Kind = sim::Fault::Kind;
  By by(Mover::Kernels);
  auto end = [&](const Workload& w, sim::Fault fault) {
    return sim::run(w, machine(), {.carriers = {&by, {}}, .faults = std::vector{fault}}).end_ps;
  };
  // Half of half the rate for 10,000: 2,500 of 10,000; the rest at half.
  Workload w;
  w.operations = {compute(0, 10'000), message(0, 1, 8, 1)};
  CHECK(end(w, {Kind::RankShare, 0, 500'000, {}, Rank{0}}) == 25'000);
  // 0.8 of half the link: 8 bytes take 20,000; of 10,001 a ps is left then.
  w.operations[0] = compute(0, 10'001);
  CHECK(end(w, {Kind::LinkShare, 0, 500'000, out_of(0)}) == 20'001);
}

TEST_CASE("beside kernels and engines the slower of the two shares holds") {
  Workload w;
  w.operations = {compute(0, 10'000), message(0, 1, 100, 1), message(2, 0, 100, 2, {}, 3, 3)};
  By kernels(Mover::Kernels), engines(Mover::Engines);
  std::vector<sim::Carrier*> carriers{nullptr, &kernels, &engines};
  Timeline t = sim::run(w, machine(), {.carriers = {nullptr, carriers}});
  CHECK(t.spans[0].end_ps == 20'000);
}
