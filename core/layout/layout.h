// SPDX-License-Identifier: BSD-3-Clause
// Where every element of a tensor lies: shape, dtype, mesh and one placement per axis.
//
// Per tensor dim d the axes that shard it form a *stack*, outermost first. The first axis cuts the
// dim's whole length, each later one cuts the piece left by those before it: Shard by torch.chunk,
// _StridedShard by cutting into split_factor pieces, each into axis-size chunks, and joining chunk
// r of every piece. So the pieces of a dim depend only on the coordinates along its stack; they are
// computed once per dim (at most one per rank) and a rank's index set is a product of pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/digest.h"
#include "core/base/dtype.h"
#include "core/layout/box.h"
#include "core/layout/mesh.h"
#include "core/layout/placement.h"
#include "core/layout/runs.h"

namespace reshard {

class Layout {
 public:
  // One placement per mesh axis. PyTorch gives no order to dims that a _StridedShard cuts; here one
  // may be given. `order`: per axis its position in its dim's shard order, -1 or an empty vector
  // for the default (increasing axes). Throws InputError: wrong count, dim out of range, negative
  // extents or a byte size above 2^62, an order that is no permutation, a split that would cut a
  // rank into more than 2^20 runs.
  Layout(Shape shape, DType dtype, MeshRef mesh, std::vector<Placement> placements,
         const std::vector<int>& order = {});
  // The same with the stacks given outright (one per dim, each naming exactly the axes that shard
  // the dim).
  Layout(Shape shape, DType dtype, MeshRef mesh, std::vector<Placement> placements,
         ShardStacks stacks);

  const Shape& shape() const { return shape_; }
  int dims() const { return shape_.size(); }
  DType dtype() const { return dtype_; }
  const Mesh& mesh() const { return *mesh_; }
  const MeshRef& mesh_ref() const { return mesh_; }
  const std::vector<Placement>& placements() const { return placements_; }
  const Placement& placement(int axis) const { return placements_[static_cast<std::size_t>(axis)]; }
  // The axes that shard `dim`, outermost first.
  const std::vector<int>& stack(int dim) const { return stacks_[static_cast<std::size_t>(dim)]; }
  const ShardStacks& stacks() const { return stacks_; }
  bool has_strided() const;
  // False where some dim's stack is not in increasing axis order.
  bool has_default_order() const;

  // Pieces of `dim`; piece_of gives the one held by the rank at a mesh position (row-major in the
  // stack's coordinates).
  const PieceTable& pieces(int dim) const { return *pieces_[static_cast<std::size_t>(dim)]; }
  std::int64_t piece_of(int dim, const MeshCoordinate& coordinate) const;

  // By mesh position.
  Shape local_shape(std::int32_t position) const;
  Runs runs(int dim, std::int32_t position) const {
    return pieces(dim).runs(piece_of(dim, mesh_->coordinate(position)));
  }
  // PyTorch's global offset: the first global index per dim; the dim's full length where the local
  // piece is empty (pytorch PR #150862).
  DimVector global_offset(std::int32_t position) const;
  // The exact index set as disjoint boxes in global indices, row-major order of runs; empty where
  // the shard is.
  std::vector<Box> boxes(std::int32_t position) const;

  std::int64_t bytes() const { return element_count(shape_) * size_bytes(dtype_); }
  // "S(0)R"; with order indices where not default.
  std::string placements_text() const { return reshard::text(placements_, stacks_); }
  // "f32[32,8192](S(0)R) on 2x2".
  std::string text() const;

  friend bool operator==(const Layout& a, const Layout& b);

 private:
  void check() const;
  void build_pieces();

  Shape shape_;
  DType dtype_;
  MeshRef mesh_;
  std::vector<Placement> placements_;
  ShardStacks stacks_;
  std::vector<std::shared_ptr<const PieceTable>> pieces_;  // per dim; shared between copies
};

// Text of the --shape option: "32,8192,4096"; "" is 0-d. Throws InputError naming `field`.
Shape parse_shape(std::string_view text, std::string_view field = "shape");

// Layout from text, all InputErrors naming the field at fault.
Layout parse_layout(std::string_view shape, std::string_view dtype, MeshRef mesh,
                    std::string_view placements, std::string_view field = "placements");

}  // namespace reshard
