// SPDX-License-Identifier: BSD-3-Clause
// Which operation waits for which: streams, `after`, collectives of one rank, and what can never
// finish.
#include <catch2/catch.hpp>
#include <map>

#include "core/base/errors.h"
#include "sim/network/engine.h"
#include "tests/sim/network/networks.h"
#include "tests/support/prng.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::test;

namespace {

Operation compute(std::vector<Rank> on, std::int64_t duration_ps, std::int32_t stream = 0,
                  std::vector<OpId> after = {}) {
  return {Compute{std::move(on), duration_ps}, stream, std::move(after)};
}

}  // namespace

TEST_CASE("operations of one stream follow each other, those of two streams do not") {
  Workload w;
  w.operations = {compute(ranks(1), 10), compute(ranks(1), 20), compute(ranks(1), 5, 1)};
  Timeline t = sim::run(w, switched(1, kGB));
  CHECK(t.spans == std::vector<Span>{{OpId{0}, -1, Rank{0}, 0, 10},
                                     {OpId{1}, -1, Rank{0}, 10, 30},
                                     {OpId{2}, -1, Rank{0}, 0, 5}});
  CHECK(t.end_ps == 30);
}

TEST_CASE("an operation comes after whole operations, on every rank of them") {
  // Operation 1 runs on ranks 0 and 1 and starts on 1 only at 30; operation 2 on rank 2 names it.
  Workload w;
  w.operations = {compute(ranks(1, 1), 30), compute(ranks(2), 10),
                  compute(ranks(1, 2), 1, 0, {OpId{1}})};
  Timeline t = sim::run(w, switched(3, kGB));
  CHECK(t.spans[1] == Span{OpId{1}, -1, Rank{0}, 0, 10});
  CHECK(t.spans[2] == Span{OpId{1}, -1, Rank{1}, 30, 40});
  CHECK(t.spans[3] == Span{OpId{2}, -1, Rank{2}, 40, 41});
}

TEST_CASE("after may name a later operation, and the same one twice") {
  Workload w;
  w.operations = {compute(ranks(1), 10, 0, {OpId{1}, OpId{1}}), compute(ranks(1), 7, 1)};
  CHECK(sim::run(w, switched(1, kGB)).end_ps == 17);
}

TEST_CASE("operations without ranks and without duration pass at once") {
  Workload w;
  w.operations = {compute(ranks(1), 10), compute({}, 99, 0, {OpId{0}}),
                  compute(ranks(1, 1), 0, 0, {OpId{1}}), compute(ranks(1, 1), 5, 0)};
  Timeline t = sim::run(w, switched(2, kGB));
  CHECK(t.end_ps == 15);
  CHECK(t.spans[1] == Span{OpId{2}, -1, Rank{1}, 10, 10});
  CHECK(sim::run(Workload{}, switched(2, kGB)).end_ps == 0);
}

TEST_CASE("a collective of one rank takes no time") {
  Workload w;
  w.operations.push_back(
      {BareCollective{CollectiveKind::AllReduce, Algorithm::Ring, ranks(1), 1 << 20}, 0, {}});
  Timeline t = sim::run(w, switched(2, kGB, 500));
  CHECK(t.end_ps == 0);
  CHECK(t.spans == std::vector<Span>{{OpId{0}, -1, Rank{0}, 0, 0}});
}

TEST_CASE("a long chain of operations that take no time needs no stack") {
  Workload w;
  for (int i = 0; i < 300'000; ++i) w.operations.push_back(compute(ranks(1), 0));
  w.operations.push_back(compute(ranks(1), 3));
  CHECK(sim::run(w, switched(1, kGB)).end_ps == 3);
}

TEST_CASE("what cannot finish is named") {
  auto reason = [](const Workload& w, const Topology& topology) -> std::string {
    try {
      sim::run(w, topology);
    } catch (const CheckFailure& failure) {
      return failure.what();
    }
    return "finished";
  };
  Topology two = switched(2, kGB);
  Workload cycle;
  cycle.operations = {compute(ranks(1), 1, 0, {OpId{1}}), compute(ranks(1), 1, 1, {OpId{0}})};
  CHECK_THAT(reason(cycle, two),
             Catch::Contains("operation 0 (compute on rank 0) comes after operation 1"));
  // Both ranks send before they receive.
  Workload crossed;
  crossed.operations = {received_at(2, 0, 1, 8, 0), received_at(2, 1, 0, 8, 1)};
  CHECK_THAT(reason(crossed, two), Catch::Contains("message from rank 0 to rank 1") &&
                                       Catch::Contains("on rank 1 is queued after operation 1"));
  Workload nowhere;
  nowhere.operations = {compute(ranks(1), 1, 0, {OpId{7}})};
  CHECK_THAT(reason(nowhere, two), Catch::Contains("does not exist"));
  Workload twice;
  twice.operations.push_back(
      {BareCollective{CollectiveKind::AllGather, Algorithm::Ring, {Rank{0}, Rank{1}, Rank{0}}, 1},
       0,
       {}});
  CHECK_THROWS_AS(sim::run(twice, two), InputError);
}

TEST_CASE("random computes start exactly when the last thing they wait for ends") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    Workload w;
    auto count = static_cast<std::int32_t>(prng.between(1, 60));
    for (std::int32_t i = 0; i < count; ++i) {
      std::vector<Rank> on;
      for (std::int32_t r = 0; r < 4; ++r)
        if (prng.one_in(2)) on.push_back(Rank{r});
      std::vector<OpId> after;
      for (std::int64_t k = i == 0 ? 0 : prng.below(3); k > 0; --k)
        after.push_back(OpId{static_cast<std::int32_t>(prng.below(i))});
      w.operations.push_back(
          compute(on, prng.between(0, 20), static_cast<std::int32_t>(prng.below(2)), after));
    }
    // The rule of workload.h, read off in listed order.
    std::vector<std::int64_t> complete;
    std::map<std::pair<Rank, std::int32_t>, std::int64_t> stream_end;
    std::vector<Span> expected;
    for (std::int32_t i = 0; i < count; ++i) {
      const Operation& op = w.operations[static_cast<std::size_t>(i)];
      std::int64_t ready = 0;
      for (OpId before : op.after) ready = std::max(ready, complete[to_index(before)]);
      complete.push_back(ready);
      for (Rank rank : ranks_of(op)) {
        std::int64_t& free = stream_end[{rank, op.stream}];
        std::int64_t start = std::max(ready, free);
        free = start + std::get<Compute>(op.body).duration_ps;
        expected.push_back({OpId{i}, -1, rank, start, free});
        complete.back() = std::max(complete.back(), free);
      }
    }
    REQUIRE(sim::run(w, switched(4, kGB)).spans == expected);
  }
}
