// SPDX-License-Identifier: BSD-3-Clause
// Where every element of a tensor is: shape, dtype, mesh, and either one placement per axis or the
// boxes of every rank (explicit_boxes.h).
//
// Every layout gives a rank's parts: boxes of the tensor and where they are in the rank's shard.
// Placements, and the pieces that they cut dims into, exist only in a *product* layout. The axes
// that shard a tensor dim form its *stack*, outermost first. The first axis cuts the dim's
// whole length, each later one cuts the piece left by those before it: Shard by torch.chunk,
// _StridedShard by cutting it into split_factor pieces, each into axis-size chunks, and joining
// chunk r of every piece. So the pieces of a dim depend only on the coordinates along its stack;
// they are computed once per dim (at most one per rank), and a rank's index set is a product of
// pieces.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/digest.h"
#include "core/base/dtype.h"
#include "core/base/ids.h"
#include "core/layout/box.h"
#include "core/layout/explicit_boxes.h"
#include "core/layout/mesh.h"

namespace reshard {

// ---- placements along one mesh axis, in DTensor's terms, and the text forms that PyTorch prints
// and its users write

struct Placement {
  enum class Kind : std::uint8_t { Replicate, Shard, StridedShard, Partial };

  Kind kind = Kind::Replicate;
  std::int8_t dim = 0;            // Shard, StridedShard: tensor dim, 0 .. 7 (negative only in text)
  ReduceOp op = ReduceOp::Sum;    // Partial
  std::int64_t split_factor = 1;  // StridedShard: pieces the current length is first cut into, >= 1

  static Placement replicate() { return {}; }
  static Placement shard(int dim) {
    return {Kind::Shard, static_cast<std::int8_t>(dim), ReduceOp::Sum, 1};
  }
  static Placement strided_shard(int dim, std::int64_t split_factor) {
    return {Kind::StridedShard, static_cast<std::int8_t>(dim), ReduceOp::Sum, split_factor};
  }
  static Placement partial(ReduceOp op = ReduceOp::Sum) { return {Kind::Partial, 0, op, 1}; }

  bool is_replicate() const { return kind == Kind::Replicate; }
  bool is_partial() const { return kind == Kind::Partial; }
  bool is_shard_like() const { return kind == Kind::Shard || kind == Kind::StridedShard; }
  // A shard that torch.chunk does not cut: PyTorch's planners have no steps for it.
  bool is_strided() const { return is_shard_like() && kind != Kind::Shard; }
  friend bool operator==(const Placement&, const Placement&) = default;
};

// Per tensor dim, the mesh axes that shard it, in the order in which they cut it (outermost first).
using ShardStacks = IndexVector<int, std::vector<int>>;

// Placements as written, one per axis, with the shard order that they carry.
struct PlacementList {
  std::vector<Placement> placements;
  // Per axis its position in its dim's order ("S(0)[1]S(0)[0]"), -1 if none was written.
  std::vector<int> order;
};

// Accepts all spellings: "S(0)R", "S(0),R", "S0,R", "Shard(0),Replicate()", "Shard(dim=0)",
// "_S(0,2)", "_StridedShard(dim=0, sf=2)", "P", "P(sum)", "Partial(avg)", "S(0)[1]S(0)[0]", with or
// without surrounding "[...]" or "(...)"; commas and spaces separate placements only outside
// parentheses. Negative dims count from `tensor_dims`. Throws InputError naming `field` for an
// unknown word, a dim out of range, or a number of placements other than `axes`.
PlacementList parse_placements(std::string_view text, int axes, int tensor_dims,
                               std::string_view field);

// Like str() in PyTorch: "S(0)", "_S(0, 2)", "P(sum)", "R".
std::string text(const Placement& placement);
// As PyTorch prints a spec: "S(0)R"; with order indices if the shard order is not the default:
// "S(1)[1]S(1)[0]".
std::string text(const std::vector<Placement>& placements, const ShardStacks& stacks);

// ---- which indices of one tensor dim a rank holds
//
// Every placement of DTensor (Shard, _StridedShard, in any nesting and order) gives a rank, per
// dim, an ascending list of global indices; its local index k is the k-th of them. Such a list is
// stored as runs of consecutive global indices. A rank's index set is the product over dims of its
// runs, that is, a union of boxes, and never needs a list of elements.

// Global indices [global_lo, global_lo + size) at local indices [local_lo, local_lo + size). size >
// 0.
struct Run {
  std::int64_t global_lo, local_lo, size;
  std::int64_t global_hi() const { return global_lo + size; }
  std::int64_t local_hi() const { return local_lo + size; }
  friend bool operator==(const Run&, const Run&) = default;
};

// Ascending, disjoint, maximal (neighbours are merged), local indices dense from 0.
using Runs = std::span<const Run>;

std::int64_t size_of(Runs runs);

// The runs of several pieces of one dim in one allocation; pieces are numbered from 0.
class PieceTable {
 public:
  PieceTable() : begins_{0} {}
  int count() const { return static_cast<int>(begins_.size()) - 1; }
  Runs runs(std::int64_t piece) const {
    return Runs(runs_).subspan(begins_[piece], begins_[piece + 1] - begins_[piece]);
  }
  std::int64_t size(std::int64_t piece) const {
    Runs list = runs(piece);
    return list.empty() ? 0 : list.back().local_hi();
  }

