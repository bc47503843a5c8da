// SPDX-License-Identifier: BSD-3-Clause
// Which of the indices 0 to length-1 (of rows or experts) each of n ranks has, in memory order.
#pragma once

#include <cstdint>
#include <vector>

namespace reshard {

struct IndexMap {
  enum class Rule : std::uint8_t {
    Even,            // length / n each
    RemainderFirst,  // consecutive; each of the first ranks has one more
    RemainderLast,   // consecutive; each of the last ranks has one more
    RoundRobin,      // rank r has r, r + n, ...
    Sizes,           // consecutive; rank r has sizes[r]
    Lists,           // rank r has lists[r]; an index can be in several lists
  };
  Rule rule = Rule::Even;
  std::vector<std::int64_t> sizes = {};               // by rank
  std::vector<std::vector<std::int64_t>> lists = {};  // by rank
};

// Indices lo to hi-1.
struct IndexRun {
  std::int64_t lo, hi;
  friend bool operator==(const IndexRun&, const IndexRun&) = default;
};

// The indices of rank 0 <= rank < n, in as few runs as possible, none of them empty. Throws
// InputError if n does not divide the length (Even), the sizes do not add up to it, a list has an
// index beyond it, the map is for another number of ranks, or there are more than 2^24 runs.
std::vector<IndexRun> runs_of(const IndexMap& map, std::int64_t length, std::int64_t n,
                              std::int64_t rank);

}  // namespace reshard
