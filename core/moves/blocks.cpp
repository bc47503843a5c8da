// SPDX-License-Identifier: BSD-3-Clause
#include "core/moves/blocks.h"

#include <optional>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {
namespace {

enum class Direction : std::uint8_t { Pack, Unpack };

// The block between the members at `position` and at `far`: links its indices in the own shard with
// packed ones.
void link_block(const BlockSide& side, std::int32_t position, std::int32_t far, Direction direction,
                LinkedRuns& out) {
  for (int d = 0; d < side.own.dims(); ++d) {
    out.clear(d);
    if (side.uncut[to_index(d)]) {
      std::int64_t extent = side.own.extent(d, position);
      if (extent > 0) out.add(d, 0, 0, extent);
      continue;
    }
    std::int64_t packed = 0;
    each_shared(side.own.runs(d, position), side.other.runs(d, far),
                [&](std::int64_t own_lo, std::int64_t, std::int64_t size) {
                  if (direction == Direction::Pack)
                    out.add(d, own_lo, packed, size);
                  else
                    out.add(d, packed, own_lo, size);
                  packed += size;
                });
  }
}

void link_whole(const BlockSide& side, std::int32_t position, LinkedRuns& out) {
  for (int d = 0; d < side.own.dims(); ++d) {
    out.clear(d);
    std::int64_t extent = side.own.extent(d, position);
    if (extent > 0) out.add(d, 0, 0, extent);
  }
}

// Calls f(block number, far position) for each block of a member.
template <class F>
void each_block(const RankGroups& groups, const BlockSide& side, std::int32_t position, F&& f) {
  if (side.whole) return f(0, position);
  std::size_t group = groups.group_of[to_index(position)];
  for (std::int32_t member = 0; member < groups.size(); ++member)
    f(member, groups.position(group, member));
}

// Whether the blocks of one member's shard are `box`-sized slices along `dim`, in order.
bool lies_along(int dim, const RankGroups& groups, const BlockSide& side, std::int32_t position,
                const Shape& box, LinkedRuns& scratch) {
  for (int d = 0; d < box.size(); ++d) {
    std::int64_t extent = side.own.extent(d, position), blocks = d == dim ? groups.size() : 1;
    if (extent % blocks != 0 || extent / blocks != box[d] || (d < dim && extent != 1)) return false;
  }
  bool lies = true;
  each_block(groups, side, position, [&](std::int32_t block, std::int32_t far) {
    if (!lies) return;
    link_block(side, position, far, Direction::Pack, scratch);
    for (int d = 0; d < box.size() && lies; ++d)
      lies = scratch.of(d).size() == 1 && scratch.of(d)[0].size == box[d] &&
             scratch.of(d)[0].source_lo == (d == dim ? block * box[d] : 0);
  });
  return lies;
}

}  // namespace

RankGroups::RankGroups(const Mesh& mesh, const std::vector<int>& axes)
    : offsets{0}, group_of(to_index(mesh.size())) {
  for (int axis : axes) {
    std::vector<std::int32_t> next;
    next.reserve(offsets.size() * to_index(mesh.axis_size(axis)));
    for (std::int32_t offset : offsets)
      for (std::int32_t c = 0; c < mesh.axis_size(axis); ++c)
        next.push_back(offset + c * mesh.stride(axis));
    offsets = std::move(next);
  }
  bases.reserve(group_of.size() / offsets.size());
  for (std::int32_t position = 0; position < mesh.size(); ++position) {
    bool first = true;
    for (int axis : axes) first = first && position / mesh.stride(axis) % mesh.axis_size(axis) == 0;
    if (!first) continue;
    for (std::int32_t offset : offsets) group_of[to_index(position + offset)] = bases.size();
    bases.push_back(position);
  }
}

BlockSide::BlockSide(const Located& own_in, const Located& other_in, bool whole_in, bool uniform_in)
    : own(own_in), other(other_in), whole(whole_in), uniform(uniform_in) {
  for (int d = 0; d < own.dims(); ++d)
    uncut[to_index(d)] = same_cut(own.layout(), other.layout(), d);
}

void check_block_count(const RankGroups& groups) {
  std::int64_t blocks = static_cast<std::int64_t>(groups.group_of.size()) * groups.size();
  if (blocks > kMaxBlocks)
    throw InputError(
        fmt::format("expected a collective of at most {} blocks, found {} ranks in groups of {} "
                    "with blocks to pack",
                    kMaxBlocks, groups.group_of.size(), groups.size()));
}

