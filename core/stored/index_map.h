// SPDX-License-Identifier: BSD-3-Clause
// Which of the indices 0 to length-1 (rows, experts) each of n ranks has, in memory order.
#pragma once

#include <cstdint>
#include <vector>

namespace reshard {

struct IndexMap {
  enum class Rule : std::uint8_t {
    Even,            // length / n each
    RemainderFirst,  // consecutive, the first ranks have one more
    RemainderLast,   // the last ranks have
    RoundRobin,      // rank r has r, r + n, ...
    Sizes,           // consecutive, as many as `sizes` says
    Lists,           // those of `lists`, which can name one several times
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

// What rank 0 <= rank < n has, in as few runs as possible, none empty. Throws InputError if n does
// not divide the length (Even), sizes do not add up to it, a list has an index beyond it, the map
// has another number of ranks, or there are more than 2^24 runs.
std::vector<IndexRun> runs_of(const IndexMap& map, std::int64_t length, std::int64_t n,
                              std::int64_t rank);

}  // namespace reshard
