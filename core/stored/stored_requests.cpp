// SPDX-License-Identifier: BSD-3-Clause
#include "core/stored/stored_requests.h"

#include <algorithm>
#include <compare>
#include <map>
#include <memory>
#include <utility>

#include <fmt/core.h>

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

// Joins boxes that are adjacent along one dim and equal in all others.
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

// Puts the boxes into a shard one after another, along the dim that needs the least padding.
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

// What every rank of a side has of a tensor, in the order of its parts. It is equal for tensors
// that lie alike, such as those of most layers.
struct RankBoxes {
  Shape shape;
  DType dtype;
  std::vector<std::size_t> ends;  // by position: the end of the rank's boxes
  Boxes boxes;

  Boxes at(std::size_t position) const {
    auto begin = boxes.begin();
    return {begin + static_cast<std::ptrdiff_t>(position == 0 ? 0 : ends[position - 1]),
            begin + static_cast<std::ptrdiff_t>(ends[position])};
  }
  friend auto operator<=>(const RankBoxes&, const RankBoxes&) = default;
};

// The layouts of one side's tensors: one per tensor on the source; on the destination, one more for
// each further time that a rank has the same elements. Tensors that lie alike share their layouts,
// which are made once.
class LayoutsOfSide {
 public:
  enum class Repeats : std::uint8_t { Dropped, Layered };

  LayoutsOfSide(const Stored& side, MeshRef mesh, Repeats repeats)
      : side_(side), mesh_(std::move(mesh)), repeats_(repeats) {}

  // The layouts of a number; tensors that lie alike have the same number.
  struct Made {
    std::vector<Layout> layers;         // a rank's boxes of one layer do not overlap
    std::vector<std::size_t> layer_of;  // by box, if there are several
  };
  std::size_t number_of(ModelTensorId tensor) {
    auto [known, is_new] = numbers_.try_emplace(boxes_of_ranks(tensor), made_.size());
    if (is_new)
      made_.push_back(repeats_ == Repeats::Dropped ? without_repeats(known->first)
                                                   : layered(known->first));
    return known->second;
  }
  const Made& operator[](std::size_t number) const { return made_[number]; }

  // Calls visit(part) in the order of the boxes.
  template <class Visit>
  void for_each_part(ModelTensorId tensor, Visit&& visit) const {
    for (std::int32_t position = 0; position < mesh_->size(); ++position)
      for (Stored::PartId id : side_.parts_of(mesh_->rank_at(position), tensor)) visit(id);
  }

 private:
  RankBoxes boxes_of_ranks(ModelTensorId tensor) const {
    const ModelTensor& of = side_.tensors()[tensor];
    RankBoxes out{shape_of(of), of.dtype, {}, {}};
    out.ends.reserve(to_index(mesh_->size()));
    for (std::int32_t position = 0; position < mesh_->size(); ++position) {
      for (Stored::PartId id : side_.parts_of(mesh_->rank_at(position), tensor))
        out.boxes.push_back(box_of_part(side_[id]));
      out.ends.push_back(out.boxes.size());
    }
    return out;
  }

  Made without_repeats(const RankBoxes& of) const {
    std::vector<Boxes> by_position;
    for (std::size_t position = 0; position < of.ends.size(); ++position) {
      Boxes boxes = of.at(position);
      by_position.push_back(overlap(boxes) ? without_repeats(boxes) : std::move(boxes));
    }
    return {{layout(of, by_position)}, {}};
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

  Made layered(const RankBoxes& of) const {
    std::vector<std::vector<Boxes>> layers;  // each by position
    Made out;
    for (std::size_t position = 0; position < of.ends.size(); ++position) {
      const Boxes boxes = of.at(position);
      const bool repeats = overlap(boxes);
      for (const Box& box : boxes) {
        std::size_t layer = 0;
        while (repeats && layer < layers.size() && meets(layers[layer][position], box)) ++layer;
        if (layer == layers.size()) layers.emplace_back(of.ends.size());
        layers[layer][position].push_back(box);
        out.layer_of.push_back(layer);
      }
    }
    for (std::vector<Boxes>& layer : layers) out.layers.push_back(layout(of, layer));
    if (layers.size() == 1) out.layer_of = {};
    return out;
  }

  static bool meets(const Boxes& boxes, const Box& box) {
    return std::any_of(boxes.begin(), boxes.end(),
                       [&](const Box& other) { return !intersect(other, box).empty(); });
  }

  Layout layout(const RankBoxes& of, std::vector<Boxes>& by_position) const {
    std::vector<std::vector<Part>> lists;
    std::vector<std::int32_t> list_of;
    for (Boxes& boxes : by_position) {
      join_neighbours(boxes);
      list_of.push_back(static_cast<std::int32_t>(lists.size()));
      lists.push_back(stacked(boxes));
    }
    return Layout(of.shape, of.dtype, mesh_,
                  ExplicitBoxes(of.shape, *mesh_, std::move(lists), list_of));
  }

  const Stored& side_;
  MeshRef mesh_;
  Repeats repeats_;
  std::map<RankBoxes, std::size_t> numbers_;
  std::vector<Made> made_;
};

// Which part of which buffer has each element of a shard.
class PlacesOfShard {
 public:
  // Elements that are in two parts are taken from the first.
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
  using Repeats = LayoutsOfSide::Repeats;
  LayoutsOfSide from(source, mesh_of(source, "from"), Repeats::Dropped),
      to(destination, mesh_of(destination, "to"), Repeats::Layered);
  for (const StoredBuffer& buffer : destination.buffers())
    request_of_.emplace_back(buffer.parts.size());
  // The first request of the first tensor that has these layouts.
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> known;
  const ModelTensors& tensors = source.tensors();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    auto id = id_of<ModelTensorId>(t);
    const ModelTensor& tensor = tensors[id];
    if (tensor.same_as != id || element_count(tensor.shape) == 0) continue;
    const std::size_t first = requests_.size(), needed = to.number_of(id);
    const LayoutsOfSide::Made& wanted = to[needed];
    if (wanted.layers.empty()) continue;
    std::size_t box = 0;
    to.for_each_part(id, [&](Stored::PartId part) {
      std::size_t layer = wanted.layer_of.empty() ? 0 : wanted.layer_of[box++];
      request_of_[part.buffer][to_index(part.part)] = id_of<TensorId>(first + layer);
    });
    const std::size_t held = from.number_of(id);
    auto [like, is_new] = known.try_emplace({held, needed}, first);
    try {
      for (std::size_t layer = 0; layer < wanted.layers.size(); ++layer) {
        if (is_new)
          requests_.emplace_back(from[held].layers.front(), wanted.layers[layer], tensor.name);
        else
          requests_.push_back(requests_[like->second + layer].named(tensor.name));
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
