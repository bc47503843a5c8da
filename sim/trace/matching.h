// SPDX-License-Identifier: BSD-3-Clause
// Matches the two ends of each message and the calls of each collective of a trace.
//
// The n-th send between two ranks with one tag and communicator matches the n-th such recv. The
// n-th collective that a rank calls on a communicator matches the n-th one of every other rank of
// it. If two lists of calls differ, the finding is the smallest change that makes them equal: a
// missing call, an extra call, two swapped calls; otherwise the first call that differs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/trace/trace.h"

namespace reshard::sim {

// The first difference of a list from what it should be.
struct Difference {
  enum class Kind : std::uint8_t {
    None,
    Changed,  // own[at] differs from wanted[at], and more can differ after it
    Swapped,  // own[at] and own[other] are in each other's place; the rest is equal
    Missing,  // own lacks wanted[at]; the rest is equal, or own ends there
    Extra     // own[at] is not in wanted; the rest is equal, or wanted ends there
  } kind = Kind::None;
  std::size_t at = 0, other = 0;
};
Difference difference_of(const std::vector<std::int32_t>& own,
                         const std::vector<std::int32_t>& wanted);

// Gives equal keys the same number, from 0 in order of first appearance.
template <class Key>
class Numbering {
 public:
  std::int32_t of(const Key& key) {
    return known_.try_emplace(key, static_cast<std::int32_t>(known_.size())).first->second;
  }

 private:
  std::map<Key, std::int32_t> known_;
};

// Fill TraceEnd::other and TraceCall::first, copy a transport that one line gives to the lines that
// match it, and append a finding for everything that does not match. Communicators must have their
// ranks. match_calls throws InputError "FILE:LINE" for calls of a collective that is too large for
// any memory.
void match_messages(Trace& trace);
void match_calls(Trace& trace);

}  // namespace reshard::sim
