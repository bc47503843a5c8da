// SPDX-License-Identifier: BSD-3-Clause
// Which blocks of a paged cache hold which tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reshard::sim {

// A cache with more blocks, or more pieces of blocks, is refused.
inline constexpr std::int64_t kMostKvBlocks = std::int64_t{1} << 22;

// The physical blocks of a request in the order of its tokens, the same on all ranks of an engine
// and in all layers. `pool` is the number of blocks that a rank has.
struct KvTable {
  std::vector<std::int64_t> blocks;
  std::int64_t pool = 0;
};

// Blocks 0, 1, ...
KvTable first_blocks(std::int64_t count);
// Reads "[3, 7, 1]" or {"blocks": [3, 7, 1], "pool": 4096}; without a pool, the highest block is
// the last one. Throws InputError, also if there are not exactly `count` blocks.
KvTable read_kv_table(const std::string& text, const std::string& file, std::int64_t count);

// How tokens are dealt to groups of ranks: `interleave` tokens to each of `groups` in turn, so that
// a block of the table holds `block` tokens of each group.
struct KvDealing {
  std::int64_t block, groups = 1, interleave = 0;
  // The number of table entries for so many tokens.
  std::int64_t blocks_for(std::int64_t tokens) const;
  // The greatest number of pieces of blocks that a group has of so many tokens.
  std::int64_t most_pieces(std::int64_t tokens) const;
};

// Tokens lo to hi-1, which are in block `block` from slot `at` on.
struct KvPiece {
  std::int64_t lo, hi, block, at;
};
// In token order.
std::vector<KvPiece> pieces_of(const KvTable& table, const KvDealing& dealing, std::int64_t tokens,
                               std::int64_t group);

}  // namespace reshard::sim
