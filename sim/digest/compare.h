// SPDX-License-Identifier: BSD-3-Clause
// Where ranks have other data than they should have, and what they have there.
//
// A wrong block is compared with zeros, with what was there before, and with every block that is
// expected anywhere: a block with the same digest has the same data. Data that begins within a
// block is found by its head: among the heads that are expected and, given the weights, among those
// of all rows of all tensors.
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
  WrongTensor,  // another tensor's elements
  WrongIndex,   // elements of the right tensor, but of other places in it
  Stale,        // what was there before
  Zeros,        // as memory that was never written
  OtherData,    // none of these
  Missing,      // no digests of the part
};
std::string_view text(DigestFaultKind kind);

// What is wrong, in rows of a part that follow one another.
struct DigestFault {
  DigestFaultKind kind;
  DigestSide side;
  StoredBufferId buffer;
  std::int32_t part;
  Box box;  // of the part's tensor
  // The elements that are there, for WrongTensor and WrongIndex.
  ModelTensorId got{-1};
  Box got_box = {};
  bool whole = true;                 // false: they begin so, and go on otherwise
  bool swapped = false;              // the elements of `box` are at their place
  std::vector<Rank> got_ranks = {};  // of this side that should have them, ascending
};

// Faults of one kind and cause, of one tensor in buffers of one name; or ranks that are missing.
struct DigestFinding {
  DigestFaultKind kind;
  DigestSide side;
  ModelTensorId tensor{-1}, got{-1};  // tensor: -1 for ranks without any digests
  std::string buffer = {};            // empty for those
  std::int64_t elements = 0;
  std::vector<DigestFault> faults = {};    // by rank and box; the first is the example
  std::vector<Rank> ranks = {};            // ascending
  std::optional<std::int64_t> shift = {};  // got_box begins so many rows after box
  std::string mistake = {};                // what it looks like; empty if nothing that is known
};

// What was there before.
struct BeforeDigests {
  const Weights* weights = nullptr;
  const Digests* digests = nullptr;
};

struct DigestComparison {
  std::vector<DigestSide> sides;       // that were compared
  std::int64_t blocks = 0, bytes = 0;  // compared on all ranks
  // The largest first; none: all are equal.
  std::vector<DigestFinding> findings = {};
  bool all_places = true;  // false: only the first kMostPlaces wrong blocks are looked into
  static constexpr std::size_t kMostPlaces = std::size_t{1} << 18;
};
// Compares the sides of `wrote`, or those of them in `sides`. Throws InputError if `expected` lacks
// them or its blocks have other rows. `weights` may be null.
DigestComparison compare_digests(const ModelLayouts& layouts, const Digests& expected,
                                 const Digests& wrote, std::span<const DigestSide> sides,
                                 const Weights* weights, const BeforeDigests& before);

}  // namespace reshard::sim
