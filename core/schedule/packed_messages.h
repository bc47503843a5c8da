// SPDX-License-Identifier: BSD-3-Clause
// Messages as sent by executors that pack only what they cannot send in place. A message goes in
// *transfers*: a large box by itself, smaller ones that follow each other together. A transfer that
// is one contiguous range of a buffer is sent from there, and received there; any other is packed
// by its sender, unpacked by its receiver, or both, and takes memory of its size for as long as its
// step runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

// A box of at least this many bytes is a transfer of its own: one more transfer then costs less
// than packing.
inline constexpr std::int64_t kOwnTransferBytes = 1 << 20;
// Packed transfers begin at multiples of this, in bytes.
inline constexpr std::int64_t kPackedAlignment = 256;

// Calls visit(first, count) for the boxes of every transfer of a message of `boxes` boxes, in
// order. Depends on their sizes alone, so that both ends see the same.
template <class BytesOf, class Visit>
void for_each_transfer(std::size_t boxes, BytesOf&& bytes_of, Visit&& visit) {
  for (std::size_t first = 0, next; first < boxes; first = next) {
    next = first + 1;
    if (bytes_of(first) < kOwnTransferBytes)
      while (next < boxes && bytes_of(next) < kOwnTransferBytes) ++next;
    visit(first, next - first);
  }
}

// Bytes that each end of a message packs.
struct PackedBytes {
  std::int64_t sender = 0, receiver = 0;
};
PackedBytes packed_bytes(const Plan& plan, const ExchangeStep& step,
                         const ExchangeStep::Message& message);

// For all messages of a step, by slot.
std::vector<std::int64_t> packed_per_slot(const Plan& plan, const ExchangeStep& step);

// Splits boxes of exchanges into parts that are contiguous at both ends, if the parts have at least
// kOwnTransferBytes. Does not change the values.
void split_contiguous(Plan& plan);

}  // namespace reshard
