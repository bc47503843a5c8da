// SPDX-License-Identifier: BSD-3-Clause
// Which block of a paged cache has which tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reshard::sim {

// More blocks of a cache, or pieces of blocks, are refused.
inline constexpr std::int64_t kMostKvBlocks = std::int64_t{1} << 22;

// The physical blocks of a request in the order of its tokens, the same on all ranks of an engine
// and in all layers; `pool` are those that a rank has.
struct KvTable {
  std::vector<std::int64_t> blocks;
  std::int64_t pool = 0;
};

// Blocks 0, 1, ...
KvTable first_blocks(std::int64_t count);
// "[3, 7, 1]", or {"blocks": [3, 7, 1], "pool": 4096}; without a pool it ends with the highest
// block. Throws InputError, also if there are not `count` of them.
KvTable read_kv_table(const std::string& text, const std::string& file, std::int64_t count);

// How tokens are dealt to groups of ranks: `interleave` in turn to each of `groups`, so that a
// block of the table has `block` tokens of each.
struct KvDealing {
  std::int64_t block, groups = 1, interleave = 0;
  // Entries of a table for so many tokens.
  std::int64_t blocks_for(std::int64_t tokens) const;
  // Pieces of blocks, at most, that a group has of so many tokens.
  std::int64_t most_pieces(std::int64_t tokens) const;
};

// Tokens lo to hi-1, in block `block` from place `at` on.
struct KvPiece {
  std::int64_t lo, hi, block, at;
};
// In the order of tokens.
std::vector<KvPiece> pieces_of(const KvTable& table, const KvDealing& dealing, std::int64_t tokens,
                               std::int64_t group);

}  // namespace reshard::sim
