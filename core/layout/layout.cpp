// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/layout.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard {

namespace {

ShardStacks stacks_from_order(int dims, const std::vector<Placement>& placements,
                              const IndexVector<int, int>& order) {
  ShardStacks stacks(to_index(dims));
  // check() refuses a dim out of range later.
  for (std::size_t axis = 0; axis < placements.size(); ++axis)
    if (const Placement& placement = placements[axis];
        placement.is_shard_like() && placement.dim >= 0 && placement.dim < dims)
      stacks[placement.dim].push_back(static_cast<int>(axis));
  if (order.empty()) return stacks;
  for (std::vector<int>& stack : stacks) {
    auto written = [&](int axis) { return order[axis]; };
    if (std::none_of(stack.begin(), stack.end(), [&](int axis) { return written(axis) >= 0; }))
      continue;
    IndexVector<int, int> ordered(stack.size(), -1);
    for (int axis : stack) {
      int position = written(axis);
      if (position < 0 || position >= static_cast<int>(stack.size()) || ordered[position] != -1)
        throw InputError(
            fmt::format("shard order: expected each position 0..{} once among the axes that "
                        "shard a dim, found {} on axis {}",
                        stack.size() - 1, position, axis));
      ordered[position] = axis;
    }
    stack = ordered;
  }
  return stacks;
}

// Appends to `out` the n pieces into which `placement` cuts `from`.
void cut(Runs from, const Placement& placement, std::int64_t n, PieceTable& out) {
  std::int64_t length = size_of(from);
  for (std::int64_t r = 0; r < n; ++r) {
    // A _StridedShard with more pieces than elements has empty pieces at the end: stop at the
    // first.
    for (std::int64_t piece = 0; piece < placement.split_factor; ++piece) {
      Chunk outer = chunk(length, placement.split_factor, piece);
      if (outer.lo >= outer.hi) break;
      Chunk inner = chunk(outer.hi - outer.lo, n, r);
      out.add_slice(from, outer.lo + inner.lo, outer.lo + inner.hi);
    }
    out.end_piece();
  }
}

}  // namespace

std::int64_t size_of(Runs runs) { return runs.empty() ? 0 : runs.back().local_hi(); }

void PieceTable::add_run(std::int64_t global_lo, std::int64_t size) {
  if (size <= 0) return;
  std::size_t begin = begins_.back();
  if (runs_.size() > begin && runs_.back().global_hi() == global_lo) {
    runs_.back().size += size;
    return;
  }
  std::int64_t local_lo = runs_.size() > begin ? runs_.back().local_hi() : 0;
  runs_.push_back({global_lo, local_lo, size});
}

void PieceTable::add_slice(Runs from, std::int64_t local_lo, std::int64_t local_hi) {
  auto first = std::partition_point(from.begin(), from.end(),
                                    [&](const Run& run) { return run.local_hi() <= local_lo; });
  for (auto it = first; it != from.end() && it->local_lo < local_hi; ++it) {
    std::int64_t lo = std::max(local_lo, it->local_lo), hi = std::min(local_hi, it->local_hi());
    add_run(it->global_lo + (lo - it->local_lo), hi - lo);
  }
}

std::vector<PieceRun> sorted_runs(const PieceTable& pieces) {
  std::vector<PieceRun> out;
  for (std::int64_t piece = 0; piece < pieces.count(); ++piece)
    for (const Run& run : pieces.runs(piece)) out.emplace_back(run, piece);
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.first.global_lo < b.first.global_lo; });
  return out;
}

Layout::Layout(Shape shape, DType dtype, MeshRef mesh, std::vector<Placement> placements,
               const std::vector<int>& order)
    : Layout(shape, dtype, std::move(mesh), placements,
             stacks_from_order(shape.size(), placements, order)) {}

Layout::Layout(Shape shape, DType dtype, MeshRef mesh, std::vector<Placement> placements,
               ShardStacks stacks)
    : shape_(shape),
      dtype_(dtype),
      mesh_(std::move(mesh)),
      placements_(std::move(placements)),
      stacks_(std::move(stacks)) {
  check_placements();
  check_size();
  build_pieces();
}

Layout::Layout(Shape shape, DType dtype, MeshRef mesh, ExplicitBoxes boxes)
    : shape_(shape),
      dtype_(dtype),
      mesh_(std::move(mesh)),
      boxes_(std::make_shared<const ExplicitBoxes>(std::move(boxes))) {
  check_size();
}

