// SPDX-License-Identifier: BSD-3-Clause
// What meets what in a trace: the two ends of a message, the calls of a collective.
//
// The n-th send from a rank to another of one tag and communicator meets the n-th recv; the n-th
// collective that a rank calls of a communicator meets the n-th of every other rank of it. Where
// two lists differ, what is said is the least that makes them alike: one call that is missing, that
// is too many, that is another, two that stand in each other's place.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/trace/trace.h"

namespace reshard::sim {

// How a list differs from the one that it should be, at its first difference.
struct Difference {
  enum class Kind : std::uint8_t {
    None,
    Changed,  // own[at] is another than wanted[at]; there may be more differences behind it
    Swapped,  // own[at] and own[other] stand in each other's place
    Missing,  // wanted[at] is not in own, which is alike otherwise, or as far as it goes
    Extra     // own[at] is not wanted
  } kind = Kind::None;
  std::size_t at = 0, other = 0;
};
Difference difference_of(const std::vector<std::int32_t>& own,
                         const std::vector<std::int32_t>& wanted);

// Numbers what is alike alike, as it comes.
template <class Key>
class Numbering {
 public:
  std::int32_t of(const Key& key) {
    return known_.try_emplace(key, static_cast<std::int32_t>(known_.size())).first->second;
  }

 private:
  std::map<Key, std::int32_t> known_;
};

// Fill TraceEnd::other and TraceCall::first, and what one line says of the transport for all that
// it meets; append what does not match to the findings. Communicators must have their ranks. The
// latter throws InputError "FILE:LINE" for calls that together are a collective which no memory
// holds.
void match_messages(Trace& trace);
void match_calls(Trace& trace);

}  // namespace reshard::sim
