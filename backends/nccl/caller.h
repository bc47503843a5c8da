// SPDX-License-Identifier: BSD-3-Clause
// The communicator, the stream and one rank's shards of a program that already has a communicator.
// A plan then runs between the program's own kernels, on its own buffers.
//
// They are used but never changed: the communicator is neither finalized nor destroyed, and is
// aborted only if the caller allows it. There is only one stream, because a communicator used on
// several streams may make them wait for each other.
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
  Stream stream;           // on the communicator's GPU
  bool may_abort = false;  // if other ranks are lost: kernels that wait for them then end
};

// Why this rank's part of the plan cannot run on these shards; empty if it can.
std::string trouble_with(const Plan& plan, Rank rank, std::span<const CallerShards> shards);

// What the communicator itself reports.
struct CommunicatorFacts {
  int size, rank, device;
};
CommunicatorFacts facts_of(NcclApi& api, NcclComm comm);

// A job of all the communicator's ranks. This process drives one of them, on the communicator's
// device; the processes meet over the communicator itself.
Job job_on(std::shared_ptr<NcclApi> api, std::shared_ptr<Device> device,
           const CallerCommunicator& caller, std::chrono::milliseconds limit);

}  // namespace reshard::backends::nccl
