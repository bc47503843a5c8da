// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/drawn_models.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/stored/generators.h"

namespace reshard::test {
namespace {

// Of at most `most` ranks.
MeshRef draw_mesh(Prng& prng, int first, int most) {
  std::vector<std::int32_t> shape{static_cast<std::int32_t>(prng.between(1, std::min(3, most)))};
  if (prng.below(2) == 0)
    shape.push_back(static_cast<std::int32_t>(prng.between(1, std::min(2, most / shape[0]))));
  return std::make_shared<const Mesh>(Mesh::row_major(shape, Rank{first}));
}

PlacementList draw_placements(Prng& prng, const Mesh& mesh, int dims) {
  PlacementList out;
  for (int axis = 0; axis < mesh.axes(); ++axis) {
    auto dim = static_cast<int>(prng.below(dims));
    switch (prng.below(4)) {
      case 0:
        out.placements.push_back(Placement::replicate());
        break;
      case 1:
        out.placements.push_back(Placement::strided_shard(dim, prng.between(1, 2)));
        break;
      default:
        out.placements.push_back(Placement::shard(dim));
    }
  }
  return out;
}

class SideDrawer {
 public:
  SideDrawer(const ModelTensors& tensors, Prng& prng, int first, int ranks, bool converts)
      : prng_(prng),
        first_(first),
        ranks_(ranks),
        converts_(converts),
        out_(std::make_unique<Stored>(tensors)) {}

  std::unique_ptr<Stored> draw() {
    std::vector<ModelTensorId> left;
    for (std::size_t t = 0; t < tensors().size(); ++t) left.push_back(id_of<ModelTensorId>(t));
    while (!left.empty()) {
      std::size_t count = 1;
      while (count < left.size() && fuses(left[count], left.front()) && prng_.below(3) > 0) ++count;
      std::vector<ModelTensorId> group(left.begin(), left.begin() + static_cast<int>(count));
      left.erase(left.begin(), left.begin() + static_cast<int>(count));
      add(group);
    }
    return std::move(out_);
  }

 private:
  const ModelTensors& tensors() const { return out_->tensors(); }
  bool fuses(ModelTensorId a, ModelTensorId b) const {
    Shape x = tensors()[a].shape, y = tensors()[b].shape;
    if (x.size() != y.size()) return false;
    x[0] = y[0];
    return x == y;
  }

  void add(const std::vector<ModelTensorId>& group) {
    std::string name = fmt::format("b{}", out_->buffers().size());
    std::int64_t kind = prng_.below(4);
    if (kind == 0)
      return add_flat(*out_, {name, draw_mesh(prng_, first_, ranks_), group, prng_.between(1, 4),
                              prng_.between(1, 5)});
    if (kind == 1 && ranks_ > 1) return add_parts(name, group);
    FusedBuffer buffer;
    buffer.name = name;
    buffer.mesh = draw_mesh(prng_, first_, ranks_);
    const Shape& shape = tensors()[group.front()].shape;
    buffer.placements = draw_placements(prng_, *buffer.mesh, shape.size());
    if (prng_.below(3) == 0)
      for (int d = 0; d < shape.size(); ++d)
        buffer.order.insert(buffer.order.begin() + prng_.between(0, d), d);
    if (kind == 2 && units_fit(group)) {
      FusedBlock block;
      for (ModelTensorId id : group) block.sections.push_back({id, tensors()[id].shape[0] / 2});
      block.unit_rows = 1;
      block.pad = prng_.between(1, 3);
      buffer.blocks = {block};
    } else {
      for (ModelTensorId id : group) buffer.blocks.push_back({{{id, 1}}, 0, prng_.between(1, 3)});
    }
    if (prng_.one_in(3)) map_indices(group, buffer);
    if (prng_.one_in(4))
      for (int d = 0; d < shape.size(); ++d) buffer.pad.push_back(prng_.between(1, 3));
    buffer.pad_alike = prng_.one_in(6);
    if (prng_.one_in(4) && converts_) buffer.dtype = DType::F32;
    add_fused(*out_, buffer);
  }

