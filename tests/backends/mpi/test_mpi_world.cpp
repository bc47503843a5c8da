// SPDX-License-Identifier: BSD-3-Clause
// What processes do together: gather, broadcast, communicators of groups, and time limits of waits.
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <functional>

#include "backends/mpi/executor.h"
#include "backends/mpi/prepared.h"
#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"

using namespace reshard;
using namespace reshard::backends::mpi;
using Catch::Matchers::Contains;

namespace {

std::vector<std::byte> bytes_of(int process, std::size_t count) {
  std::vector<std::byte> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::byte>(static_cast<std::size_t>(process) * 31 + i * 7);
  return out;
}

Plan exchange_of(int ranks) {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({ranks}));
  Plan plan = plan_p2p(Request(parse_layout("64,64", "i32", mesh, "S(0)"),
                               parse_layout("64,64", "i32", mesh, "S(1)")),
                       {});
  prove(plan);
  return plan;
}

WorldOptions patient_for(std::int64_t seconds) {
  WorldOptions options;
  options.time_limit_s = seconds;
  return options;
}

}  // namespace

TEST_CASE("gather and broadcast, in chunks and without") {
  for (std::int64_t chunk_bytes : {std::int64_t{3}, std::int64_t{1} << 20}) {
    WorldOptions options;
    options.chunk_bytes = chunk_bytes;
    MpiExecutor executor(MPI_COMM_WORLD, options);
    Processes& processes = executor.processes();
    std::vector<std::vector<std::byte>> all = processes.gather(
        bytes_of(processes.index(), static_cast<std::size_t>(processes.index()) * 5));
    REQUIRE(all.size() == (processes.is_root() ? static_cast<std::size_t>(processes.count()) : 0));
    for (std::size_t i = 0; i < all.size(); ++i)
      CHECK(all[i] == bytes_of(static_cast<int>(i), i * 5));
    CHECK(processes.broadcast(processes.is_root() ? bytes_of(3, 1001) : std::vector<std::byte>{}) ==
          bytes_of(3, 1001));
    CHECK(processes.broadcast({}).empty());
  }
}

TEST_CASE("communicators of groups keep the declared order and are given up alike everywhere") {
  World world(MPI_COMM_WORLD, {});
  if (world.size < 2) return;
  GroupCache groups(3);
  for (int round = 0; round < 40; ++round)
    for (int first = 0; first < world.size; ++first) {
      // first, first - 1, ... down to 0 and round, one shorter in every other round.
      Group group;
      for (int k = 0; k < std::max(2, world.size - round % 2); ++k)
        group.push_back((first - k + world.size) % world.size);
      std::shared_ptr<MpiCommunicator> comm = groups.get(world.comm.get(), world.rank, group);
      auto place = std::find(group.begin(), group.end(), world.rank);
      REQUIRE((comm != nullptr) == (place != group.end()));
      CHECK(groups.has(group));
      CHECK(groups.size() <= 3);
      if (comm == nullptr) continue;
      int rank = -1;
      REQUIRE(MPI_Comm_rank(comm->get(), &rank) == MPI_SUCCESS);
      CHECK(rank == place - group.begin());
    }
}