Layout Layout::stacked(std::int64_t count) const {
  if (dims() == kMaxDims)
    throw InputError(fmt::format("shape: expected at most {} dims, found one more", kMaxDims));
  auto with_first = [](std::int64_t first, const DimVector& rest) {
    DimVector out(1, first);
    for (std::int64_t each : rest) out.push_back(each);
    return out;
  };
  const Shape shape = with_first(count, shape_);
  if (is_product()) {
    std::vector<Placement> placements = placements_;
    for (Placement& placement : placements)
      if (placement.is_shard_like()) ++placement.dim;
    ShardStacks stacks(1);
    for (const std::vector<int>& stack : stacks_) stacks.push_back(stack);
    return Layout(shape, dtype_, mesh_, std::move(placements), std::move(stacks));
  }
  std::vector<std::vector<Part>> lists;
  for (const BoxCell& cell : boxes_->cells())
    for (std::vector<Part>& parts = lists.emplace_back(); const Part& part : cell.parts)
      parts.push_back({{with_first(0, part.box.lo), with_first(count, part.box.hi)},
                       with_first(0, part.local_lo)});
  std::vector<std::int32_t> list_of;
  for (std::int32_t position = 0; position < mesh_->size(); ++position)
    list_of.push_back(boxes_->cell_of(position));
  return Layout(shape, dtype_, mesh_, ExplicitBoxes(shape, *mesh_, std::move(lists), list_of));
}

void Layout::check_placements() const {
  if (static_cast<int>(placements_.size()) != mesh_->axes())
    throw InputError(fmt::format("placements: expected {}, one per mesh axis, found {}",
                                 mesh_->axes(), placements_.size()));
  for (const Placement& placement : placements_) {
    if (placement.is_shard_like() && (placement.dim < 0 || placement.dim >= dims()))
      throw InputError(fmt::format("placements: expected a tensor dim below {}, found {}", dims(),
                                   reshard::text(placement)));
    if (placement.split_factor < 1 || placement.split_factor > kMaxRanks)
      throw InputError(fmt::format("placements: expected a split factor from 1 to {}, found {}",
                                   kMaxRanks, placement.split_factor));
  }
}

void Layout::check_size() const {
  std::int64_t bytes = size_bytes(dtype_);
  bool empty = false;
  for (std::int64_t extent : shape_) {
    if (extent < 0)
      throw InputError(fmt::format("shape: expected extents of at least 0, found {}", extent));
    empty = empty || extent == 0;
  }
  for (std::int64_t extent : shape_) {
    if (extent > kMaxBytes) throw InputError("shape: expected at most 2^62 bytes, found more");
    if (empty) continue;
    std::optional<std::int64_t> product = checked_product(bytes, extent);
    if (!product)
      throw InputError(fmt::format("shape: expected at most 2^62 bytes, found more in {}",
                                   reshard::text(shape_)));
    bytes = *product;
  }
}

void Layout::build_pieces() {
  pieces_.reserve(to_index(dims()));
  for (int dim = 0; dim < dims(); ++dim) {
    PieceTable table;
    table.add_run(0, shape_[dim]);
    table.end_piece();
    std::size_t runs = 1;
    for (int axis : stack(dim)) {
      std::int32_t n = mesh_->axis_size(axis);
      runs *= to_index(std::min(placement(axis).split_factor, shape_[dim] + 1)) * to_index(n);
      if (runs > kMaxDimPieces)
        throw InputError(
            fmt::format("placements: expected at most 2^26 pieces of dim {}, found more because of "
                        "split factor {}",
                        dim, placement(axis).split_factor));
      PieceTable next;
      next.reserve(to_index(table.count()) * to_index(n));
      for (int piece = 0; piece < table.count(); ++piece)
        cut(table.runs(piece), placement(axis), n, next);
      table = std::move(next);
    }
    pieces_.push_back(std::make_shared<const PieceTable>(std::move(table)));
  }
}

bool Layout::has_strided() const {
  return std::any_of(placements_.begin(), placements_.end(),
                     [](const Placement& p) { return p.is_strided(); });
}

bool Layout::has_default_order() const {
  return std::all_of(stacks_.begin(), stacks_.end(), [](const std::vector<int>& stack) {
    return std::is_sorted(stack.begin(), stack.end());
  });
}

std::int64_t Layout::piece_of(int dim, const MeshCoordinate& coordinate) const {
  std::int64_t piece = 0;
  for (int axis : stack(dim)) piece = piece * mesh_->axis_size(axis) + coordinate[to_index(axis)];
  return piece;
}

bool Layout::has_addends() const {
  for (int axis = 0; is_product() && axis < mesh_->axes(); ++axis)
    if (placement(axis).is_partial() && mesh_->axis_size(axis) > 1) return true;
  return false;
}

Shape Layout::local_shape(std::int32_t position) const {
  if (!is_product()) return boxes_->cells()[to_index(boxes_->cell_of(position))].local_shape;
  MeshCoordinate coordinate = mesh_->coordinate(position);
  Shape out;
  for (int dim = 0; dim < dims(); ++dim) out.push_back(pieces(dim).size(piece_of(dim, coordinate)));
  return out;
}

