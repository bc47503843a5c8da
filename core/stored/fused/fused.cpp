// SPDX-License-Identifier: BSD-3-Clause
// Fused buffers: cuts blocks of rows of several tensors by placements, and joins them along a dim.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/stored/fused/each_index.h"
#include "core/stored/fused/stretches.h"
#include "core/stored/generators.h"

namespace reshard {
namespace {

// More segments in one block would take gigabytes.
constexpr std::int64_t kMostSegments = std::int64_t{1} << 24;

class Fusing {
 public:
  Fusing(Stored& to, const FusedBuffer& buffer) : to_(to), buffer_(buffer) {}

  void add() {
    if (buffer_.blocks.empty()) throw InputError("expected at least one block, found none");
    for (const FusedBlock& block : buffer_.blocks) {
      rows_.push_back(rows_of(block));
      Shape shape = shape_of(first_tensor());
      shape[buffer_.dim] = rows_.back().count;
      layouts_.emplace_back(shape, first_tensor().dtype, buffer_.mesh,
                            buffer_.placements.placements, buffer_.placements.order);
      if (layouts_.back().has_addends())
        throw InputError("expected placements without Partial, found one");
    }
    if (buffer_.indices) check_indices();
    if (buffer_.stack != 0) check_stack();
    if (buffer_.each != FusedBuffer::Each::None) check_each();
    if (buffer_.pad.size() != 0 && buffer_.pad.size() != shape_of(first_tensor()).size())
      throw InputError(fmt::format("pad: expected one for each of {} dims, found {}",
                                   shape_of(first_tensor()).size(), buffer_.pad.size()));
    if (buffer_.pad_alike)
      for (std::int32_t position = 0; position < buffer_.mesh->size(); ++position) {
        std::vector<BlockShare> shares = shares_of(position);
        most_shares_ = std::max(most_shares_, shares.size());
        if (buffer_.stack == 0) most_ = std::max(most_, extents_of(shares)[buffer_.dim]);
        shares.resize(std::min(shares.size(), to_index(buffer_.stack)));
        if (!shares.empty()) entry_ = extents_of(shares);
      }
    for (std::int32_t position = 0; position < buffer_.mesh->size(); ++position) add_rank(position);
  }

 private:
  // A scalar has one row.
  static Shape shape_of(const ModelTensor& tensor) {
    return tensor.shape.size() == 0 ? Shape{1} : tensor.shape;
  }
  const ModelTensor& tensor(ModelTensorId id) const { return to_.tensors()[id]; }
  const ModelTensor& first_tensor() const {
    return tensor(buffer_.blocks.front().sections.front().tensor);
  }

  // The length of the tensor along the fused dim; its other dims are those of the first tensor.
  std::int64_t length_of(ModelTensorId id) const {
    Shape shape = shape_of(tensor(id)), first = shape_of(first_tensor());
    if (buffer_.dim >= shape.size())
      throw InputError(fmt::format("dim: expected a dim of {}[{}], found {}", tensor(id).name,
                                   text(shape), buffer_.dim));
    std::int64_t length = shape[buffer_.dim];
    if (first.size() == shape.size()) shape[buffer_.dim] = first[buffer_.dim];
    if (shape != first || tensor(id).dtype != first_tensor().dtype)
      throw InputError(
          fmt::format("expected tensors that differ in dim {} alone, found {} {}[{}] and {} {}[{}]",
                      buffer_.dim, first_tensor().name, text(first_tensor().dtype), text(first),
                      tensor(id).name, text(tensor(id).dtype), text(tensor(id).shape)));
    return length;
  }

  BlockRows rows_of(const FusedBlock& block) const {
    BlockRows out;
    auto put = [&](ModelTensorId id, std::int64_t lo, std::int64_t rows) {
      if (out.segments.size() >= to_index(kMostSegments) || rows > kMaxBytes - out.count)
        throw InputError("expected fewer rows and sections, found more than 2^24 of sections");
      if (rows > 0) out.segments.push_back({out.count, id, lo, rows});
      out.count += rows;
    };
    if (block.repeat) {
      add_repeated(block, put);
    } else if (block.unit_rows == 0) {
      ModelTensorId id = block.sections.front().tensor;
      put(id, 0, length_of(id));
    } else {
      for (std::int64_t group = 0, groups = groups_of(block); group < groups; ++group)
        for (const FusedBlock::Section& section : block.sections) {
          std::int64_t rows = section.units * block.unit_rows;
          put(section.tensor, group * rows, rows);
        }
    }
    out.count = ceil_div(out.count, block.pad) * block.pad;
    return out;
  }

