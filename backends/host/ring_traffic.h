// SPDX-License-Identifier: BSD-3-Clause
// Sends messages through rings of shared memory: packed directly into the slots and unpacked
// directly from them. Both ends start their messages in the same order, so the next full slot
// always belongs to the oldest message still awaited; labels only detect mistakes.
#pragma once

#include <functional>
#include <vector>

#include "backends/host/doorbells.h"
#include "backends/host/message.h"
#include "backends/host/rings.h"

namespace reshard::backends::host {

// Called while nothing moves, several times a second and whenever a signal arrives, for each place
// that is being waited for, with the time since anything last moved. Returning false gives up.
using Waiting = std::function<bool(int place, std::chrono::milliseconds)>;

class RingTraffic {
 public:
  RingTraffic(Rings& rings, Doorbells& doorbells) : rings_(rings), doorbells_(doorbells) {}

  // Carries all of these messages; peers are places, with at most one message in each direction per
  // peer. `run` and `tag` identify the exchange and are equal on all its processes. Throws
  // BackendError if the exchange is given up or an unexpected message arrives; the rings are
  // unusable from then on.
  void carry(const std::vector<HostMessage>& sends, const std::vector<HostMessage>& receives,
             std::int64_t run, std::int64_t tag, const Waiting& waiting);

 private:
  // A message and how many of its chunks are done.
  struct Stream {
    const HostMessage* message;
    std::size_t next_chunk;
    bool done() const { return next_chunk == message->chunks.size(); }
  };
  static std::vector<Stream> streams(const std::vector<HostMessage>& messages, int from);
  bool progress();
  bool pack_one(Stream& stream);
  bool unpack_one(Stream& stream);
  bool done() const;
  bool waits_on(const Waiting& waiting, std::chrono::milliseconds waited) const;
  void await(const Waiting& waiting);

  Rings& rings_;
  Doorbells& doorbells_;
  std::vector<Stream> outgoing_, incoming_;
  std::int64_t run_ = 0, tag_ = 0;
};

}  // namespace reshard::backends::host