  // Blocks, or rows of the last dim, all of them somewhere and some in several places.
  void map_indices(const std::vector<ModelTensorId>& group, FusedBuffer& buffer) {
    MappedIndices indices;
    indices.axes = {0};
    std::int64_t ranks = buffer.mesh->axis_size(0), length = std::ssize(buffer.blocks);
    if (prng_.one_in(2)) {
      indices.blocks = 1;
    } else {
      indices.dim = tensors()[group.front()].shape.size() - 1;
      length = tensors()[group.front()].shape[indices.dim];
    }
    Placement& first = buffer.placements.placements.front();
    first = Placement::replicate();
    for (Placement& placement : buffer.placements.placements)
      if (indices.blocks == 0 && placement.is_shard_like() && placement.dim == indices.dim)
        placement = Placement::replicate();
    indices.map.rule = prng_.pick<IndexMap::Rule>(
        {IndexMap::Rule::RemainderFirst, IndexMap::Rule::RoundRobin, IndexMap::Rule::Lists});
    if (indices.map.rule == IndexMap::Rule::Lists) {
      indices.map.lists.resize(to_index(ranks));
      std::vector<std::int64_t> all;
      for (std::int64_t i = 0; i < length; ++i) all.push_back(i);
      if (length > 0)
        for (std::int64_t i = prng_.below(3); i > 0; --i) all.push_back(prng_.below(length));
      prng_.shuffle(all);
      for (std::int64_t index : all)
        indices.map.lists[to_index(prng_.below(ranks))].push_back(index);
    }
    buffer.indices = indices;
  }

  bool units_fit(const std::vector<ModelTensorId>& group) const {
    return std::all_of(group.begin(), group.end(),
                       [&](auto id) { return tensors()[id].shape[0] % 2 == 0; });
  }

  // Rows of the tensors here and there, in one buffer of each of two ranks, with gaps.
  void add_parts(const std::string& name, const std::vector<ModelTensorId>& group) {
    StoredBuffer buffers[2];
    std::int64_t ends[2] = {0, 0};
    for (ModelTensorId id : group) {
      const Shape& shape = tensors()[id].shape;
      auto cut = prng_.between(0, shape[0]);
      for (int r = 0; r < 2; ++r) {
        StoredPart part{id, box_of(shape), 0, DimVector(shape.size())};
        (r == 0 ? part.box.hi[0] : part.box.lo[0]) = cut;
        buffers[r].dtype = tensors()[id].dtype;
        if (part.box.empty()) continue;
        part.offset = ends[r] + prng_.below(3);
        std::int64_t stride = 1;
        for (int d = shape.size() - 1; d >= 0; --d) {
          part.strides[d] = stride;
          stride *= part.box.extent(d) + prng_.below(2);
        }
        ends[r] = part.view().end();
        buffers[r].parts.push_back(part);
      }
    }
    for (int r = 0; r < 2; ++r) {
      buffers[r].rank = Rank{first_ + r};
      buffers[r].name = name;
      buffers[r].shape = {ends[r] + prng_.below(3)};
      out_->add(std::move(buffers[r]));
    }
  }

