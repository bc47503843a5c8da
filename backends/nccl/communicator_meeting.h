// SPDX-License-Identifier: BSD-3-Clause
// A meeting for processes that share nothing but a communicator: byte strings travel through the
// GPUs' memory by all-gathers.
//
// Used while a plan is prepared, never while it runs. A process that gives up cannot inform the
// others why; they notice by their time limit.
//
// GPU memory is allocated at the start and kept until the end: freeing it between two all-gathers
// would wait for everything that runs on the GPU, which may itself be waiting for the second
// all-gather.
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
  // Frees nothing on the GPU, which may no longer respond.
  void give_up(const std::string& why) noexcept override;

 private:
  static constexpr std::int64_t kFirstBytes = 1 << 16;
  std::byte* space(std::int64_t bytes);
  // Every process's bytes, by index, on all processes.
  std::vector<std::vector<std::byte>> share(std::span<const std::byte> mine);
  // The same if all processes pass the same number of bytes, above 0: their bytes, concatenated.
  std::vector<std::byte> share_equal(std::span<const std::byte> mine);
  // Waits for the work that the stream holds so far.
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
