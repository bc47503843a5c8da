// SPDX-License-Identifier: BSD-3-Clause
// What a program that already has a communicator lends: that, a stream, and one rank's shards. A
// plan then runs between the program's own kernels, on its own buffers.
//
// What is lent is used and never changed: the communicator is neither finalized nor destroyed, and
// aborted only where the caller asks for it; the stream is one, as communicators that are used on
// several may wait for each other.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "backends/nccl/nccl_api.h"
#include "core/plan/executor.h"

namespace reshard::backends::nccl {

struct Job;

struct CallerCommunicator {
  NcclComm comm;
  Stream stream;           // of the communicator's GPU
  bool may_abort = false;  // when others are lost: kernels that wait for them then end
};

// Why this rank's part of the plan cannot run on these shards; empty where it can.
std::string trouble_with(const Plan& plan, Rank rank, std::span<const CallerShards> shards);

// Of a communicator's own.
struct CommunicatorFacts {
  int size, rank, device;
};
CommunicatorFacts facts_of(NcclApi& api, NcclComm comm);

// A job of all the communicator's ranks, of which this process drives one, on the communicator's
// device. Its processes meet over the communicator itself.
Job job_on(std::shared_ptr<NcclApi> api, std::shared_ptr<Device> device,
           const CallerCommunicator& caller, std::chrono::milliseconds limit);

}  // namespace reshard::backends::nccl
