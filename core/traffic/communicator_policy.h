// SPDX-License-Identifier: BSD-3-Clause
// Policies of communicators: of which one a message between two ranks is, and when it is made. The
// simulation and the NCCL backend know them by the same names; they are what ProcessGroupNCCL does
// (eager, cached), did (pairwise), and was proposed to do (stream-per-pair, split).
//
//   eager            the parent, made at the start, and its one stream
//   cached           the parent where it was made before, by a collective of all ranks or by a
//                    batch; else as pairwise
//   pairwise         a communicator and a stream for each unordered pair, made on first use by both
//   stream-per-pair  the parent, and a stream for each pair; NCCL serialises the messages all the
//                    same
//   split            a communicator split off the parent at the start for each distinct pair
//
// The parent is that of all ranks. A batch is always of the parent. Groups of collectives are split
// off the parent at the start where that is made there, else made on first use.
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

// The parent is there before anything runs.
inline bool makes_parent_at_start(CommunicatorPolicy policy) {
  return policy != CommunicatorPolicy::Cached && policy != CommunicatorPolicy::Pairwise;
}

}  // namespace reshard
