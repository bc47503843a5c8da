// SPDX-License-Identifier: BSD-3-Clause
// The NCCL library itself, loaded when first needed: a program built with this backend starts on
// any machine, and can report that NCCL is missing and why.
//
// $RESHARD_NCCL_LIBRARY names the file; otherwise the system's search finds libnccl.so.2. Streams
// must belong to a CUDA device (a Stream is its cudaStream_t).
#pragma once

#include <memory>
#include <string>

#include "backends/nccl/nccl_api.h"

namespace reshard::backends::nccl {

// Throws BackendError if the library is not found, is older than kNcclOldest, or lacks a function
// that its version should have.
std::unique_ptr<NcclApi> open_nccl();
// The library that this process has loaded already: a communicator is valid only for the library
// that made it.
std::unique_ptr<NcclApi> loaded_nccl();

}  // namespace reshard::backends::nccl