TEST_CASE("a rank that never joins ends the wait at the start of a run") {
  auto world = std::make_shared<World>(MPI_COMM_WORLD, patient_for(1));
  if (world->size < 2) return;
  Plan plan = exchange_of(world->size);
  MpiPrepared prepared(plan, world, {});
  prepared.connect();
  if (world->rank == world->size - 1) {
    MPI_Barrier(MPI_COMM_WORLD);  // stays away until the others have given up
    world->broken = true;
    return;
  }
  auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH(prepared.run(),
                    Contains("the start of a run") && Contains("nothing received for 1 s"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK_THROWS_WITH(prepared.run(), Contains("an earlier run failed"));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a rank that is silent in a step is named") {
  bool shared = GENERATE(true, false);
  WorldOptions options = patient_for(1);
  options.shared_memory = shared;
  auto world = std::make_shared<World>(MPI_COMM_WORLD, options);
  if (world->size < 2) return;
  Plan plan = exchange_of(world->size);
  MpiPrepared prepared(plan, world, {});
  prepared.connect();
  int silent = world->size - 1;
  if (world->rank == silent) {
    world->meet("the start of a run", 1);  // and then nothing
    MPI_Barrier(MPI_COMM_WORLD);
    world->broken = true;
    return;
  }
  CHECK_THROWS_WITH(prepared.run(),
                    Contains("(exchange) failed on rank " + std::to_string(world->rank)) &&
                        Contains("from rank " + std::to_string(silent)));
  CHECK_THROWS_WITH(prepared.run(), Contains("an earlier run failed"));
  MPI_Barrier(MPI_COMM_WORLD);
}

namespace {

std::string failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

Plan planned(int ranks, const char* from, const char* to, const char* shape = "64,64",
             const char* dtype = "i32") {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({ranks}));
  Plan plan = plan_p2p(
      Request(parse_layout(shape, dtype, mesh, from), parse_layout(shape, dtype, mesh, to)), {});
  prove(plan);
  return plan;
}

}  // namespace

TEST_CASE("ranks with different plans are refused on every rank before a byte moves") {
  WorldOptions options = patient_for(60);
  options.shared_memory = GENERATE(true, false);
  MpiExecutor executor(MPI_COMM_WORLD, options);
  int size = executor.processes().count(), rank = executor.processes().index(), last = size - 1;
  if (size < 2) return;
  // The last rank's plan, and what is said of it.
  std::vector<std::pair<Plan, std::string>> rows;
  rows.emplace_back(planned(size, "S(0)", "R"),
                    ": destination placements R, where rank 0 has S(1)");
  rows.emplace_back(planned(size, "R", "S(1)"), ": source placements R, where rank 0 has S(0)");
  rows.emplace_back(planned(size, "S(0)", "S(1)", "64,32"),
                    ": shape 64,32, where rank 0 has 64,64");
  rows.emplace_back(planned(size, "S(0)", "S(1)", "64,64", "f32"),
                    ": dtype f32, where rank 0 has i32");
  rows.emplace_back(
      planned(size - 1, "S(0)", "S(1)"),
      ": source mesh " + std::to_string(size - 1) + ", where rank 0 has " + std::to_string(size));
  Plan plan = planned(size, "S(0)", "S(1)");
  for (const auto& row : rows) {
    std::string said = failure_of([&] { executor.prepare(rank == last ? row.first : plan); });
    CHECK(said == "plan: expected the same on all ranks, found a different one on rank " +
                      std::to_string(last) + " than on rank 0" + row.second);
  }
  // And all go on.
  auto prepared = executor.prepare(plan);
  prepared->fill([](Rank, std::span<std::byte> bytes) {
    std::fill(bytes.begin(), bytes.end(), std::byte{7});
  });
  prepared->run();
  prepared->take([](Rank, std::span<const std::byte> bytes) {
    CHECK(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{7}; }));
  });
}

TEST_CASE("a rank whose shards are not the plan's is named to all") {
  MpiExecutor executor(MPI_COMM_WORLD, patient_for(60));
  int size = executor.processes().count(), rank = executor.processes().index();
  if (size < 2) return;
  Plan plan = planned(size, "S(0)", "S(1)");
  Slot slot = rank;
  std::vector<std::byte> source(static_cast<std::size_t>(plan.buffer_bytes(kSourceBuffer, slot))),
      destination(static_cast<std::size_t>(plan.buffer_bytes(kDestinationBuffer, slot)));
  CallerShards shards{source, destination};
  if (rank == 1) shards.source = shards.source.first(4);
  CHECK_THROWS_WITH(executor.prepare(plan, std::span(&shards, 1)),
                    Contains("rank 1: source shard: expected") && Contains("found 4"));
  CHECK_THROWS_WITH(
      [&] {
        if (rank == 1) executor.refuse("plan: expected a plan, found NULL");
        executor.prepare(plan);
      }(),
      Contains("rank 1: plan: expected a plan, found NULL"));
}

