// SPDX-License-Identifier: BSD-3-Clause
#include "core/stored/stored_requests.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/layout/box_index.h"
#include "core/stored/shard_boxes.h"

namespace reshard {
namespace {

using Boxes = std::vector<Box>;

// A scalar is a tensor of one element: explicit boxes have at least one dim.
Shape shape_of(const ModelTensor& tensor) {
  return tensor.shape.size() == 0 ? Shape{1} : tensor.shape;
}
Box box_of_part(const StoredPart& part) { return part.box.dims() == 0 ? Box{{0}, {1}} : part.box; }

// Joins boxes that are equal in all dims but one, and neighbours in that.
void join_neighbours(Boxes& boxes) {
  for (int d = 0; !boxes.empty() && d < boxes.front().dims(); ++d) {
    auto elsewhere = [d](const Box& box) {
      Box out = box;
      out.lo[d] = out.hi[d] = 0;
      return out;
    };
    std::sort(boxes.begin(), boxes.end(), [&](const Box& a, const Box& b) {
      return std::pair(elsewhere(a), a.lo[d]) < std::pair(elsewhere(b), b.lo[d]);
    });
    Boxes out;
    for (const Box& box : boxes)
      if (!out.empty() && out.back().hi[d] == box.lo[d] && elsewhere(out.back()) == elsewhere(box))
        out.back().hi[d] = box.hi[d];
      else
        out.push_back(box);
    boxes = std::move(out);
  }
  std::sort(boxes.begin(), boxes.end());
}

// The boxes in a shard, one after another along the dim that leaves the least padding.
std::vector<Part> stacked(const Boxes& boxes) {
  if (boxes.empty()) return {};
  int dims = boxes.front().dims(), best = 0;
  Int128 least = -1;
  for (int along = 0; along < dims; ++along) {
    Int128 volume = 1;
    for (int d = 0; d < dims; ++d) {
      std::int64_t extent = 0;
      for (const Box& box : boxes)
        extent = d == along ? extent + box.extent(d) : std::max(extent, box.extent(d));
      volume *= extent;
    }
    if (least < 0 || volume < least) {
      least = volume;
      best = along;
    }
  }
  std::vector<Part> out;
  DimVector at(dims, 0);
  for (const Box& box : boxes) {
    out.push_back({box, at});
    at[best] += box.extent(best);
  }
  return out;
}

bool overlap(const Boxes& boxes) {
  return boxes.size() > 1 && BoxIndex(boxes).overlap().has_value();
}

Boxes boxes_of(const Stored& side, std::span<const Stored::PartId> parts) {
  Boxes out;
  for (Stored::PartId id : parts) out.push_back(box_of_part(side[id]));
  return out;
}

// The layouts of a tensor on one side: on the source one, on the destination one more wherever a
// rank has elements again.
class SideOfTensor {
 public:
  SideOfTensor(const Stored& side, const MeshRef& mesh, ModelTensorId tensor)
      : side_(side), mesh_(mesh), tensor_(tensor), shape_(shape_of(side.tensors()[tensor])) {}

  Layout source() const {
    std::vector<Boxes> by_position;
    for (std::int32_t position = 0; position < mesh_->size(); ++position) {
      Boxes boxes = boxes_of(side_, parts(position));
      by_position.push_back(overlap(boxes) ? without_repeats(boxes) : std::move(boxes));
    }
    return layout(by_position);
  }

  // Calls visit(layer, part) for every part; a rank's parts of one layer do not overlap. Returns
  // the layers.
  template <class Visit>
  std::vector<Layout> destination(Visit&& visit) const {
    std::vector<std::vector<Boxes>> layers;  // each by position
    for (std::int32_t position = 0; position < mesh_->size(); ++position) {
      std::span<const Stored::PartId> list = parts(position);
      Boxes boxes = boxes_of(side_, list);
      bool repeats = overlap(boxes);
      for (std::size_t i = 0; i < list.size(); ++i) {
        std::size_t layer = 0;
        while (repeats && layer < layers.size() &&
               meets(layers[layer][to_index(position)], boxes[i]))
          ++layer;
        if (layer == layers.size()) layers.emplace_back(to_index(mesh_->size()));
        layers[layer][to_index(position)].push_back(boxes[i]);
        visit(layer, list[i]);
      }
    }
    std::vector<Layout> out;
    for (std::vector<Boxes>& layer : layers) out.push_back(layout(layer));
    return out;
  }

 private:
  std::span<const Stored::PartId> parts(std::int32_t position) const {
    return side_.parts_of(mesh_->rank_at(position), tensor_);
  }

  static bool meets(const Boxes& boxes, const Box& box) {
    return std::any_of(boxes.begin(), boxes.end(),
                       [&](const Box& other) { return !intersect(other, box).empty(); });
  }

