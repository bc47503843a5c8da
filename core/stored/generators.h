// SPDX-License-Identifier: BSD-3-Clause
// Buffers of all ranks of a mesh at once, as frameworks fill them: tensors or rows of several
// tensors in some order, cut by placements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout/layout.h"
#include "core/stored/index_map.h"
#include "core/stored/stored.h"

namespace reshard {

// What is cut as one: rows (indices of the fused dim) of tensors, in memory order.
//
// Its text: "q_proj" is a whole tensor. "q:4 k:1 v:1 x128" takes 4 x 128 rows of q, 128 of k, 128
// of v, then the next of each, until all end together; "gate:1 up:1 x1" interleaves. "pad64" adds
// rows without a tensor up to a multiple of 64. "repeat" gives each of fewer blocks (of x rows)
// than ranks to neighbouring ranks, as KV heads are.
struct FusedBlock {
  struct Section {
    ModelTensorId tensor;
    std::int64_t units;
  };
  std::vector<Section> sections;
  std::int64_t unit_rows = 0;  // 0: one section, of the tensor's length
  std::int64_t pad = 1;
  bool repeat = false;
};
// Throws InputError naming `field`.
FusedBlock parse_fused_block(std::string_view text, const ModelTensors& tensors,
                             std::string_view field);

// Indices of a dim of every block, or the blocks themselves, given to the ranks along some axes of
// a mesh: experts, rows of own sizes.
struct MappedIndices {
  IndexMap map;
  std::vector<int> axes;  // row-major, each once
  int dim = 0;
  std::int64_t rows = 1;    // of the dim, one index of the map
  std::int64_t blocks = 0;  // if not 0, so many blocks are one index of the map, not rows
};

struct FusedBuffer {
  std::string name;
  MeshRef mesh;
  PlacementList placements;        // of every block; a dim of the tensors
  std::vector<FusedBlock> blocks;  // each cut by itself, then joined along `dim`
  int dim = 0;
  // The dims of the tensors in memory order, outermost first; empty: 0, 1, ...
  std::vector<int> order;
  // If not 0, so many blocks at a time are an entry of their own, filled as a buffer of these alone
  // would be; the entries lie one after another: experts whose matrices are transposed one by one.
  std::int64_t stack = 0;
  // A buffer for each index of the outermost dim, in memory: experts that are parameters of their
  // own. In `name`, "{}" is its number on the rank, or that of the tensors (dim 0).
  enum class Each : std::uint8_t { None, Local, Global };
  Each each = Each::None;
  // Its axes and its dim are not cut by the placements as well.
  std::optional<MappedIndices> indices;
  // What a rank has of each block is padded to multiples of these, by dim; empty: it is not.
  DimVector pad;
  bool pad_alike = false;      // every rank has as much of the fused dim as the one with most
  std::optional<DType> dtype;  // which the rank converts the tensors from or to
};
// Adds the buffer to every rank of the mesh that has some of it. Throws InputError for tensors
// whose other dims differ, lengths that the sections do not divide, Partial placements, blocks to
// repeat that do not divide the ranks, entries of a stack that differ, indices that do not fit, and
// buffers for each index if dim 0 is not outermost in memory or the name has no "{}".
void add_fused(Stored& to, const FusedBuffer& buffer);

// Tensors flattened one after another, each begun at a multiple of `align` elements; the whole
// padded to a multiple of `pad` and of the mesh's size, and cut evenly: FSDP1's and ZeRO's
// partitions, buckets of optimizers.
struct FlatBuffer {
  std::string name;
  MeshRef mesh;
  std::vector<ModelTensorId> tensors;
  std::int64_t align = 1, pad = 1;
  std::optional<DType> dtype = {};  // which the rank converts the tensors from or to
};
void add_flat(Stored& to, const FlatBuffer& buffer);

// What ranks have in buffers, flattened one after another and shared evenly by the ranks along some
// axes, which must have the same in them: buckets of Megatron's distributed optimizer, which cuts
// what TP left.
struct SharedFlatBuffer {
  std::string name;
  std::vector<std::string> buffers;
  // Of the mesh of the buffers, by name or number; row-major.
  std::vector<std::string> axes;
  std::int64_t align = 1, pad = 1;  // as a FlatBuffer's; padded for the ranks that share, too
  std::optional<DType> dtype = {};  // which the rank converts the tensors from or to
};
// `named` has the buffers, and can be `to` itself. Of several names a rank can lack some. A rank
// that has a buffer of the new name is passed over: ranks of a later stage can have the same names.
// Throws InputError if no other rank has one of the buffers, for buffers of several meshes, and if
// ranks that share do not have the same.
void add_shared_flat(Stored& to, const Stored& named, const SharedFlatBuffer& buffer);

// A buffer of the scales of what each rank has in buffer `of`: those of one part after another, as
// the parts lie there, each in whole blocks.
struct ScalesBuffer {
  std::string name, of;
  // If two ranks have some of a block, both get its scale; otherwise such a block is refused.
  bool shared = false;
};
// Leaves out ranks that already have a buffer of the name: ranks of a later stage can have the same
// names. The order of dims and the entries of a stack are those of buffer `of`. Throws InputError
// if no other rank has that, if its parts are not boxes of it, side by side, or do not have one
// tensor of scales each, and if a part ends within a block.
void add_scales(Stored& to, const ScalesBuffer& buffer);
// Throws InputError if a rank has elements of a tensor without their scales, though some rank of
// the side has scales of that tensor.
void check_scales(const Stored& side);

}  // namespace reshard
