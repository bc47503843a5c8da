// SPDX-License-Identifier: BSD-3-Clause
// Catch2 under mpirun: every process runs every case. A process with a failed check throws out of
// the case, and the others would then run into their time limits; so the first failure ends all.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <catch2/catch.hpp>

#include <mpi.h>

#include <iostream>

namespace {

struct Mpi : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testRunStarting(const Catch::TestRunInfo&) override {
    MPI_Init(nullptr, nullptr);
    // MPICH hands what MPI_Testsome finds to these, whatever the communicator of the message says.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.assertions.allOk()) return;
    std::cout.flush();
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  void testRunEnded(const Catch::TestRunStats&) override { MPI_Finalize(); }
};

CATCH_REGISTER_LISTENER(Mpi)

}  // namespace
