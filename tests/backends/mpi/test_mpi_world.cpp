// SPDX-License-Identifier: BSD-3-Clause
// What processes do together: gather, broadcast, communicators of groups, and the end of waiting.
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>

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
      std::shared_ptr<Communicator> comm = groups.get(world.comm.get(), world.rank, group);
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
  if (world->rank == world->size - 1) {
    MPI_Barrier(MPI_COMM_WORLD);  // stays away until the others have given up
    world->broken = true;
    return;
  }
  auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH(prepared.run(),
                    Contains("the start of a run") && Contains("nothing came for 1 s"));
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
  int silent = world->size - 1;
  if (world->rank == silent) {
    world->barrier("the start of a run");  // and then nothing
    MPI_Barrier(MPI_COMM_WORLD);
    world->broken = true;
    return;
  }
  CHECK_THROWS_WITH(prepared.run(),
                    Contains("(exchange) failed on rank " + std::to_string(world->rank)) &&
                        Contains("from rank " + std::to_string(silent)));
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