TEST_CASE("ranks that run their prepared plans in different orders get an error, and go on") {
  MpiExecutor executor(MPI_COMM_WORLD, patient_for(60));
  int size = executor.processes().count(), rank = executor.processes().index(), last = size - 1;
  if (size < 2) return;
  Plan plan = planned(size, "S(0)", "S(1)");
  auto first = executor.prepare(plan), second = executor.prepare(plan);
  auto& mine = rank == last ? second : first;
  CHECK(
      failure_of([&] { mine->run(); }) ==
      "run: expected all ranks to run the same prepared plan, found number 1 of those prepared on "
      "rank 0 and number 2 on rank " +
          std::to_string(last));
  first->run();
  second->run();
}

TEST_CASE("processes whose options differ are refused while they meet") {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) return;
  WorldOptions options;
  options.shared_memory = rank != 1;
  CHECK_THROWS_WITH(
      World(MPI_COMM_WORLD, options),
      "shared_memory: expected the same on all processes, found 1 on rank 0 and 0 on rank 1");
}

// What no plan should bring about: the two ends of a message know it as different ones.
TEST_CASE("a message of another step or length is refused, with its sender and step") {
  WorldOptions options = patient_for(30);
  options.shared_memory = GENERATE(true, false);
  auto world = std::make_shared<World>(MPI_COMM_WORLD, options);
  if (world->size < 2) return;
  std::int64_t sent = GENERATE(64, 256), step = options.shared_memory ? GENERATE(2, 4) : 2;
  constexpr std::int64_t kAwaited = 128, kStep = 2;
  std::vector<std::byte> memory(static_cast<std::size_t>(std::max(sent, kAwaited)));
  auto message_of = [&](std::int64_t bytes, std::int64_t of_step, int peer) {
    HostMessage out;
    backends::host::append(
        out, {memory.data(), Shape{bytes}, DimVector(1, 0), DimVector(1, bytes), 1}, 1 << 20);
    out.peer = peer;
    out.tag = static_cast<int>(of_step) + 1;
    return out;
  };
  Traffic traffic(*world);
  Pending pending = 0;
  HostMessage message = world->rank == 0   ? message_of(sent, step, 1)
                        : world->rank == 1 ? message_of(kAwaited, kStep, 0)
                                           : HostMessage{};
  auto carry = [&] {
    if (world->rank == 0) traffic.send(message, pending);
    if (world->rank == 1) traffic.receive(message, pending);
    while (pending > 0) traffic.progress();
  };
  if (world->rank == 1) {
    std::string said = failure_of(carry);
    CHECK_THAT(said, Contains("MPI: receiving from rank 0 in step 2 failed on rank 1: expected 128 "
                              "B, found"));
    if (options.shared_memory)
      CHECK_THAT(said, Contains(std::to_string(sent) + " B of step " + std::to_string(step)));
    else
      CHECK_THAT(said, Contains(sent > kAwaited ? "more" : "64 B"));
  } else {
    carry();
  }
  world->broken = true;
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("an MPI call that fails says which and why") {
  World world(MPI_COMM_WORLD, {});
  MPI_Request request = MPI_REQUEST_NULL;
  int nobody = world.size + 5;
  CHECK_THROWS_AS(RESHARD_MPI_CALL(world.rank, MPI_Isend(&nobody, 1, MPI_INT, nobody, 0,
                                                         world.comm.get(), &request)),
                  BackendError);
  try {
    RESHARD_MPI_CALL(world.rank,
                     MPI_Isend(&nobody, 1, MPI_INT, nobody, 0, world.comm.get(), &request));
  } catch (const BackendError& error) {
    CHECK_THAT(error.what(), Contains("MPI_Isend(&nobody") && Contains("rank"));
  }
}
