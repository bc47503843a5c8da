// SPDX-License-Identifier: BSD-3-Clause
// MPI calls that throw on errors, and handles that free themselves. C interface only: the C++
// bindings have been removed from the standard.
#pragma once

#include <mpi.h>

#include <utility>

namespace reshard::backends::mpi {

// Throws BackendError with the call as written and MPI's error text, unless `code` is MPI_SUCCESS.
// `rank` is the calling rank.
void check(int code, const char* call, int rank);

// True between MPI_Init and MPI_Finalize, whichever part of the process calls them.
bool mpi_is_up();

// Owns a communicator. Frees it only while MPI is up, as handles may outlive MPI.
class MpiCommunicator {
 public:
  MpiCommunicator() = default;
  explicit MpiCommunicator(MPI_Comm comm) : comm_(comm) {}
  MpiCommunicator(MpiCommunicator&& other) noexcept
      : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  MpiCommunicator& operator=(MpiCommunicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~MpiCommunicator();
  MPI_Comm get() const { return comm_; }
  // Drops the handle without freeing the communicator.
  void leak() { comm_ = MPI_COMM_NULL; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace reshard::backends::mpi

#define RESHARD_MPI_CALL(rank, call) ::reshard::backends::mpi::check((call), #call, (rank))
