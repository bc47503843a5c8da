// SPDX-License-Identifier: BSD-3-Clause
// One of the programs that mpi_peers.py compares: reshard's MPI backend, S(0) -> S(1) of an N x N
// float32 tensor, from and to the caller's memory. Prints the median time of a transfer in
// microseconds: from a barrier to the last rank's end. With a third argument everything goes
// through MPI's own transport.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backends/mpi/executor.h"
#include "core/bytes/block.h"
#include "core/pattern/pattern.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"

using namespace reshard;

namespace {

std::span<std::byte> bytes_of(const Block& block) {
  return {block.data(), static_cast<std::size_t>(block.size())};
}

int run(std::int64_t n, int repetitions, bool shared_memory) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({size}));
  std::string shape = std::to_string(n) + "," + std::to_string(n);
  Request request(parse_layout(shape, "f32", mesh, "S(0)"),
                  parse_layout(shape, "f32", mesh, "S(1)"));
  Plan plan = plan_p2p(request, {});
  prove(plan);
  // On huge pages, as numpy has its arrays.
  auto bytes = [&](BufferId buffer) {
    return plan.buffer(buffer).elements(static_cast<Slot>(rank)) * size_bytes(DType::F32);
  };
  Block source(bytes(kSourceBuffer)), destination(bytes(kDestinationBuffer));
  std::memset(destination.data(), 0, static_cast<std::size_t>(destination.size()));
  Pattern pattern(request);
  pattern.fill(request.source(), rank, 0, bytes_of(source));

  backends::mpi::WorldOptions options;
  options.shared_memory = shared_memory;
  backends::mpi::MpiExecutor executor(MPI_COMM_WORLD, options);
  CallerShards shards{bytes_of(source), bytes_of(destination)};
  auto prepared = executor.prepare(plan, std::span(&shards, 1));
  std::vector<double> times;
  for (int i = -2; i < repetitions; ++i) {  // two to warm up
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    prepared->run();
    double mine = MPI_Wtime() - begin, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i >= 0) times.push_back(slowest);
  }
  if (pattern.check(request.destination(), rank, request.addends_wanted(rank),
                    bytes_of(destination))) {
    std::fprintf(stderr, "rank %d: wrong data\n", rank);
    return 1;
  }
  std::sort(times.begin(), times.end());
  if (rank == 0) std::printf("%.1f\n", times[times.size() / 2] * 1e6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code =
      run(argc > 1 ? std::atoll(argv[1]) : 4096, argc > 2 ? std::atoi(argv[2]) : 9, argc < 4);
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}
