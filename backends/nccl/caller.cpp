// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/caller.h"

#include <algorithm>

#include <fmt/core.h>

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
    return fmt::format("{}: expected an address aligned to its elements of {} bytes", name,
                       element_bytes);
  return "";
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  auto at = [](const auto& bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); };
  return !a.empty() && !b.empty() && at(a) < at(b) + b.size() && at(b) < at(a) + a.size();
}

}  // namespace

std::string trouble_with(const Plan& plan, Rank rank, std::span<const CallerShards> shards) {
  bool takes_part = std::binary_search(plan.ranks.begin(), plan.ranks.end(), rank);
  auto bytes_of = [&](BufferId shard) {
    return takes_part ? plan.buffer_bytes(shard, plan.slot_of(rank)) : 0;
  };
  std::string trouble;
  for (std::size_t t = 0; t < shards.size() && trouble.empty(); ++t) {
    TensorId tensor{static_cast<std::int32_t>(t)};
    std::int64_t width = size_bytes(plan.request(tensor).dtype());
    trouble = trouble_with("source", shards[t].source, bytes_of(source_of(tensor)), width);
    if (trouble.empty())
      trouble = trouble_with("destination", shards[t].destination, bytes_of(destination_of(tensor)),
                             width);
    for (std::size_t other = 0; other < shards.size() && trouble.empty(); ++other) {
      if (overlap(shards[t].destination, shards[other].source))
        trouble = "destination: expected memory separate from the source's";
      if (other != t && overlap(shards[t].destination, shards[other].destination))
        trouble = "destination: expected memory separate from another tensor's";
    }
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
