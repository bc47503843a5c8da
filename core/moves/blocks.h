// SPDX-License-Identifier: BSD-3-Clause
// The blocks that the members of a collective send and receive, as index sets.
//
// Before a transition, member i of a group holds the index set A_i, afterwards B_i. The block from
// i to k is A_i ∩ B_k, which is a product over dims of index lists because both are. It is sent
// *packed*: dense, with ascending indices in every dim, in the low corner of a box that is in every
// dim as large as the largest block of the group. So all blocks of a group have one size, both ends
// agree on the order without communicating, and everything outside the low corner is padding.
//
// A member's buffer for the collective is its blocks one after the other along dim 0. If the
// member's shard already has that form (equal blocks, no padding, each contiguous), the collective
// works on the shard itself and nothing is packed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/moves/linked_runs.h"
#include "core/moves/located.h"

namespace reshard {

// The ranks that differ only along some axes, in row-major order of their coordinates there.
struct RankGroups {
  RankGroups(const Mesh& mesh, const std::vector<int>& axes);

  std::int32_t size() const { return static_cast<std::int32_t>(offsets.size()); }
  std::int32_t position(std::size_t group, std::int32_t member) const {
    return bases[group] + offsets[to_index(member)];
  }

  std::vector<std::int32_t> offsets;  // position of member i minus its group's base
  std::vector<std::int32_t> bases;    // position of member 0, ascending
  std::vector<std::size_t> group_of;  // by position
};

// One end of a collective. `own` is the layout of the buffer at this end, `other` that at the far
// end.
struct BlockSide {
  BlockSide(const Located& own_in, const Located& other_in, bool whole_in, bool uniform_in);

  const Located& own;
  const Located& other;
  bool whole;    // one block, all of the member's shard, instead of one per member (all_gather's
                 // input, reduce_scatter's output)
  bool uniform;  // all members of a group hold the same indices here (all_gather's output,
                 // reduce_scatter's input)
  std::array<bool, kMaxDims> uncut{};  // dims in which each member holds the same indices at both
                                       // ends: blocks are as long as shards there
};

// Throws InputError beyond kMaxBlocks.
void check_block_count(const RankGroups& groups);

// Per group, the extents of the box of a block; without elements if nothing moves in the group.
std::vector<Shape> block_boxes(const RankGroups& groups, const BlockSide& input,
                               const BlockSide& output);

// The dim along which every member's shard already has its blocks as the collective needs them; -1
// if they must be packed.
int direct_dim(const RankGroups& groups, const BlockSide& side, const std::vector<Shape>& boxes);

// Shape of a packed buffer. InputError if padding makes it larger than 2^62 bytes.
Shape packed_shape(const RankGroups& groups, const BlockSide& side, const Shape& box,
                   std::int64_t element_bytes);

// Makes the moves between shards and packed buffers at one end of a collective. Keeps its scratch
// memory from rank to rank.
class BlockMover {
 public:
  BlockMover(const RankGroups& groups, const BlockSide& side)
      : groups_(groups), side_(side), runs_(side.own.dims()) {}
  // Appends the moves shard -> packed buffer of the member at `position`, and the padding boxes of
  // that buffer to `padding`.
  void pack(std::int32_t position, const Shape& box, BufferId shard, BufferId packed,
            MoveList& moves, std::vector<Box>& padding);
  // Appends the moves packed buffer -> shard.
  void unpack(std::int32_t position, const Shape& box, BufferId packed, BufferId shard,
              MoveList& moves);

 private:
  const RankGroups& groups_;
  const BlockSide& side_;
  LinkedRuns runs_;
};

// Makes the moves by which a rank keeps the part of its shard in `from` that is in its shard in
// `to`.
class ShardSlicer {
 public:
  ShardSlicer(const Located& from, const Located& to) : from_(from), to_(to), runs_(from.dims()) {}
  void slice(std::int32_t position, BufferId source, BufferId destination, MoveList& moves);
  // Appends the boxes of the rank's shard in `to` that are not in its shard in `from`.
  void push_rest(std::int32_t position, std::vector<Box>& rest);

 private:
  void link(std::int32_t position);

  const Located &from_, &to_;
  LinkedRuns runs_;
};

}  // namespace reshard
