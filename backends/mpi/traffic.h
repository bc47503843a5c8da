// SPDX-License-Identifier: BSD-3-Clause
// All transfers in progress between this process and others, advanced by polling.
//
// Messages to a process of the same node go through rings of shared memory, in the order in which
// they were given: both ends issue steps in listed order, so the next full slot always belongs to
// the oldest message awaited. Messages to other nodes are nonblocking MPI calls, matched in order
// for the same reason. Tags, of messages and of slots, only detect mistakes: a message that arrives
// with an unexpected tag or length ends the run.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "backends/host/message.h"
#include "backends/mpi/world.h"
#include "core/bytes/block.h"

namespace reshard::backends::mpi {

using host::Chunk;
using host::HostMessage;

// Counts the transfers that a launch still waits for.
using Pending = std::int32_t;

class Traffic {
 public:
  explicit Traffic(World& world)
      : world_(world), outgoing_(to_index(world.size)), incoming_(to_index(world.size)) {}

  // The largest chunk of messages to and from `process`.
  std::int64_t chunk_bytes(int process) const {
    return world_.on_node(process)
               ? std::min(world_.rings->slot_bytes(), world_.options.chunk_bytes)
               : world_.options.chunk_bytes;
  }

  // Start a transfer. `pending` is raised now and lowered as parts of the transfer finish; it and
  // the message must outlive the transfer. Both processes of a pair must start transfers in the
  // same order.
  void send(const HostMessage& message, Pending& pending) { carry(message, false, pending); }
  void receive(const HostMessage& message, Pending& pending) { carry(message, true, pending); }
  // Adds a collective among `group` that has been started.
  void track(MPI_Request request, const std::vector<int>& group, Pending& pending);

  // Advances whatever can be advanced now; false if nothing could.
  bool progress();
  // The processes that these still wait for, ascending.
  std::vector<int> awaited(const std::vector<const Pending*>& pending) const;
  // Ends a failed run: cancels receives, as their memory is about to be freed.
  void abandon() noexcept;

 private:
  // A message through the rings, and the next of its chunks.
  struct Stream {
    const HostMessage* message;
    Pending* pending;
    std::size_t next_chunk;
  };
  // A chunk in progress in MPI.
  struct Call {
    const HostMessage* message;  // null for a collective
    const Chunk* chunk;
    Pending* pending;
    std::unique_ptr<Block> staging;  // null if the chunk is sent or received in place
    const std::vector<int>* group;
    bool receives;
  };

  void carry(const HostMessage& message, bool receives, Pending& pending);
  void begin(const HostMessage& message, bool receives, Pending& pending);
  std::unique_ptr<Block> staging(std::int64_t bytes);
  bool pack_one(int process);
  bool unpack_one(int process);
  bool progress_rings();
  bool progress_calls();
  void check_status(const Call& call, int i) const;
  void check_length(const Call& call, int i) const;
  // Throws BackendError: what arrived is not what this end expects.
  [[noreturn]] void refuse(const HostMessage& expected, const Chunk& chunk,
                           const std::string& found) const;
  void finish(Call& call);

  World& world_;
  std::vector<std::deque<Stream>> outgoing_, incoming_;  // by process
  std::int32_t streams_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<Call> calls_;     // parallel to requests_
  std::vector<int> completed_;  // scratch memory of progress_calls, as is statuses_
  std::vector<MPI_Status> statuses_;
  std::vector<std::unique_ptr<Block>> spare_;
};

}  // namespace reshard::backends::mpi
