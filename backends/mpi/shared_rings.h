// SPDX-License-Identifier: BSD-3-Clause
// The rings between the processes of one node, in a shared window; MPI is used here only to
// allocate it. Measured at 2, 4 and 8 ranks on two cores with Open MPI and MPICH: for messages up
// to 256 KiB MPI's own transport takes 1.5 to 3 times as long, and for packed messages of a few MiB
// as long; only long contiguous messages, which it copies once, are faster.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "backends/host/rings.h"

namespace reshard::backends::mpi {

// Places are ranks of the node's communicator.
class SharedRings : public host::Rings {
 public:
  // Collective over the node's communicator, as is destruction. Null on all processes if there is
  // only one or if memory cannot be shared.
  static std::unique_ptr<SharedRings> make(MPI_Comm node);
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;
  ~SharedRings();

  // Drops the memory without freeing it: other processes may never join the collective free.
  void leak() { window_ = MPI_WIN_NULL; }

 private:
  using host::Rings::Rings;
  bool allocate(MPI_Comm node);

  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace reshard::backends::mpi
