// SPDX-License-Identifier: BSD-3-Clause
#include "backends/host/ring_traffic.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"

namespace reshard::backends::host {
namespace {

constexpr std::chrono::milliseconds kNap{100};
}  // namespace

// Starts with the peer at the next place, so that not all processes start with the same peer.
std::vector<RingTraffic::Stream> RingTraffic::streams(const std::vector<HostMessage>& messages,
                                                      int from) {
  std::vector<Stream> out;
  out.reserve(messages.size());
  for (const HostMessage& message : messages) out.push_back({&message, 0});
  auto first = std::find_if(out.begin(), out.end(),
                            [&](const Stream& stream) { return stream.message->peer > from; });
  std::rotate(out.begin(), first, out.end());
  return out;
}

void RingTraffic::carry(const std::vector<HostMessage>& sends,
                        const std::vector<HostMessage>& receives, std::int64_t run,
                        std::int64_t tag, const Waiting& waiting) {
  outgoing_ = streams(sends, rings_.place());
  incoming_ = streams(receives, rings_.place());
  run_ = run;
  tag_ = tag;
  while (!done())
    if (!progress()) await(waiting);
}

bool RingTraffic::done() const {
  auto done = [](const Stream& stream) { return stream.done(); };
  return std::all_of(outgoing_.begin(), outgoing_.end(), done) &&
         std::all_of(incoming_.begin(), incoming_.end(), done);
}

// Moves one chunk in each direction with every process: all peers are served equally, and packed
// data is unpacked while still in the caches.
bool RingTraffic::progress() {
  bool moved = false;
  for (std::size_t i = 0; i < std::max(outgoing_.size(), incoming_.size()); ++i) {
    if (i < outgoing_.size() && pack_one(outgoing_[i])) moved = true;
    if (i < incoming_.size() && unpack_one(incoming_[i])) moved = true;
  }
  return moved;
}

bool RingTraffic::pack_one(Stream& stream) {
  if (stream.done()) return false;
  const HostMessage& message = *stream.message;
  std::byte* slot = rings_.free_slot(message.peer);
  if (slot == nullptr) return false;
  const Chunk& chunk = message.chunks[stream.next_chunk++];
  pack(message, chunk, slot);
  rings_.filled(message.peer, {tag_, chunk.bytes, run_});
  doorbells_.ring(message.peer);
  return true;
}

bool RingTraffic::unpack_one(Stream& stream) {
  if (stream.done()) return false;
  const HostMessage& message = *stream.message;
  Rings::Label label{};
  const std::byte* slot = rings_.full_slot(message.peer, label);
  if (slot == nullptr) return false;
  const Chunk& chunk = message.chunks[stream.next_chunk++];
  if (label != Rings::Label{tag_, chunk.bytes, run_})
    throw BackendError(
        "shared memory", fmt::format("receiving from place {}", message.peer),
        fmt::format("expected {} of run {}, exchange {}; found {} of run {}, exchange {}",
                    bytes_text(chunk.bytes), run_, tag_, bytes_text(label.bytes), label.run,
                    label.tag),
        -1);
  unpack(message, chunk, slot);
  rings_.drained(message.peer);
  doorbells_.ring(message.peer);
  return true;
}

bool RingTraffic::waits_on(const Waiting& waiting, std::chrono::milliseconds waited) const {
  for (const auto* streams : {&incoming_, &outgoing_})
    for (const Stream& stream : *streams)
      if (!stream.done() && !waiting(stream.message->peer, waited)) return false;
  return true;
}

// Returns when something has moved. It sleeps at once rather than yield: on a busy machine a
// process that yields is scheduled after all that compute, while one that is woken runs before
// them.
void RingTraffic::await(const Waiting& waiting) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point since = Clock::now();
  while (true) {
    doorbells_.listen();
    if (progress()) break;
    if (doorbells_.sleep(kNap)) continue;
    auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - since);
    if (waits_on(waiting, waited)) continue;
    doorbells_.stop_listening();
    throw BackendError("shared memory", "an exchange", "stopped by the caller", -1);
  }
  doorbells_.stop_listening();
}

}  // namespace reshard::backends::host
