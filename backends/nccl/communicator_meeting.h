// SPDX-License-Identifier: BSD-3-Clause
// Processes that have nothing in common but a communicator meet over it: byte strings travel
// through the GPUs' memory, gathered by all from all.
//
// Used when a plan is made ready, never while it runs. Nobody can be told why a process gives up;
// the others find out by their time limit.
//
// Memory on the GPU is taken at the beginning and kept to the end: to free it between two
// gatherings would wait for all that runs on the GPU, which may be waiting for the second.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "backends/device/owners.h"
#include "backends/launch/meeting.h"
#include "backends/nccl/caller.h"

namespace reshard::backends::nccl {

using launch::Meeting;

class CommunicatorMeeting : public Meeting {
 public:
  CommunicatorMeeting(NcclApi& api, Device& device, const CallerCommunicator& caller,
                      const CommunicatorFacts& facts, std::chrono::milliseconds limit)
      : api_(api), device_(device), caller_(caller), facts_(facts), limit_(limit) {
    space(kFirstBytes);
  }

  int index() const override { return facts_.rank; }
  int count() const override { return facts_.size; }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override;
  std::vector<std::byte> broadcast(std::span<const std::byte> mine) override;
  // The GPU may not answer any more: nothing there is freed.
  void give_up(const std::string& why) noexcept override;

 private:
  static constexpr std::int64_t kFirstBytes = 1 << 16;
  std::byte* space(std::int64_t bytes);
  // Every process's bytes, by index, on all processes.
  std::vector<std::vector<std::byte>> share(std::span<const std::byte> mine);
  // The same where all have as many, above 0: one behind the other.
  std::vector<std::byte> share_equal(std::span<const std::byte> mine);
  // For what the stream holds by now.
  void wait(Event event);
  void check_communicator();
  void checked(NcclResult result, const char* call);

  NcclApi& api_;
  Device& device_;
  CallerCommunicator caller_;
  CommunicatorFacts facts_;
  std::chrono::milliseconds limit_;
  std::vector<DeviceMemory> spaces_;  // the last one is the largest
};

}  // namespace reshard::backends::nccl