  // Appends to the piece being built; merges with its last run if the global indices continue.
  void add_run(std::int64_t global_lo, std::int64_t size);
  // Appends local indices [local_lo, local_hi) of `from`, which must not point into this table.
  void add_slice(Runs from, std::int64_t local_lo, std::int64_t local_hi);
  void end_piece() { begins_.push_back(runs_.size()); }
  void reserve(std::size_t pieces) {
    runs_.reserve(pieces);
    begins_.reserve(pieces + 1);
  }

 private:
  std::vector<Run> runs_;
  IndexVector<std::int64_t, std::size_t> begins_;
};

// A run and the piece that it belongs to.
using PieceRun = std::pair<Run, std::int64_t>;

// The runs of all pieces, ascending by global index.
std::vector<PieceRun> sorted_runs(const PieceTable& pieces);

inline const Run& run_of(const Run& run) { return run; }
inline const Run& run_of(const PieceRun& run) { return run.first; }

// Calls meet(an entry of a, an entry of b, lo, hi) for the global indices [lo, hi) that both have,
// ascending. `a` and `b` are lists of Run or PieceRun, ascending and disjoint.
template <class A, class B, class Meet>
void for_each_meeting(const A& a, const B& b, Meet&& meet) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Run &x = run_of(a[i]), &y = run_of(b[j]);
    std::int64_t lo = std::max(x.global_lo, y.global_lo),
                 hi = std::min(x.global_hi(), y.global_hi());
    if (lo < hi) meet(a[i], b[j], lo, hi);
    if (x.global_hi() < y.global_hi())
      ++i;
    else
      ++j;
  }
}

// torch.chunk: piece r of `length` over n starts at min(r*c, length) with c = ceil(length/n) and
// has at most c elements. n >= 1, 0 <= r < n.
struct Chunk {
  std::int64_t lo, hi;
};
constexpr Chunk chunk(std::int64_t length, std::int64_t n, std::int64_t r) {
  std::int64_t c = ceil_div(length, n);
  // r*c <= n*ceil(length/n) < length + n: no overflow within kMaxBytes.
  std::int64_t lo = r * c < length ? r * c : length;
  std::int64_t hi = lo + c < length ? lo + c : length;
  return {lo, hi};
}

// ---- the layout

class Layout {
 public:
  // One placement per mesh axis. `order`: per axis its position in its dim's shard order, -1 or an
  // empty vector for the default (increasing axes); unlike PyTorch, dims that a _StridedShard cuts
  // can have an order too. Throws InputError for a wrong number of placements, a dim out of range,
  // negative extents, a size above 2^62 bytes, an order that is not a permutation, a split factor
  // above 2^20, or more than 2^26 pieces of a dim.
  Layout(Shape shape, DType dtype, MeshRef mesh, std::vector<Placement> placements,
         const std::vector<int>& order = {});
  // The same with explicit stacks (one per dim, each naming exactly the axes that shard the dim).
  Layout(Shape shape, DType dtype, MeshRef mesh, std::vector<Placement> placements,
         ShardStacks stacks);

  // Throws InputError for a size above 2^62 bytes, and as ExplicitBoxes does.
  Layout(Shape shape, DType dtype, MeshRef mesh, ExplicitBoxes boxes);

  // The layout of `count` tensors with this layout as one tensor, with a first dim that counts them
  // and that no rank cuts. Throws InputError for a size above 2^62 bytes and for too many dims.
  Layout stacked(std::int64_t count) const;

  const Shape& shape() const { return shape_; }
  int dims() const { return shape_.size(); }
  DType dtype() const { return dtype_; }
  const Mesh& mesh() const { return *mesh_; }
  const MeshRef& mesh_ref() const { return mesh_; }

  // ---- what ranks hold, by mesh position