std::vector<Shape> block_boxes(const RankGroups& groups, const BlockSide& input,
                               const BlockSide& output) {
  const int dims = input.own.dims();
  if (!input.whole && !output.whole) check_block_count(groups);
  std::vector<Shape> boxes(groups.bases.size(), Shape(dims));
  for (std::size_t g = 0; g < boxes.size(); ++g) {
    for (int d = 0; d < dims; ++d) {
      std::int64_t largest = 0;
      for (std::int32_t i = 0; i < groups.size(); ++i) {
        std::int32_t at = groups.position(g, i);
        if (input.whole) largest = std::max(largest, input.own.extent(d, at));
        if (output.whole) largest = std::max(largest, output.own.extent(d, at));
        if (input.whole || output.whole) continue;
        if (input.uncut[to_index(d)]) {
          largest = std::max(largest, input.own.extent(d, at));
          continue;
        }
        for (std::int32_t k = 0; k < groups.size(); ++k)
          largest = std::max(largest, shared_size(input.own.runs(d, at),
                                                  output.own.runs(d, groups.position(g, k))));
      }
      boxes[g][d] = largest;
    }
  }
  return boxes;
}

int direct_dim(const RankGroups& groups, const BlockSide& side, const std::vector<Shape>& boxes) {
  const int dims = side.own.dims();
  LinkedRuns scratch(dims);
  std::uint32_t candidates = (1U << dims) - 1;
  for (std::size_t g = 0; g < boxes.size() && candidates != 0; ++g) {
    if (element_count(boxes[g]) == 0) continue;
    for (std::int32_t i = 0; i < (side.uniform ? 1 : groups.size()) && candidates != 0; ++i) {
      std::int32_t position = groups.position(g, i);
      if (side.whole) {
        if (side.own.shape(position) != boxes[g]) candidates = 0;
        continue;
      }
      for (int d = 0; d < dims; ++d)
        if ((candidates >> d & 1U) != 0 &&
            !lies_along(d, groups, side, position, boxes[g], scratch))
          candidates &= ~(1U << d);
    }
  }
  for (int d = 0; d < dims; ++d)
    if ((candidates >> d & 1U) != 0) return d;
  return -1;
}

Shape packed_shape(const RankGroups& groups, const BlockSide& side, const Shape& box,
                   std::int64_t element_bytes) {
  std::optional<std::int64_t> bytes =
      checked_product(element_bytes, side.whole ? 1 : groups.size());
  for (std::int64_t extent : box) bytes = bytes ? checked_product(*bytes, extent) : bytes;
  if (!bytes)
    throw InputError(
        fmt::format("expected at most 2^62 bytes in a padded buffer, found more in {} "
                    "blocks of {} elements of {} bytes",
                    groups.size(), text(box), element_bytes));
  Shape shape = box;
  if (!side.whole) shape[0] *= groups.size();
  return shape;
}

void BlockMover::pack(std::int32_t position, const Shape& box, BufferId shard, BufferId packed,
                      MoveList& moves, std::vector<Box>& padding) {
  MoveSink sink(moves);
  each_block(groups_, side_, position, [&](std::int32_t block, std::int32_t far) {
    if (side_.whole)
      link_whole(side_, position, runs_);
    else
      link_block(side_, position, far, Direction::Pack, runs_);
    runs_.push_moves(shard, packed, 0, block * box[0], sink);
    runs_.push_rest(box, block * box[0], padding);
  });
  sink.flush();
}

void BlockMover::unpack(std::int32_t position, const Shape& box, BufferId packed, BufferId shard,
                        MoveList& moves) {
  MoveSink sink(moves);
  each_block(groups_, side_, position, [&](std::int32_t block, std::int32_t far) {
    if (side_.whole)
      link_whole(side_, position, runs_);
    else
      link_block(side_, position, far, Direction::Unpack, runs_);
    runs_.push_moves(packed, shard, block * box[0], 0, sink);
  });
  sink.flush();
}

void ShardSlicer::link(std::int32_t position) {
  for (int d = 0; d < from_.dims(); ++d) {
    runs_.clear(d);
    each_shared(from_.runs(d, position), to_.runs(d, position),
                [&](std::int64_t from_lo, std::int64_t to_lo, std::int64_t size) {
                  runs_.add(d, from_lo, to_lo, size);
                });
  }
}

void ShardSlicer::slice(std::int32_t position, BufferId source, BufferId destination,
                        MoveList& moves) {
  link(position);
  MoveSink sink(moves);
  runs_.push_moves(source, destination, 0, 0, sink);
  sink.flush();
}

void ShardSlicer::push_rest(std::int32_t position, std::vector<Box>& rest) {
  link(position);
  runs_.push_rest(to_.shape(position), 0, rest);
}

}  // namespace reshard