  std::int64_t groups_of(const FusedBlock& block) const {
    std::optional<std::int64_t> groups;
    for (const FusedBlock::Section& section : block.sections) {
      std::int64_t length = length_of(section.tensor);
      std::optional<std::int64_t> rows = checked_product(section.units, block.unit_rows);
      if (!rows || length % *rows != 0 || (groups && *groups != length / *rows))
        throw InputError(fmt::format(
            "expected sections that end together, found {} rows of {} in units of {} x {}{}",
            length, tensor(section.tensor).name, section.units, block.unit_rows,
            groups ? fmt::format(" after {} groups of the first", *groups) : ""));
      groups = length / *rows;
    }
    return *groups;
  }

  template <class Put>
  void add_repeated(const FusedBlock& block, Put&& put) const {
    ModelTensorId id = block.sections.front().tensor;
    std::int64_t length = length_of(id), ranks = 1;
    for (int axis = 0; axis < buffer_.mesh->axes(); ++axis)
      if (const Placement& placement = buffer_.placements.placements[to_index(axis)];
          placement.is_shard_like() && placement.dim == buffer_.dim)
        ranks *= buffer_.mesh->axis_size(axis);
    std::int64_t blocks = length / block.unit_rows;
    if (length % block.unit_rows != 0 || blocks == 0 ||
        (blocks >= ranks ? blocks % ranks : ranks % blocks) != 0)
      throw InputError(
          fmt::format("expected blocks of {} rows that {} ranks share evenly, found {} rows of {}",
                      block.unit_rows, ranks, length, tensor(id).name));
    for (std::int64_t i = 0; i < std::max(blocks, ranks); ++i)
      put(id, (blocks >= ranks ? i : i / (ranks / blocks)) * block.unit_rows, block.unit_rows);
  }

  void check_indices() const {
    const MappedIndices& indices = *buffer_.indices;
    std::size_t count = buffer_.blocks.size();
    if (indices.blocks != 0) {
      if (count % to_index(indices.blocks) != 0)
        throw InputError(
            fmt::format("map: expected a multiple of {} blocks, found {}", indices.blocks, count));
    } else if (indices.dim >= shape_of(first_tensor()).size()) {
      throw InputError(fmt::format("map: expected a dim of {}[{}], found {}", first_tensor().name,
                                   text(first_tensor().shape), indices.dim));
    }
    for (int axis = 0; axis < buffer_.mesh->axes(); ++axis) {
      const Placement& placement = buffer_.placements.placements[to_index(axis)];
      bool is_mapped =
          std::find(indices.axes.begin(), indices.axes.end(), axis) != indices.axes.end();
      if (placement.is_shard_like() &&
          (is_mapped || (indices.blocks == 0 && placement.dim == indices.dim)))
        throw InputError(fmt::format(
            "map: expected placements that leave its axes and its dim whole, found {} on axis {}",
            text(placement), axis));
    }
  }

  void check_stack() const {
    const std::int64_t count = std::ssize(buffer_.blocks),
                       mapped = buffer_.indices ? buffer_.indices->blocks : 0;
    if (count % buffer_.stack != 0 || mapped % buffer_.stack != 0)
      throw InputError(fmt::format("stack: expected a number that divides {}, found {}",
                                   mapped != 0 ? fmt::format("the {} blocks of an index", mapped)
                                               : fmt::format("{} blocks", count),
                                   buffer_.stack));
    if (shape_of(first_tensor()).size() == kMaxDims)
      throw InputError(fmt::format("stack: expected tensors of fewer than {} dims, found {}",
                                   kMaxDims, first_tensor().name));
  }

  void check_each() const {
    if (buffer_.name.find("{}") == std::string::npos)
      throw InputError(
          fmt::format("each: expected a name with {{}} in it, found {}", quoted(buffer_.name)));
    if (buffer_.stack != 0 || (!buffer_.order.empty() && buffer_.order.front() != 0) ||
        shape_of(first_tensor()).size() < 2)
      throw InputError("each: expected tensors of at least 2 dims, the first outermost in memory");
  }