  Shape local_shape(std::int32_t position) const;
  // Equal for positions that hold the same parts, even of different addends: 0 .. cell_count()-1,
  // which is at most the number of ranks.
  std::int64_t cell_of(std::int32_t position) const;
  std::int64_t cell_count() const;
  // Calls visit(box in global indices, where it begins in the shard) for disjoint boxes, which are
  // the shard except for its padding, ascending in it; none if it is empty.
  template <class Visit>
  void for_each_part(std::int32_t position, Visit&& visit) const;
  // The same boxes.
  std::vector<Box> boxes(std::int32_t position) const;
  // Elements of the shard that have no index in the tensor, as disjoint boxes of the shard.
  std::span<const Box> padding(std::int32_t position) const;
  bool holds_some(std::int32_t position, const Box& box) const;
  // Null for products.
  const ExplicitBoxes* explicit_boxes() const { return boxes_.get(); }

  // ---- product layouts only

  bool is_product() const { return boxes_ == nullptr; }
  const std::vector<Placement>& placements() const { return placements_; }
  const Placement& placement(int axis) const { return placements_[axis]; }
  // The axes that shard `dim`, outermost first.
  const std::vector<int>& stack(int dim) const { return stacks_[dim]; }
  const ShardStacks& stacks() const { return stacks_; }
  bool has_strided() const;
  // Whether every dim's stack is in increasing axis order.
  bool has_default_order() const;
  // Whether ranks hold addends: an axis of several ranks is Partial.
  bool has_addends() const;

  // The pieces of `dim`, numbered row-major in the stack's coordinates, and the one that the rank
  // at a mesh coordinate holds.
  const PieceTable& pieces(int dim) const { return *pieces_[dim]; }
  std::int64_t piece_of(int dim, const MeshCoordinate& coordinate) const;
  Runs runs(int dim, std::int32_t position) const {
    return pieces(dim).runs(piece_of(dim, mesh_->coordinate(position)));
  }

  // ---- of any layout

  // The indices of `dim` at which the boxes of some rank begin or end, ascending, 0 and the length
  // among them.
  std::vector<std::int64_t> cuts(int dim) const;
  std::int64_t bytes() const { return element_count(shape_) * size_bytes(dtype_); }
  // What parse_layout reads: "S(0)R", with order indices if the order is not the default, or
  // "boxes(0: [0:4,0:8]; 1: [4:8,0:8])".
  std::string placements_text() const;
  // The same for people: many boxes are only counted.
  std::string label() const;
  // "f32[32,8192](S(0)R) on 2x2".
  std::string text() const;

  friend bool operator==(const Layout& a, const Layout& b);

 private:
  void check_placements() const;
  void check_size() const;
  void build_pieces();

  Shape shape_;
  DType dtype_;
  MeshRef mesh_;
  IndexVector<int, Placement> placements_;
  ShardStacks stacks_;
  IndexVector<int, std::shared_ptr<const PieceTable>> pieces_;  // per dim; shared between copies
  std::shared_ptr<const ExplicitBoxes> boxes_;                  // null: a product
};

template <class Visit>
void Layout::for_each_part(std::int32_t position, Visit&& visit) const {
  if (!is_product()) {
    for (const Part& part : boxes_->cells()[to_index(boxes_->cell_of(position))].parts)
      visit(part.box, part.local_lo);
    return;
  }
  MeshCoordinate coordinate = mesh_->coordinate(position);
  std::array<Runs, kMaxDims> runs;
  for (int d = 0; d < dims(); ++d) {
    runs[to_index(d)] = pieces(d).runs(piece_of(d, coordinate));
    if (runs[to_index(d)].empty()) return;
  }
  DimVector at(dims());
  do {
    Box box;
    DimVector local_lo;
    for (int d = 0; d < dims(); ++d) {
      const Run& run = runs[to_index(d)][to_index(at[d])];
      box.lo.push_back(run.global_lo);
      box.hi.push_back(run.global_hi());
      local_lo.push_back(run.local_lo);
    }
    visit(box, local_lo);
  } while (next_index(at, [&](int d) { return runs[to_index(d)].size(); }));
}

// Text of the --shape option: "32,8192,4096"; "" is 0-d. Throws InputError naming `field`.
Shape parse_shape(std::string_view text, std::string_view field = "shape");

// Reads a layout, with `placements` in any form that parse_placements, parse_sharding (of other
// frameworks) and parse_boxes read; every InputError names the field at fault.
Layout parse_layout(std::string_view shape, std::string_view dtype, MeshRef mesh,
                    std::string_view placements, std::string_view field = "placements");

}  // namespace reshard
