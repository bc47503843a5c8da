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

// Rows (indices of the fused dim) of tensors in memory order, which are cut as one tensor is.
//
// In text, "q_proj" is a whole tensor. "q:4 k:1 v:1 x128" takes 4 x 128 rows of q, 128 of k, 128 of
// v, then the next of each, until all end together; "gate:1 up:1 x1" interleaves. "pad64" adds rows
// without a tensor up to a multiple of 64. "repeat" is for fewer blocks (of x rows) than ranks:
// neighbouring ranks get the same block, as with KV heads.
struct FusedBlock {
  struct Section {
    ModelTensorId tensor;
    std::int64_t units;
  };
  std::vector<Section> sections;
  std::int64_t unit_rows = 0;  // 0: one section as long as the tensor
  std::int64_t pad = 1;
  bool repeat = false;
};
// Throws InputError naming `field`.
FusedBlock parse_fused_block(std::string_view text, const ModelTensors& tensors,
                             std::string_view field);

// Distributes indices of one dim of every block, or whole blocks, over the ranks along some axes of
// a mesh: experts, or rows of which each rank has its own number.
struct MappedIndices {
  IndexMap map;
  std::vector<int> axes;  // row-major, each once
  int dim = 0;
  std::int64_t rows = 1;    // how many indices of the dim are one index of the map
  std::int64_t blocks = 0;  // if not 0: an index of the map is this many blocks rather than rows
};

struct FusedBuffer {
  std::string name;
  MeshRef mesh;
  PlacementList placements;        // of every block; S(d) cuts dim d of the tensors
  std::vector<FusedBlock> blocks;  // each cut by itself, then joined along `dim`
  int dim = 0;
  // The dims of the tensors in memory order, outermost first; empty: 0, 1, ...
  std::vector<int> order;
  // If not 0, every `stack` blocks form an entry, which is laid out as a buffer of these blocks
  // alone would be; the entries follow one another. Used for experts with matrices that are
  // transposed one by one.
  std::int64_t stack = 0;
  // Whether each index of the dim that is outermost in memory becomes a buffer of its own: experts
  // that are separate parameters. "{}" in `name` is replaced by the index: Local counts within the
  // rank, Global within the tensors (dim 0).
  enum class Each : std::uint8_t { None, Local, Global };
  Each each = Each::None;
  // The placements must not cut the axes or the dim of these.
  std::optional<MappedIndices> indices;
  // A rank's share of each block is padded to multiples of these, by dim; empty: no padding.
  DimVector pad;
  bool pad_alike = false;      // every rank's fused length is that of the longest
  std::optional<DType> dtype;  // if the rank converts: the dtype of the buffer
};
// Adds the buffer to every rank of the mesh that has a share of it. Throws InputError if the
// tensors' other dims differ, sections do not divide the lengths, a placement is Partial, repeated
// blocks do not divide the ranks, entries of a stack differ, or indices do not fit, and for a
// buffer per index if dim 0 is not outermost in memory or the name has no "{}".
void add_fused(Stored& to, const FusedBuffer& buffer);

// Tensors flattened one after another, each beginning at a multiple of `align` elements. The whole
// is padded to a multiple of `pad` and of the mesh's size, and cut evenly: the partitions of FSDP1
// and ZeRO, and buckets of optimizers.
struct FlatBuffer {
  std::string name;
  MeshRef mesh;
  std::vector<ModelTensorId> tensors;
  std::int64_t align = 1, pad = 1;
  std::optional<DType> dtype = {};  // if the ranks convert: the dtype of the buffer
};
void add_flat(Stored& to, const FlatBuffer& buffer);

// The contents of buffers, flattened one after another and divided evenly among the ranks along
// some axes, which must all have the same contents: buckets of Megatron's distributed optimizer,
// which divides each rank's tensor-parallel shard.
struct SharedFlatBuffer {
  std::string name;
  std::vector<std::string> buffers;
  // Axes of the mesh of the buffers, by name or number; row-major.
  std::vector<std::string> axes;
  std::int64_t align = 1, pad = 1;  // as in FlatBuffer; the mesh is that of the ranks that share
  std::optional<DType> dtype = {};  // if the ranks convert: the dtype of the buffer
};
// `named` has the buffers, and can be `to` itself. A rank may lack some of several buffers. A rank
// that already has a buffer of the new name is skipped: ranks of a later stage can reuse names.
// Throws InputError if no other rank has any of the buffers, if they are on several meshes, or if
// ranks that share have different contents.
void add_shared_flat(Stored& to, const Stored& named, const SharedFlatBuffer& buffer);

// A buffer for the scales of the elements that each rank has in buffer `of`: the scales of one part
// after another, in the order of the parts, each in whole blocks.
struct ScalesBuffer {
  std::string name, of;
  // Whether a block may be divided between ranks, each of which then gets its scale.
  bool shared = false;
};
// Skips ranks that already have a buffer of the name: ranks of a later stage can reuse names. The
// order of dims and the entries of a stack are those of buffer `of`. Throws InputError if no other
// rank has buffer `of`, if its parts are not boxes of it that lie side by side, if a part does not
// have exactly one tensor of scales, or if a part ends within a block.
void add_scales(Stored& to, const ScalesBuffer& buffer);
// Throws InputError if a rank has elements of a tensor but not their scales, and some rank of the
// side has scales of that tensor.
void check_scales(const Stored& side);

}  // namespace reshard
