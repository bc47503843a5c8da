// SPDX-License-Identifier: BSD-3-Clause
// Plans on real processes: over every transport, on the caller's memory, and repeatedly.
#include <catch2/catch.hpp>

#include <algorithm>

#include "backends/mpi/executor.h"
#include "core/base/errors.h"
#include "core/pattern/pattern.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "sim/store/store.h"
#include "tests/conformance/conformance.h"
#include "tests/support/rough_data.h"

using namespace reshard;
using namespace reshard::backends::mpi;
using Catch::Matchers::Contains;

namespace {

Request request_of(int ranks, const char* from, const char* to, const char* shape = "16,24,5",
                   const char* dtype = "i32") {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({ranks}));
  return Request(parse_layout(shape, dtype, mesh, from), parse_layout(shape, dtype, mesh, to));
}

Plan planned(const Request& request, Plan (*planner)(const Demand&, const PlannerInput&)) {
  Plan plan = planner(request, {});
  prove(plan);
  return plan;
}

int size_of_world() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

int rank_in_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

}  // namespace

// Chunks of a few bytes do to small tensors what MPI's limits do to those above 2 GiB.
TEST_CASE("every way of the bytes gives the store's values") {
  struct Method {
    const char* name;
    std::int64_t chunk_bytes, collective_bytes;
    bool shared_memory;
  };
  constexpr std::int64_t kAny = std::int64_t{1} << 30;
  Method method = GENERATE(Method{"rings, MPI's collectives", kAny, kAny, true},
                           Method{"MPI alone", kAny, kAny, false},
                           Method{"rings, no collective", kAny, 0, true},
                           Method{"many chunks through rings", 24, 100, true},
                           Method{"many chunks through MPI", 24, 100, false});
  INFO(method.name);
  WorldOptions options;
  options.chunk_bytes = method.chunk_bytes;
  options.collective_bytes = method.collective_bytes;
  options.shared_memory = method.shared_memory;
  options.time_limit_s = 60;
  MpiExecutor executor(MPI_COMM_WORLD, options);
  test::ConformanceOptions conformance;
  conformance.world = size_of_world();
  conformance.draws = 250;
  test::ConformanceReport report = test::check_conformance(executor, conformance);
  INFO(test::text(report));
  CHECK(report.failed == 0);
  if (executor.processes().is_root()) CHECK(report.requests == 250);
}

TEST_CASE("the caller's shards are read and written where they are") {
  int size = size_of_world(), rank = rank_in_world();
  Plan plan = planned(request_of(size, "S(0)", "S(1)"), plan_p2p);
  MpiExecutor executor(MPI_COMM_WORLD, {});
  auto count = [&](BufferId buffer) {
    return static_cast<std::size_t>(plan.buffer(buffer).elements(static_cast<Slot>(rank)));
  };
  std::vector<std::int32_t> source(count(kSourceBuffer)), destination(count(kDestinationBuffer));
  CallerShards shards{std::as_bytes(std::span(source)),
                      std::as_writable_bytes(std::span(destination))};
  auto prepared = executor.prepare(plan, std::span(&shards, 1));
  Pattern pattern(plan.request());
  for (int round = 0; round < 3; ++round) {
    pattern.fill(plan.request().source(), rank, round, std::as_writable_bytes(std::span(source)));
    std::fill(destination.begin(), destination.end(), -1);
    Timeline timeline = prepared->run();
    std::vector<std::int32_t> expected(destination.size());
    pattern.fill(plan.request().destination(), rank, round,
                 std::as_writable_bytes(std::span(expected)));
    CHECK(destination == expected);
    for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
      CHECK(timeline.spans[i].rank == Rank{rank});
      CHECK(timeline.spans[i].start_ps <= timeline.spans[i].end_ps);
      CHECK(timeline.spans[i].end_ps <= timeline.end_ps);
      if (i > 0) CHECK(timeline.spans[i - 1].step < timeline.spans[i].step);
    }
    // No barrier: what a run has read is the caller's again as soon as it returns.
  }
  std::vector<std::int32_t> longer(source.size() + 1);
  shards.source = std::as_bytes(std::span(longer));
  CHECK_THROWS_AS(executor.prepare(plan, std::span(&shards, 1)), InputError);
}

