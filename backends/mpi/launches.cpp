// SPDX-License-Identifier: BSD-3-Clause
// Launches of local work and of messages; native_collective.cpp has MPI's own collectives.
#include "backends/mpi/prepared.h"

#include <algorithm>

namespace reshard::backends::mpi {
namespace {

// Does one box per call of work().
class LocalLaunch : public PreparedLaunch {
 public:
  LocalLaunch(const LaunchContext& context, const LocalWork& work)
      : memory_(context.memory), work_(work) {}

  Work work() override {
    if (next_ < work_.size()) work_.run_one(next_++, memory_);
    if (next_ < work_.size()) return Work::Some;
    next_ = 0;  // ready for the next run
    return Work::Done;
  }

 private:
  host::RankMemory& memory_;
  const LocalWork& work_;
  std::size_t next_ = 0;
};

// All receives are started before the first send, so that MPI can put bytes directly into place
// rather than into its own buffers.
class MessagesLaunch : public PreparedLaunch {
 public:
  MessagesLaunch(const LaunchContext& context, const Messages& work) {
    for (const Messages::PeerMessage& message : work.receives)
      receives_.push_back(carried(context, message, host::End::Receives));
    for (const Messages::PeerMessage& message : work.sends)
      sends_.push_back(carried(context, message, host::End::Sends));
    // Start with the next higher rank and wrap around, so that not all ranks send to rank 0 at
    // once.
    auto higher = std::find_if(sends_.begin(), sends_.end(), [&](const host::HostMessage& message) {
      return message.peer > context.world.rank;
    });
    std::rotate(sends_.begin(), higher, sends_.end());
  }

  void issue(Traffic& traffic) override {
    for (const host::HostMessage& message : receives_) traffic.receive(message, pending);
    for (const host::HostMessage& message : sends_) traffic.send(message, pending);
  }

 private:
  static host::HostMessage carried(const LaunchContext& context,
                                   const Messages::PeerMessage& message, host::End end) {
    int peer = context.process(message.peer);
    host::HostMessage out = host::message_of(message, end, std::cref(context.memory),
                                             context.traffic.chunk_bytes(peer));
    out.peer = peer;
    out.tag = context.tag();
    return out;
  }

  std::vector<host::HostMessage> receives_, sends_;
};

}  // namespace

std::unique_ptr<PreparedLaunch> make_launch(const LaunchContext& context) {
  const auto& work = context.launch.work;
  if (const auto* local = std::get_if<LocalWork>(&work))
    return std::make_unique<LocalLaunch>(context, *local);
  if (const auto* messages = std::get_if<Messages>(&work))
    return std::make_unique<MessagesLaunch>(context, *messages);
  return make_native_launch(context, std::get<NativeCollective>(work));
}

}  // namespace reshard::backends::mpi
