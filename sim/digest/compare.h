// SPDX-License-Identifier: BSD-3-Clause
// Finds where the data of ranks differs from what it should be, and which data is there instead.
//
// A wrong block is compared with zeros, with the data from before, and with every block that is
// expected anywhere: blocks with equal digests have the same data. Data that begins within a block
// is found by its head, among the expected heads and, if the weights are given, among the heads of
// all rows of all tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/digest/digests.h"

namespace reshard::sim {

enum class DigestFaultKind : std::uint8_t {
  WrongTensor,  // elements of another tensor
  WrongIndex,   // elements of the right tensor, but from other indices
  Stale,        // the data from before
  Zeros,        // such as memory that was never written
  OtherData,    // none of these
  Missing,      // there are no digests of the part
};
std::string_view text(DigestFaultKind kind);

// Wrong data in consecutive rows of a part.
struct DigestFault {
  DigestFaultKind kind;
  DigestSide side;
  StoredBufferId buffer;
  std::int32_t part;
  Box box;  // of the part's tensor
  // The elements that are there, for WrongTensor and WrongIndex.
  ModelTensorId got{-1};
  Box got_box = {};
  bool whole = true;                 // false: only the beginning is those elements
  bool swapped = false;              // the elements of `box` are where these should be
  std::vector<Rank> got_ranks = {};  // the ranks of this side that should have them, ascending
};

// Faults of one kind and cause, in one tensor and in buffers of one name; or ranks without digests.
struct DigestFinding {
  DigestFaultKind kind;
  DigestSide side;
  ModelTensorId tensor{-1}, got{-1};  // `tensor` is -1 for ranks without digests
  std::string buffer = {};            // empty for ranks without digests
  std::int64_t elements = 0;
  std::vector<DigestFault> faults = {};  // by rank and box; the first is the example
  std::vector<Rank> ranks = {};          // ascending
  std::optional<std::int64_t> shift =
      {};                    // by how many rows the beginning of got_box is after that of box
  std::string mistake = {};  // the known mistake that explains it; empty if none does
};

// The digests or weights of what ranks had before.
struct BeforeDigests {
  const Weights* weights = nullptr;
  const Digests* digests = nullptr;
};

struct DigestComparison {
  std::vector<DigestSide> sides;       // the sides that were compared
  std::int64_t blocks = 0, bytes = 0;  // compared, on all ranks
  // The largest first; empty: everything is equal.
  std::vector<DigestFinding> findings = {};
  bool all_places = true;  // false: only the first kMostPlaces wrong blocks were examined
  static constexpr std::size_t kMostPlaces = std::size_t{1} << 18;
};
// Compares the sides in `wrote`, or only those in `sides`. Throws InputError if `expected` lacks
// one of them or has blocks of other rows. `weights` may be null.
DigestComparison compare_digests(const ModelLayouts& layouts, const Digests& expected,
                                 const Digests& wrote, std::span<const DigestSide> sides,
                                 const Weights* weights, const BeforeDigests& before);

}  // namespace reshard::sim
