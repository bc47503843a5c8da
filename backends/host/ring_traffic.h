// SPDX-License-Identifier: BSD-3-Clause
// Messages through rings of shared memory: packed into their slots and unpacked from them, with no
// other memory between. Both ends begin their messages in the same order, so that the next full
// slot always belongs to the oldest message awaited; labels only make a mistake show.
#pragma once

#include <functional>
#include <vector>

#include "backends/host/doorbells.h"
#include "backends/host/message.h"
#include "backends/host/rings.h"

namespace reshard::backends::host {

// While nothing moves, several times a second and whenever a signal comes, for each place that is
// waited for, with how long nothing has moved: false gives up.
using Waiting = std::function<bool(int place, std::chrono::milliseconds)>;

class RingTraffic {
 public:
  RingTraffic(Rings& rings, Doorbells& doorbells) : rings_(rings), doorbells_(doorbells) {}

  // All of these; peers are places, at most one message each way with each. `run` and `tag`
  // are the exchange's own, equal on all of them. Throws BackendError where it gives up or other
  // messages come than awaited: the rings are of no use from then on.
  void carry(const std::vector<HostMessage>& sends, const std::vector<HostMessage>& receives,
             std::int64_t run, std::int64_t tag, const Waiting& waiting);

 private:
  // A message, and how far it is.
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