  // A rank's share of a block: what the placements assign to it or, if rows are mapped, these runs.
  struct BlockShare {
    std::size_t block;
    std::vector<IndexRun> runs;
    Shape extents;  // with padding
  };

  bool maps_rows() const { return buffer_.indices && buffer_.indices->blocks == 0; }

  std::vector<IndexRun> runs_at(std::int32_t position, std::int64_t length) const {
    MeshCoordinate at = buffer_.mesh->coordinate(position);
    std::int64_t n = 1, rank = 0;
    for (int axis : buffer_.indices->axes) {
      n *= buffer_.mesh->axis_size(axis);
      rank = rank * buffer_.mesh->axis_size(axis) + at[to_index(axis)];
    }
    return runs_of(buffer_.indices->map, length, n, rank);
  }

  // In memory order.
  std::vector<BlockShare> shares_of(std::int32_t position) const {
    std::vector<BlockShare> out;
    if (buffer_.indices && !maps_rows()) {
      std::int64_t each = buffer_.indices->blocks;
      for (const IndexRun& run :
           runs_at(position, static_cast<std::int64_t>(layouts_.size()) / each))
        for (std::int64_t block = run.lo * each; block < run.hi * each; ++block)
          out.push_back({to_index(block), {}, {}});
    } else {
      for (std::size_t block = 0; block < layouts_.size(); ++block) out.push_back({block, {}, {}});
    }
    for (BlockShare& share : out) {
      share.extents = layouts_[share.block].local_shape(position);
      if (maps_rows()) cut_rows(share, position);
      for (int d = 0; d < buffer_.pad.size(); ++d)
        share.extents[d] = ceil_div(share.extents[d], buffer_.pad[d]) * buffer_.pad[d];
    }
    return out;
  }

  void cut_rows(BlockShare& share, std::int32_t position) const {
    const std::int64_t rows = buffer_.indices->rows;
    std::int64_t& extent = share.extents[buffer_.indices->dim];
    if (extent % rows != 0)
      throw InputError(
          fmt::format("map: expected a length of {} times the rows, found {}", rows, extent));
    share.runs = runs_at(position, extent / rows);
    extent = 0;
    for (IndexRun& run : share.runs) {
      run = {run.lo * rows, run.hi * rows};
      if (run.hi - run.lo > kMaxBytes - extent)
        throw InputError("map: expected fewer indices, found more than 2^62");
      extent += run.hi - run.lo;
    }
  }

  // The extents of shares that are joined along the fused dim.
  Shape extents_of(std::span<const BlockShare> shares) const {
    Shape out(shape_of(first_tensor()).size(), 0);
    std::int64_t joined = 0;
    for (const BlockShare& share : shares) {
      joined += share.extents[buffer_.dim];
      for (int d = 0; d < out.size(); ++d) out[d] = std::max(out[d], share.extents[d]);
    }
    out[buffer_.dim] = joined;
    return out;
  }

  void add_rank(std::int32_t position) {
    StoredBuffer out{buffer_.mesh->rank_at(position),
                     buffer_.name,
                     {},
                     buffer_.dtype.value_or(first_tensor().dtype),
                     {}};
    out.converts = buffer_.dtype.has_value();
    out.mesh = buffer_.mesh;
    const std::vector<BlockShare> shares = shares_of(position);
    const std::size_t each = buffer_.stack == 0 ? shares.size() : to_index(buffer_.stack);
    std::int64_t entries = 0;
    Shape first = entry_;
    for (std::size_t i = 0; i < shares.size(); i += each, ++entries) {
      const std::span<const BlockShare> entry = std::span(shares).subspan(i, each);
      Shape shape = extents_of(entry);
      shape[buffer_.dim] = std::max(shape[buffer_.dim], most_);
      if (first.size() == 0) first = shape;
      if (shape != first)
        throw InputError(fmt::format("stack: expected entries of one shape, found [{}] and [{}]",
                                     text(first), text(shape)));
      const std::int64_t size = element_count(shape);
      if (!checked_product(entries + 1, size))
        throw InputError("stack: expected fewer elements, found more than 2^62");
      if (size != 0) add_entry(position, entry, shape, entries * size, out);
    }
    if (buffer_.stack != 0 && buffer_.pad_alike)
      entries = static_cast<std::int64_t>(most_shares_ / each);
    if (entries == 0 || element_count(first) == 0) return;
    Shape stored = in_memory(first).second;
    if (buffer_.stack != 0) out.shape.push_back(entries);
    for (std::int64_t extent : stored) out.shape.push_back(extent);
    if (buffer_.each == FusedBuffer::Each::None)
      to_.add(std::move(out));
    else
      add_each(to_, out, buffer_.each);
  }

