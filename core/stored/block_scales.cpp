// SPDX-License-Identifier: BSD-3-Clause
// Buffers of block scales, derived from the buffers of the weights that the scales belong to.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/stored/generators.h"

namespace reshard {
namespace {

// The blocks that a box overlaps, as a box of block indices.
Box scales_of(const Box& box, const Shape& block) {
  Box out = box;
  for (int d = 0; d < box.dims(); ++d) {
    out.lo[d] = box.lo[d] / block[d];
    out.hi[d] = ceil_div(box.hi[d], block[d]);
  }
  return out;
}

// The tensor of scales of each tensor that has scales, by the tensor's first name. Throws
// InputError if a tensor has several.
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

// Makes the scales of one buffer on one rank.
class Scaling {
 public:
  Scaling(const Stored& side, const StoredBuffer& of, const ScalesBuffer& wanted,
          const std::map<ModelTensorId, ModelTensorId>& scales)
      : tensors_(side.tensors()), of_(of), wanted_(wanted), scales_(scales) {}

  StoredBuffer made() {
    StoredBuffer out{of_.rank, wanted_.name, {}, DType::F32, {}};
    out.mesh = of_.mesh;
    std::vector<Box> places;
    find_dims();
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

  [[noreturn]] void fail_box(const StoredPart& part) const {
    throw InputError(fmt::format("scales_of: expected parts that are boxes of the buffer, found {}",
                                 element_text(tensors_[part.tensor], part.box)));
  }

  // Finds the dim of the buffer that each dim of the tensors lies along: they are in another order
  // if matrices are transposed, and follow another dim if matrices are stacked. A dim along which
  // every part has one element has no stride to be found by; such dims get the buffer dims that are
  // left, innermost first.
  void find_dims() {
    const int dims = of_.parts.front().box.dims();
    const DimVector strides = row_major(of_.shape);
    std::vector<bool> used(to_index(of_.shape.size()), false);
    dim_of_.assign(to_index(dims), -1);
    for (const StoredPart& part : of_.parts) {
      if (part.box.dims() != dims || dims > of_.shape.size()) fail_box(part);
      for (int d = 0; d < dims; ++d) {
        if (part.box.extent(d) == 1) continue;
        int there = 0;
        while (there < of_.shape.size() &&
               (of_.shape[there] == 1 || strides[there] != part.strides[d]))
          ++there;
        int& known = dim_of_[to_index(d)];
        if (there == of_.shape.size() || (known < 0 ? used[to_index(there)] : known != there))
          fail_box(part);
        known = there;
        used[to_index(there)] = true;
      }
    }
    for (int d = dims - 1, there = of_.shape.size() - 1; d >= 0; --d) {
      if (dim_of_[to_index(d)] >= 0) continue;
      while (used[to_index(there)]) --there;
      dim_of_[to_index(d)] = there;
      used[to_index(there)] = true;
    }
  }

  // The part as a box of the buffer.
  Box place_of(const StoredPart& part) const {
    DimVector lo = index_at(part.offset, of_.shape), extents(of_.shape.size(), 1);
    for (int d = 0; d < part.box.dims(); ++d) {
      const int there = dim_of_[to_index(d)];
      extents[there] = part.box.extent(d);
      if (lo[there] + extents[there] > of_.shape[there]) fail_box(part);
    }
    return box_at(lo, extents);
  }

  // In each dim, consecutive intervals of the buffer become consecutive intervals of the scales.
  void put(const std::vector<Box>& places, StoredBuffer& out) const {
    const int dims = of_.shape.size();
    std::vector<std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>> begins(
        to_index(dims));
    for (int d = 0; d < dims; ++d) {
      auto& of_dim = begins[to_index(d)];
      for (std::size_t i = 0; i < places.size(); ++i) {
        std::int64_t& extent = of_dim[{places[i].lo[d], places[i].hi[d]}];
        extent = std::max(extent, extent_along(out.parts[i], d));
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
      for (int there : dim_of_) part.strides.push_back(strides[there]);
      for (int d = 0; d < dims; ++d)
        part.offset += strides[d] * begins[to_index(d)].at({places[i].lo[d], places[i].hi[d]});
    }
  }

  // The extent of the part along a dim of the buffer.
  std::int64_t extent_along(const StoredPart& part, int there) const {
    for (int d = 0; d < part.box.dims(); ++d)
      if (dim_of_[to_index(d)] == there) return part.box.extent(d);
    return 1;
  }

  const ModelTensors& tensors_;
  const StoredBuffer& of_;
  const ScalesBuffer& wanted_;
  const std::map<ModelTensorId, ModelTensorId>& scales_;
  std::vector<int> dim_of_;  // the buffer's dim, by dim of the tensors
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
  std::map<ModelTensorId, ModelTensorId> scales;  // only of scales that this side has
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
