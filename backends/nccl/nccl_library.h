// SPDX-License-Identifier: BSD-3-Clause
// NCCL itself, opened when it is first asked for: a program built with this backend starts
// everywhere, and can say why NCCL is not there.
//
// $RESHARD_NCCL_LIBRARY names the file; without it the system's search finds libnccl.so.2. Streams
// must be those of a CUDA device (a Stream is its cudaStream_t).
#pragma once

#include <memory>
#include <string>

#include "backends/nccl/nccl_api.h"

namespace reshard::backends::nccl {

// Throws BackendError where the library is not found, is older than kNcclOldest, or lacks a
// function that its version should have.
std::unique_ptr<NcclApi> open_nccl();
// The one that this process has loaded already: a communicator is of use to the library that made
// it and to no other.
std::unique_ptr<NcclApi> loaded_nccl();

}  // namespace reshard::backends::nccl
