// SPDX-License-Identifier: BSD-3-Clause
// Catch2 under mpirun: every process runs every case. A process whose check fails throws out of the
// case, and the others then run into their time limits; so the first failure ends all.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int result = Catch::Session().run(argc, argv);
  if (result != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
  return result;
}