std::int64_t Layout::cell_of(std::int32_t position) const {
  if (!is_product()) return boxes_->cell_of(position);
  MeshCoordinate coordinate = mesh_->coordinate(position);
  std::int64_t cell = 0;
  for (int dim = 0; dim < dims(); ++dim)
    cell = cell * pieces(dim).count() + piece_of(dim, coordinate);
  return cell;
}

std::int64_t Layout::cell_count() const {
  if (!is_product()) return static_cast<std::int64_t>(boxes_->cells().size());
  std::int64_t count = 1;
  for (int dim = 0; dim < dims(); ++dim) count *= pieces(dim).count();
  return count;
}

std::vector<Box> Layout::boxes(std::int32_t position) const {
  std::vector<Box> out;
  for_each_part(position, [&](const Box& box, const DimVector&) { out.push_back(box); });
  return out;
}

std::span<const Box> Layout::padding(std::int32_t position) const {
  if (is_product()) return {};
  return boxes_->cells()[to_index(boxes_->cell_of(position))].padding;
}

bool Layout::holds_some(std::int32_t position, const Box& box) const {
  if (!is_product()) {
    const std::vector<Part>& parts = boxes_->cells()[to_index(boxes_->cell_of(position))].parts;
    return std::any_of(parts.begin(), parts.end(),
                       [&](const Part& part) { return !intersect(part.box, box).empty(); });
  }
  for (int dim = 0; dim < dims(); ++dim) {
    Runs list = runs(dim, position);
    auto run = std::partition_point(list.begin(), list.end(),
                                    [&](const Run& r) { return r.global_hi() <= box.lo[dim]; });
    if (run == list.end() || run->global_lo >= box.hi[dim]) return false;
  }
  return true;
}

std::vector<std::int64_t> Layout::cuts(int dim) const {
  std::vector<std::int64_t> out{0, shape_[dim]};
  auto add = [&](std::int64_t lo, std::int64_t hi) { out.insert(out.end(), {lo, hi}); };
  if (is_product())
    for (int piece = 0; piece < pieces(dim).count(); ++piece)
      for (const Run& run : pieces(dim).runs(piece)) add(run.global_lo, run.global_hi());
  else
    for (const BoxCell& cell : boxes_->cells())
      for (const Part& part : cell.parts) add(part.box.lo[dim], part.box.hi[dim]);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string Layout::placements_text() const {
  return is_product() ? reshard::text(placements_, stacks_) : boxes_->text(*mesh_);
}

std::string Layout::label() const {
  if (is_product()) return placements_text();
  constexpr std::size_t kMostBoxes = 8, kMost = 60;
  std::size_t boxes = 0;
  for (const BoxCell& cell : boxes_->cells()) boxes += cell.parts.size();
  if (boxes <= kMostBoxes)
    if (std::string all = placements_text(); all.size() <= kMost) return all;
  return fmt::format("boxes({} in {} different shards)", boxes, boxes_->cells().size());
}

std::string Layout::text() const {
  return fmt::format("{}[{}]({}) on {}", reshard::text(dtype_), reshard::text(shape_),
                     placements_text(), shape_text(*mesh_));
}

bool operator==(const Layout& a, const Layout& b) {
  return a.shape_ == b.shape_ && a.dtype_ == b.dtype_ &&
         (a.mesh_ == b.mesh_ || *a.mesh_ == *b.mesh_) && a.placements_ == b.placements_ &&
         a.stacks_ == b.stacks_ && a.is_product() == b.is_product() &&
         (a.is_product() || a.boxes_ == b.boxes_ || *a.boxes_ == *b.boxes_);
}

Shape parse_shape(std::string_view text, std::string_view field) {
  Shape shape;
  Cursor cursor(text, field);
  cursor.skip_spaces();
  // Also as PyTorch and Python print them: torch.Size([8, 8]), [8, 8], (8,).
  bool size = cursor.accept("torch.Size(");
  std::string_view closing = cursor.accept("[") ? "]" : cursor.accept("(") ? ")" : "";
  cursor.skip_spaces();
  while (!cursor.at_end() && (closing.empty() || !cursor.rest().starts_with(closing))) {
    if (shape.size() == kMaxDims)
      throw InputError(fmt::format("{}: expected at most 8 dims, found more", field));
    shape.push_back(cursor.integer("an extent", 0, kMaxBytes));
    cursor.skip_spaces();
    if (!cursor.accept(",")) break;
    cursor.skip_spaces();
    if (cursor.at_end()) cursor.fail("an extent");
  }
  if (!closing.empty()) cursor.expect(closing);
  if (size) cursor.expect(")");
  cursor.skip_spaces();
  cursor.expect_end();
  return shape;
}

}  // namespace reshard