// Rank 0 may send its part of the exchange long before the all-reduce is over; rank 1 may ask for
// it only afterwards. Between them the two must not be mistaken for each other.
TEST_CASE("steps that overlap differently on two ranks") {
  int size = size_of_world();
  if (size < 2) return;
  Plan plan(request_of(size, "P(sum)", "R", "40000", "f32"), "by hand");
  BufferId sum = plan.add_temporary();
  CollectiveStep reduce;
  reduce.kind = CollectiveKind::AllReduce;
  reduce.input = kSourceBuffer;
  reduce.output = sum;
  reduce.group_size = size;
  CopyStep others, first;
  ExchangeStep second;
  others.moves = first.moves = second.moves = MoveList(1);
  for (Slot slot = 0; slot < size; ++slot) {
    plan.buffer(sum).set_shape(slot, {40000});
    reduce.members.push_back(slot);
    if (slot == 1) continue;
    others.parts.push_back({slot, {static_cast<std::uint32_t>(others.moves.size()), 1}});
    others.moves.push_back({sum, kDestinationBuffer, {0}, {0}, {40000}});
  }
  first.parts.push_back({1, {0, 1}});
  first.moves.push_back({sum, kDestinationBuffer, {0}, {0}, {20000}});
  second.messages.push_back({0, 1, {0, 1}});
  second.moves.push_back({kSourceBuffer, kDestinationBuffer, {0}, {20000}, {20000}});
  StepId reduced = plan.add_step(reduce, {});
  StepId copied = plan.add_step(first, {reduced});
  plan.add_step(second, {copied});
  plan.add_step(others, {reduced});

  bool shared = GENERATE(true, false);
  WorldOptions options;
  options.shared_memory = shared;
  options.time_limit_s = 20;
  MpiExecutor executor(MPI_COMM_WORLD, options);
  Pattern pattern(plan.request());
  FillSource fill = [&](Rank rank, std::span<std::byte> bytes) {
    pattern.fill(plan.request().source(), to_int(rank), to_int(rank), bytes);
  };
  std::vector<std::vector<std::byte>> expected(static_cast<std::size_t>(size));
  sim::Store store;
  test::run_once(store, plan, fill, [&](Rank rank, std::span<const std::byte> bytes) {
    expected[static_cast<std::size_t>(to_int(rank))].assign(bytes.begin(), bytes.end());
  });
  auto prepared = executor.prepare(plan);
  prepared->fill(fill);
  for (int run = 0; run < 20; ++run) {
    prepared->run();
    prepared->take([&](Rank rank, std::span<const std::byte> bytes) {
      const std::vector<std::byte>& wanted = expected[static_cast<std::size_t>(to_int(rank))];
      CHECK(std::equal(bytes.begin(), bytes.end(), wanted.begin(), wanted.end()));
    });
  }
}

TEST_CASE("ranks that were not started are refused, by all alike") {
  int size = size_of_world();
  Plan plan = planned(request_of(size + 1, "S(0)", "R"), plan_p2p);
  MpiExecutor executor(MPI_COMM_WORLD, {});
  CHECK_THROWS_AS(executor.prepare(plan), InputError);
  CHECK_THROWS_WITH(executor.prepare(plan),
                    Contains("a process for rank " + std::to_string(size)) &&
                        Contains("found " + std::to_string(size)));
}

TEST_CASE("more memory than the machine has is refused before any is taken") {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({1}));
  Plan plan = planned(Request(parse_layout("1048576,1048576,1024", "f32", mesh, "R"),
                              parse_layout("1048576,1048576,1024", "f32", mesh, "R")),
                      plan_p2p);
  MpiExecutor executor(MPI_COMM_WORLD, {});
  // By all alike, though only the first has a part in it.
  CHECK_THROWS_AS(executor.prepare(plan), InputError);
}