  void add_entry(std::int32_t position, std::span<const BlockShare> shares, const Shape& shape,
                 std::int64_t offset, StoredBuffer& out) {
    const DimVector strides = in_memory(shape).first;
    std::int64_t begin = 0;
    for (const BlockShare& share : shares) {
      std::map<ModelTensorId, std::size_t> last;
      const std::size_t first = out.parts.size();
      layouts_[share.block].for_each_part(position, [&](const Box& box, DimVector local) {
        local[buffer_.dim] += begin;
        if (!maps_rows()) return add_parts(share.block, box, local, strides, last, out.parts);
        Box run_box = box;
        const int dim = buffer_.indices->dim;
        for (const IndexRun& run : share.runs) {
          run_box.lo[dim] = run.lo;
          run_box.hi[dim] = run.hi;
          add_parts(share.block, run_box, local, strides, last, out.parts);
          local[dim] += run.hi - run.lo;
        }
      });
      for (std::size_t i = first; i < out.parts.size(); ++i) out.parts[i].offset += offset;
      begin += share.extents[buffer_.dim];
    }
  }

  // The strides by dim of the tensors, and the extents in memory order.
  std::pair<DimVector, Shape> in_memory(const Shape& shape) const {
    DimVector strides(shape.size());
    Shape stored;
    std::int64_t stride = 1;
    for (int i = shape.size() - 1; i >= 0; --i) {
      int d = buffer_.order.empty() ? i : buffer_.order[to_index(i)];
      strides[d] = stride;
      stride *= shape[d];
    }
    for (int i = 0; i < shape.size(); ++i)
      stored.push_back(shape[buffer_.order.empty() ? i : buffer_.order[to_index(i)]]);
    return {strides, stored};
  }

  // Adds a box of the block as parts of its tensors. Single rows at equal distances become one
  // part.
  void add_parts(std::size_t block, const Box& box, const DimVector& local,
                 const DimVector& strides, std::map<ModelTensorId, std::size_t>& last,
                 std::vector<StoredPart>& out) {
    const int dim = buffer_.dim;
    std::int64_t offset = 0;
    for (int d = 0; d < box.dims(); ++d) offset += strides[d] * local[d];
    for (const RowStretch& rows :
         stretches_.of(block, rows_[block], box.lo[dim], box.hi[dim], strides[dim])) {
      if (tensor(rows.tensor).shape.size() == 0) {
        out.push_back({rows.tensor, Box{}, offset + rows.offset, {}});
        continue;
      }
      StoredPart part{rows.tensor, box, offset + rows.offset, strides};
      part.box.lo[dim] = rows.lo;
      part.box.hi[dim] = rows.hi;
      part.strides[dim] = rows.stride;
      auto [at, is_new] = last.try_emplace(part.tensor, out.size());
      if (!is_new && joins(out[at->second], part)) continue;
      at->second = out.size();
      out.push_back(part);
    }
  }

  bool joins(StoredPart& before, const StoredPart& part) const {
    const int dim = buffer_.dim;
    auto rows_of = [dim](const StoredPart& of) {
      return RowStretch{of.tensor, of.box.lo[dim], of.box.hi[dim], of.offset, of.strides[dim]};
    };
    Box beside = part.box;
    beside.lo[dim] = before.box.lo[dim];
    beside.hi[dim] = before.box.hi[dim];
    RowStretch rows = rows_of(before);
    if (beside != before.box || !join(rows, rows_of(part))) return false;
    before.strides[dim] = rows.stride;
    before.box.hi[dim] = rows.hi;
    return true;
  }

  Stored& to_;
  const FusedBuffer& buffer_;
  std::vector<BlockRows> rows_;  // by block
  std::vector<Layout> layouts_;  // of the fused rows
  RowStretches stretches_;
  // Only if all ranks are padded alike: the greatest fused length and the greatest number of shares
  // of any rank, and the extents of an entry of a stack.
  std::int64_t most_ = 0;
  std::size_t most_shares_ = 0;
  Shape entry_;
};

}  // namespace

void add_fused(Stored& to, const FusedBuffer& buffer) { Fusing(to, buffer).add(); }

}  // namespace reshard
