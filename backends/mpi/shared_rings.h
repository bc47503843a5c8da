// SPDX-License-Identifier: BSD-3-Clause
// The rings between the processes of one node, in a window of MPI's, which is all that MPI does
// here. Measured at 2, 4 and 8 ranks on two cores, Open MPI and MPICH: messages up to 256 KiB
// through MPI's own transport take 1.5 to 3 times as long, packed ones of some MiB as long; only
// long contiguous ones, which it copies once, take less.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "backends/host/rings.h"

namespace reshard::backends::mpi {

// Places are those of the node's communicator.
class SharedRings : public host::Rings {
 public:
  // Collective over the node's communicator, as is destruction; null, on all of them, where there
  // is a single process or memory cannot be shared.
  static std::unique_ptr<SharedRings> make(MPI_Comm node);
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;
  ~SharedRings();

  // Gives the memory up without freeing it: the others may never come to do so, too.
  void leak() { window_ = MPI_WIN_NULL; }

 private:
  using host::Rings::Rings;
  bool allocate(MPI_Comm node);

  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace reshard::backends::mpi