  Prng& prng_;
  int first_, ranks_;
  bool converts_;
  std::unique_ptr<Stored> out_;
};

// An end of a copy for a box of a part: as a box of its tensor, or as a view of its buffer.
CopyEnd end_of(const Stored& side, Stored::PartId id, const Box& box, bool as_box) {
  const StoredPart& part = side[id];
  CopyEnd out{};
  out.rank = side.buffers()[id.buffer].rank;
  out.is_box = as_box;
  out.tensor = part.tensor;
  out.box = box;
  out.buffer = id.buffer;
  out.view = {part.offset, box.extents(), part.strides};
  for (int d = 0; d < box.dims(); ++d)
    out.view.offset += (box.lo[d] - part.box.lo[d]) * part.strides[d];
  return out;
}

template <class Visit>
void for_each_part(const Stored& side, Visit&& visit) {
  for (std::size_t b = 0; b < side.buffers().size(); ++b)
    for (std::size_t p = 0; p < side.buffers()[b].parts.size(); ++p)
      visit(Stored::PartId{id_of<StoredBufferId>(b), static_cast<std::int32_t>(p)});
}

// Whether a rank holds some of a box more than once: boxes of its tensor are then written to all.
bool holds_once(const Stored& side, Stored::PartId id, const Box& box) {
  int times = 0;
  for (Stored::PartId other : side.parts_of(side.buffers()[id.buffer].rank, side[id].tensor))
    times += intersect(side[other].box, box).empty() ? 0 : 1;
  return times == 1;
}

DrawnModel draw(Prng& prng, int world, bool converts) {
  DrawnModel out;
  Shape shape{0, prng.between(1, 4)};
  if (prng.below(3) == 0) shape.push_back(prng.between(1, 3));
  for (std::int64_t t = prng.between(1, 4); t > 0; --t) {
    shape[0] = prng.below(2) == 0 ? 2 * prng.between(1, 4) : prng.between(1, 7);
    out.tensors->add(fmt::format("t{}", t), shape, DType::BF16);
  }
  if (prng.below(4) == 0) out.tensors->add_alias("tied", "t1");
  int first = world >= 12 ? 6 : static_cast<int>(prng.below(world));
  out.source = SideDrawer(*out.tensors, prng, 0, world, converts).draw();
  out.destination = SideDrawer(*out.tensors, prng, first, world - first, converts).draw();
  return out;
}

}  // namespace

DrawnModel draw_model(Prng& prng, int world) { return draw(prng, world, true); }
DrawnModel draw_unconverted_model(Prng& prng) { return draw(prng, 12, false); }

ElementNumbers element_numbers(const Stored& side) {
  std::vector<std::int64_t> first{0};
  for (std::size_t t = 0; t < side.tensors().size(); ++t)
    first.push_back(first.back() + element_count(side.tensors()[id_of<ModelTensorId>(t)].shape));
  ElementNumbers out;
  for (const StoredBuffer& buffer : side.buffers()) {
    auto& numbers = out.emplace_back(to_index(element_count(buffer.shape)), -1);
    for (const StoredPart& part : buffer.parts) {
      const ModelTensor& tensor = side.tensors()[part.tensor];
      for (std::int64_t i = 0; i < part.box.volume(); ++i) {
        DimVector at = index_at(i, part.box.extents());
        std::int64_t place = part.offset, index = 0;
        for (int d = 0; d < at.size(); ++d) {
          place += at[d] * part.strides[d];
          index = index * tensor.shape[d] + part.box.lo[d] + at[d];
        }
        RESHARD_CHECK(numbers[to_index(place)] == -1, "parts overlap");
        numbers[to_index(place)] = first[to_index(tensor.same_as)] + index;
      }
    }
  }
  return out;
}

std::vector<DrawnCopy> right_copies(const DrawnModel& model, Prng& prng) {
  std::vector<DrawnCopy> out;
  for_each_part(*model.destination, [&](Stored::PartId to) {
    const StoredPart& part = (*model.destination)[to];
    std::vector<Box> left{part.box};
    for_each_part(*model.source, [&](Stored::PartId from) {
      const StoredPart& held = (*model.source)[from];
      if ((*model.tensors)[held.tensor].same_as != (*model.tensors)[part.tensor].same_as) return;
      for (const Box& box : left) {
        Box common = intersect(held.box, box);
        if (common.empty()) continue;
        bool as_box = prng.below(2) == 0 && holds_once(*model.destination, to, common);
        out.push_back({end_of(*model.source, from, common, prng.below(2) == 0),
                       end_of(*model.destination, to, common, as_box)});
      }
      subtract(held.box, left);
    });
    RESHARD_CHECK(left.empty(), "the source has everything");
  });
  return out;
}

void break_copies(const DrawnModel& model, std::vector<DrawnCopy>& copies, Prng& prng) {
  if (copies.empty()) return;
  std::size_t at = to_index(prng.below(static_cast<std::int64_t>(copies.size())));
  DrawnCopy& copy = copies[at];
  auto other = [&]() -> DrawnCopy& {
    return copies[to_index(prng.below(static_cast<std::int64_t>(copies.size())))];
  };
  auto move = [&](CopyEnd& end, const Stored& side) {
    if (!end.is_box) {
      std::int64_t room = element_count(side.buffers()[end.buffer].shape) - end.view.end();
      end.view.offset = std::max<std::int64_t>(0, end.view.offset + prng.between(-2, room + 1));
      return;
    }
    int d = static_cast<int>(prng.below(end.box.dims()));
    const std::int64_t room = (*model.tensors)[end.tensor].shape[d] - end.box.hi[d],
                       by = prng.between(-end.box.lo[d], room);
    end.box.lo[d] += by;
    end.box.hi[d] += by;
  };
  switch (prng.below(6)) {
    case 0:
      copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    case 1:
      copies.push_back(copy);
      return;
    case 2:
      return move(copy.from, *model.source);
    case 3:
      return move(copy.to, *model.destination);
    case 4:
      if (DrawnCopy& with = other(); with.from.count() == copy.from.count())
        std::swap(with.from, copy.from);
      return;
    default:
      if (DrawnCopy& with = other(); with.from.count() == copy.to.count()) copy.from = with.from;
  }
}

}  // namespace reshard::test