  static Boxes without_repeats(const Boxes& boxes) {
    Boxes out;
    for (const Box& box : boxes) {
      Boxes left{box};
      for (const Box& other : out) subtract(other, left);
      out.insert(out.end(), left.begin(), left.end());
    }
    return out;
  }

  Layout layout(std::vector<Boxes>& by_position) const {
    std::vector<std::vector<Part>> lists;
    std::vector<std::int32_t> list_of;
    for (Boxes& boxes : by_position) {
      join_neighbours(boxes);
      list_of.push_back(static_cast<std::int32_t>(lists.size()));
      lists.push_back(stacked(boxes));
    }
    return Layout(shape_, side_.tensors()[tensor_].dtype, mesh_,
                  ExplicitBoxes(shape_, *mesh_, std::move(lists), list_of));
  }

  const Stored& side_;
  const MeshRef& mesh_;
  ModelTensorId tensor_;
  Shape shape_;
};

// Which part of which buffer has what of a shard.
class PlacesOfShard {
 public:
  // Elements that two parts have are taken from the first.
  PlacesOfShard(const Stored& side, const Layout& layout, Rank rank,
                std::span<const Stored::PartId> parts)
      : side_(side), shard_(layout, rank), repeats_(overlap(boxes_of(side, parts))) {
    for (Stored::PartId id : parts) add(id);
  }
  std::vector<StoredPlace> take() { return std::move(out_); }

 private:
  void add(Stored::PartId id) {
    const StoredPart& part = side_[id];
    Boxes left{box_of_part(part)};
    if (repeats_)
      for (const Box& other : taken_) subtract(other, left);
    for (const Box& box : left)
      shard_.for_each(box, [&](const Box& common, const DimVector& local_lo) {
        StridedView view{part.offset, common.extents(), part.strides};
        for (int d = 0; d < part.box.dims(); ++d)
          view.offset += (common.lo[d] - part.box.lo[d]) * part.strides[d];
        if (part.box.dims() == 0) view.strides = {1};  // a scalar is planned as one of one dim
        out_.push_back({box_at(local_lo, common.extents()), id.buffer, view});
      });
    if (repeats_) taken_.insert(taken_.end(), left.begin(), left.end());
  }

  const Stored& side_;
  ShardBoxes shard_;
  bool repeats_;
  Boxes taken_;
  std::vector<StoredPlace> out_;
};

MeshRef mesh_of(const Stored& side, std::string_view name) {
  std::vector<Rank> ranks = side.ranks();
  if (ranks.empty())
    throw InputError(fmt::format("expected buffers of the side '{}', found none", name));
  auto size = static_cast<std::int32_t>(ranks.size());
  return std::make_shared<const Mesh>(std::vector<std::int32_t>{size}, std::move(ranks));
}

}  // namespace

StoredRequests::StoredRequests(const Stored& source, const Stored& destination)
    : source_(source), destination_(destination) {
  MeshRef from = mesh_of(source, "from"), to = mesh_of(destination, "to");
  for (const StoredBuffer& buffer : destination.buffers())
    request_of_.emplace_back(buffer.parts.size());
  const ModelTensors& tensors = source.tensors();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    auto id = id_of<ModelTensorId>(t);
    const ModelTensor& tensor = tensors[id];
    if (tensor.same_as != id || element_count(tensor.shape) == 0) continue;
    std::size_t first = requests_.size();
    std::vector<Layout> layers =
        SideOfTensor(destination, to, id).destination([&](std::size_t layer, Stored::PartId part) {
          request_of_[part.buffer][to_index(part.part)] = id_of<TensorId>(first + layer);
        });
    if (layers.empty()) continue;
    Layout held = SideOfTensor(source, from, id).source();
    try {
      for (Layout& layer : layers) {
        requests_.emplace_back(held, std::move(layer), tensor.name);
        tensor_of_.push_back(id);
      }
    } catch (const InputError& error) {
      throw error.in(fmt::format("tensor {}", quoted(tensor.name, 200)));
    }
  }
  if (requests_.empty())
    throw InputError("expected parts of tensors in buffers of the side 'to', found none");
}

std::vector<StoredPlace> StoredRequests::source_places(TensorId request, Rank rank) const {
  std::span<const Stored::PartId> parts = source_.parts_of(rank, tensor_of_[to_index(request)]);
  return PlacesOfShard(source_, requests_[to_index(request)].source(), rank, parts).take();
}

std::vector<StoredPlace> StoredRequests::destination_places(TensorId request, Rank rank) const {
  std::vector<Stored::PartId> parts;
  for (Stored::PartId id : destination_.parts_of(rank, tensor_of_[to_index(request)]))
    if (written_by(id) == request) parts.push_back(id);
  return PlacesOfShard(destination_, requests_[to_index(request)].destination(), rank, parts)
      .take();
}

}  // namespace reshard
