// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/stored/generators.h"

namespace reshard {
namespace {

// The blocks that a box overlaps, as a box of their indices.
Box scales_of(const Box& box, const Shape& block) {
  Box out = box;
  for (int d = 0; d < box.dims(); ++d) {
    out.lo[d] = box.lo[d] / block[d];
    out.hi[d] = ceil_div(box.hi[d], block[d]);
  }
  return out;
}

// Scales by tensor, under its first name. Throws InputError if a tensor has several.
std::map<ModelTensorId, ModelTensorId> scales_by_tensor(const ModelTensors& tensors) {
  std::map<ModelTensorId, ModelTensorId> out;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    auto id = id_of<ModelTensorId>(t);
    if (!tensors[id].scales || tensors[id].same_as != id) continue;
    if (!out.emplace(tensors[tensors[id].scales->tensor].same_as, id).second)
      throw InputError(fmt::format("scales: expected one tensor of scales of {}, found two",
                                   quoted(tensors[tensors[id].scales->tensor].name, 200)));
  }
  return out;
}

// Makes the scales of one buffer.
class Scaling {
 public:
  Scaling(const Stored& side, const StoredBuffer& of, const ScalesBuffer& wanted,
          const std::map<ModelTensorId, ModelTensorId>& scales)
      : tensors_(side.tensors()), of_(of), wanted_(wanted), scales_(scales) {}

  StoredBuffer made() {
    StoredBuffer out{of_.rank, wanted_.name, {}, DType::F32, {}};
    out.mesh = of_.mesh;
    std::vector<Box> places;
    for (const StoredPart& part : of_.parts) {
      const ModelTensor& scales = scales_of_part(part);
      check_cut(part, scales);
      out.dtype = scales.dtype;
      Box box = scales_of(part.box, scales.scales->block);
      places.push_back(place_of(part));
      out.parts.push_back({scales_.at(tensors_[part.tensor].same_as), box, 0, {}});
    }
    put(places, out);
    return out;
  }

 private:
  const ModelTensor& scales_of_part(const StoredPart& part) const {
    auto found = scales_.find(tensors_[part.tensor].same_as);
    if (found == scales_.end())
      throw InputError(fmt::format("scales_of: expected tensors that have scales, found {}",
                                   quoted(tensors_[part.tensor].name, 200)));
    return tensors_[found->second];
  }

  void check_cut(const StoredPart& part, const ModelTensor& scales) const {
    const Shape &shape = tensors_[part.tensor].shape, &block = scales.scales->block;
    for (int d = 0; !wanted_.shared && d < shape.size(); ++d)
      for (std::int64_t at : {part.box.lo[d], part.box.hi[d]})
        if (at % block[d] != 0 && at != shape[d])
          throw InputError(fmt::format(
              "expected whole blocks of {}, found {}, which ends within block {} of dim {} ({} to "
              "{}); \"shared\": true gives its scale to both ranks",
              block[d], element_text(tensors_[part.tensor], part.box), at / block[d], d,
              at / block[d] * block[d], std::min(shape[d], (at / block[d] + 1) * block[d])));
  }

  // Where the part lies in the buffer, as a box of it.
  Box place_of(const StoredPart& part) const {
    bool fits = of_.shape.size() == part.box.dims();
    DimVector strides = row_major(of_.shape), lo = index_at(part.offset, of_.shape);
    for (int d = 0; fits && d < part.box.dims(); ++d)
      fits = (part.box.extent(d) == 1 || part.strides[d] == strides[d]) &&
             lo[d] + part.box.extent(d) <= of_.shape[d];
    if (!fits)
      throw InputError(
          fmt::format("scales_of: expected parts that are boxes of the buffer, found {}",
                      element_text(tensors_[part.tensor], part.box)));
    return box_at(lo, part.box.extents());
  }

  // By dim, intervals of the buffer in their order become intervals of the scales.
  void put(const std::vector<Box>& places, StoredBuffer& out) const {
    const int dims = of_.shape.size();
    std::vector<std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>> begins(
        to_index(dims));
    for (int d = 0; d < dims; ++d) {
      auto& of_dim = begins[to_index(d)];
      for (std::size_t i = 0; i < places.size(); ++i) {
        std::int64_t& extent = of_dim[{places[i].lo[d], places[i].hi[d]}];
        extent = std::max(extent, out.parts[i].box.extent(d));
      }
      std::int64_t end = 0, last = 0;
      for (auto& [interval, extent] : of_dim) {
        if (interval.first < last)
          throw InputError("scales_of: expected parts side by side, found some that are not");
        last = interval.second;
        end += std::exchange(extent, end);
      }
      out.shape.push_back(end);
    }
    DimVector strides = row_major(out.shape);
    for (std::size_t i = 0; i < places.size(); ++i) {
      StoredPart& part = out.parts[i];
      part.strides = strides;
      for (int d = 0; d < dims; ++d)
        part.offset += strides[d] * begins[to_index(d)].at({places[i].lo[d], places[i].hi[d]});
    }
  }

  const ModelTensors& tensors_;
  const StoredBuffer& of_;
  const ScalesBuffer& wanted_;
  const std::map<ModelTensorId, ModelTensorId>& scales_;
};

}  // namespace

void add_scales(Stored& to, const ScalesBuffer& buffer) {
  std::map<ModelTensorId, ModelTensorId> scales = scales_by_tensor(to.tensors());
  std::vector<StoredBuffer> made;
  for (const StoredBuffer& of : to.buffers())
    if (of.name == buffer.of && !of.parts.empty() && !to.find(of.rank, buffer.name)) try {
        made.push_back(Scaling(to, of, buffer, scales).made());
      } catch (const InputError& error) {
        throw error.in(fmt::format("buffer {} of rank {}", quoted(of.name, 200), to_int(of.rank)));
      }
  if (made.empty())
    throw InputError(fmt::format("scales_of: expected a buffer of earlier lines, found {}",
                                 quoted(buffer.of, 200)));
  for (StoredBuffer& each : made) to.add(std::move(each));
}

void check_scales(const Stored& side) {
  const ModelTensors& tensors = side.tensors();
  std::map<ModelTensorId, ModelTensorId> scales;  // of which the side has some
  for (const StoredBuffer& buffer : side.buffers())
    for (const StoredPart& part : buffer.parts)
      if (const auto& of = tensors[part.tensor].scales)
        scales.emplace(tensors[of->tensor].same_as, tensors[part.tensor].same_as);
  if (scales.empty()) return;
  for (const StoredBuffer& buffer : side.buffers())
    for (const StoredPart& part : buffer.parts) {
      auto found = scales.find(tensors[part.tensor].same_as);
      if (found == scales.end()) continue;
      const ModelTensor& of_it = tensors[found->second];
      std::vector<Box> left{scales_of(part.box, of_it.scales->block)};
      for (Stored::PartId id : side.parts_of(buffer.rank, found->second))
        subtract(side[id].box, left);
      if (left.empty()) continue;
      throw InputError(fmt::format(
          "expected every rank to have the scales of what it has, found rank {} with {}, but "
          "without {}",
          to_int(buffer.rank), element_text(tensors[part.tensor], part.box),
          element_text(of_it, left.front())));
    }
}

}  // namespace reshard
