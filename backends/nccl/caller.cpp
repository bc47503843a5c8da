// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/caller.h"

#include <algorithm>

#include <fmt/format.h>

#include "backends/nccl/communicator_meeting.h"
#include "backends/nccl/executor.h"
#include "core/base/errors.h"

namespace reshard::backends::nccl {
namespace {

std::string trouble_with(const char* name, std::span<const std::byte> bytes, std::int64_t expected,
                         std::int64_t element_bytes) {
  if (static_cast<std::int64_t>(bytes.size()) != expected)
    return fmt::format("{}: expected {} bytes, found {}", name, expected, bytes.size());
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % static_cast<std::uintptr_t>(element_bytes) !=
      0)
    return fmt::format("{}: expected an address that is aligned to its elements of {} bytes", name,
                       element_bytes);
  return "";
}

}  // namespace

std::string trouble_with(const Plan& plan, Rank rank, const CallerShards& shards) {
  std::int64_t element_bytes = size_bytes(plan.request().dtype()), source = 0, destination = 0;
  if (std::binary_search(plan.ranks.begin(), plan.ranks.end(), rank)) {
    Slot slot = plan.slot_of(rank);
    source = plan.buffer(kSourceBuffer).elements(slot) * element_bytes;
    destination = plan.buffer(kDestinationBuffer).elements(slot) * element_bytes;
  }
  std::string trouble = trouble_with("source", shards.source, source, element_bytes);
  if (trouble.empty())
    trouble = trouble_with("destination", shards.destination, destination, element_bytes);
  if (trouble.empty() && source > 0 && destination > 0) {
    auto from = reinterpret_cast<std::uintptr_t>(shards.source.data()),
         to = reinterpret_cast<std::uintptr_t>(shards.destination.data());
    if (from < to + shards.destination.size() && to < from + shards.source.size())
      trouble = "destination: expected memory apart from the source's";
  }
  return trouble.empty() ? "" : fmt::format("rank {}: {}", to_int(rank), trouble);
}

CommunicatorFacts facts_of(NcclApi& api, NcclComm comm) {
  CommunicatorFacts facts{0, -1, -1};
  auto ask = [&](NcclResult result, const char* call) {
    if (result != NcclResult::Success)
      throw BackendError("NCCL", call, api.error_text(result), facts.rank);
  };
  ask(api.user_rank(comm, &facts.rank), "ncclCommUserRank");
  ask(api.count(comm, &facts.size), "ncclCommCount");
  ask(api.device(comm, &facts.device), "ncclCommCuDevice");
  return facts;
}

Job job_on(std::shared_ptr<NcclApi> api, std::shared_ptr<Device> device,
           const CallerCommunicator& caller, std::chrono::milliseconds limit) {
  CommunicatorFacts facts = facts_of(*api, caller.comm);
  Job job;
  job.meeting = std::make_unique<CommunicatorMeeting>(*api, *device, caller, facts, limit);
  job.api = std::move(api);
  job.world = facts.size;
  job.ranks = {facts.rank};
  job.devices = {std::move(device)};
  job.limit = limit;
  job.caller = caller;
  return job;
}

}  // namespace reshard::backends::nccl
