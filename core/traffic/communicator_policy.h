// SPDX-License-Identifier: BSD-3-Clause
// Communicator policies: which communicator carries a message between two ranks, and when it is
// created. The simulation and the NCCL backend use the same names. They are what ProcessGroupNCCL
// does (eager, cached), used to do (pairwise), and was proposed to do (stream-per-pair, split).
//
//   eager            the parent, created at the start, and its one stream
//   cached           the parent if a collective of all ranks or a batch has already created it;
//                    else as pairwise
//   pairwise         a communicator and a stream per unordered pair, created by both ranks on first
//                    use
//   stream-per-pair  the parent, and a stream per pair; NCCL still serialises the messages
//   split            a communicator per distinct pair, split off the parent at the start
//
// The parent is the communicator of all ranks. Batches always use the parent. A collective's group
// has its own communicator: split off the parent at the start where the parent is created at the
// start, else created on first use.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reshard {

enum class CommunicatorPolicy : std::uint8_t { Eager, Cached, Pairwise, StreamPerPair, Split };
inline constexpr std::array kCommunicatorPolicies{
    CommunicatorPolicy::Eager, CommunicatorPolicy::Cached, CommunicatorPolicy::Pairwise,
    CommunicatorPolicy::StreamPerPair, CommunicatorPolicy::Split};

std::string_view text(CommunicatorPolicy policy);  // "stream-per-pair"
// Throws InputError "FIELD: expected ...".
CommunicatorPolicy parse_communicators(std::string_view name, std::string_view field);

// Whether the parent exists before anything runs.
inline bool makes_parent_at_start(CommunicatorPolicy policy) {
  return policy != CommunicatorPolicy::Cached && policy != CommunicatorPolicy::Pairwise;
}

}  // namespace reshard
