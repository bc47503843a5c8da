// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/oracle.h"

#include <algorithm>
#include <cstring>

namespace reshard::test {
namespace {

using List = std::vector<std::int64_t>;

// torch.chunk(list, n)[r], or nothing where chunk gives fewer than r + 1 pieces.
List chunk_of(const List& list, std::int64_t n, std::int64_t r) {
  auto length = static_cast<std::int64_t>(list.size());
  std::int64_t chunk = (length + n - 1) / n;
  List out;
  for (std::int64_t i = 0; i < length; ++i)
    if (chunk > 0 && i / chunk == r) out.push_back(list[static_cast<std::size_t>(i)]);
  return out;
}

List cut_along_axis(const List& list, const Placement& placement, std::int64_t n, std::int64_t r) {
  if (placement.kind == Placement::Kind::Shard) return chunk_of(list, n, r);
  List out;
  for (std::int64_t piece = 0; piece < placement.split_factor; ++piece)
    for (std::int64_t index : chunk_of(chunk_of(list, placement.split_factor, piece), n, r))
      out.push_back(index);
  return out;
}

std::vector<std::int64_t> coordinate_of(const Mesh& mesh, std::int64_t position) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(mesh.axes()));
  for (int axis = mesh.axes() - 1; axis >= 0; --axis) {
    out[static_cast<std::size_t>(axis)] = position % mesh.axis_size(axis);
    position /= mesh.axis_size(axis);
  }
  return out;
}

// For every index of the shard, in row-major order, the element of the box that has it, or -1.
std::vector<std::int64_t> elements_of_boxes(const BoxCell& cell, const Shape& shape) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < element_count(cell.local_shape); ++i) {
    DimVector at = index_at(i, cell.local_shape);
    out.push_back(-1);
    for (const Part& part : cell.parts) {
      bool inside = true;
      std::int64_t element = 0;
      for (int d = 0; d < shape.size(); ++d) {
        std::int64_t within = at[d] - part.local_lo[d];
        inside = inside && within >= 0 && part.box.lo[d] + within < part.box.hi[d];
        element = element * shape[d] + part.box.lo[d] + within;
      }
      if (inside) out.back() = element;
    }
  }
  return out;
}

}  // namespace

Placement placement_of(const Layout& layout, int axis) {
  return layout.is_product() ? layout.placement(axis) : Placement::replicate();
}

std::vector<std::int64_t> held_elements(const Layout& layout, std::int32_t position) {
  if (const ExplicitBoxes* boxes = layout.explicit_boxes())
    return elements_of_boxes(boxes->cells()[static_cast<std::size_t>(boxes->cell_of(position))],
                             layout.shape());
  std::vector<std::int64_t> coordinate = coordinate_of(layout.mesh(), position);
  List elements{0};
  for (int dim = 0; dim < layout.dims(); ++dim) {
    List indices;
    for (std::int64_t i = 0; i < layout.shape()[dim]; ++i) indices.push_back(i);
    for (int axis : layout.stack(dim))
      indices = cut_along_axis(indices, layout.placement(axis), layout.mesh().axis_size(axis),
                               coordinate[static_cast<std::size_t>(axis)]);
    List next;
    for (std::int64_t element : elements)
      for (std::int64_t index : indices) next.push_back(element * layout.shape()[dim] + index);
    elements = std::move(next);
  }
  return elements;
}

LayoutOracle::LayoutOracle(const Layout& layout) {
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    elements_.push_back(held_elements(layout, position));
}

RequestOracle::RequestOracle(const Request& request, const Pattern& pattern)
    : request_(request),
      axes_correspond_(request.is_product() &&
                       request.source().mesh().shape() == request.destination().mesh().shape()) {
  const Layout &from = request.source(), &to = request.destination();
  for (int axis = 0; axis < from.mesh().axes(); ++axis) {
    if (!placement_of(from, axis).is_partial()) continue;
    bool kept = axes_correspond_ && placement_of(to, axis).is_partial();
    op_ =
        placement_of(from, axis).op == ReduceOp::Avg ? ReduceOp::Sum : placement_of(from, axis).op;
    addend_count_ *= from.mesh().axis_size(axis);
    if (!kept && placement_of(from, axis).op == ReduceOp::Avg)
      divisor_ *= from.mesh().axis_size(axis);
  }
  for (int axis = 0; axis < to.mesh().axes(); ++axis) {
    bool made = placement_of(to, axis).is_partial() &&
                !(axes_correspond_ && placement_of(from, axis).is_partial());
    if (made && axes_correspond_ && placement_of(from, axis).kind == Placement::Kind::Shard) {
      zero_axes_.push_back(axis);
      continue;
    }
    if (made && placement_of(to, axis).op == ReduceOp::Sum) divisor_ *= to.mesh().axis_size(axis);
  }
  for (std::int64_t addend = 0; addend < addend_count_; ++addend) {
    std::vector<std::uint64_t> tensor;
    for (std::int64_t i = 0; i < element_count(request.shape()); ++i)
      tensor.push_back(pattern.source_bits(i, addend));
    addends_.push_back(std::move(tensor));
  }
  find_held();
}

void RequestOracle::find_held() {
  const Layout& from = request_.source();
  holds_.assign(zero_axes_.size(),
                std::vector<std::int64_t>(static_cast<std::size_t>(element_count(from.shape()))));
  for (std::int32_t p = 0; !zero_axes_.empty() && p < from.mesh().size(); ++p)
    for (std::int64_t element : held_elements(from, p))
      for (std::size_t z = 0; element >= 0 && z < zero_axes_.size(); ++z)
        holds_[z][static_cast<std::size_t>(element)] =
            coordinate_of(from.mesh(), p)[static_cast<std::size_t>(zero_axes_[z])];
}

bool RequestOracle::has_value(std::int32_t position, std::int64_t element) const {
  std::vector<std::int64_t> mine = coordinate_of(request_.destination().mesh(), position);
  for (std::size_t z = 0; z < zero_axes_.size(); ++z)
    if (holds_[z][static_cast<std::size_t>(element)] !=
        mine[static_cast<std::size_t>(zero_axes_[z])])
      return false;
  return true;
}

std::vector<std::int64_t> RequestOracle::addends_of_destination(std::int32_t position) const {
  const Layout &from = request_.source(), &to = request_.destination();
  std::vector<std::int64_t> wanted = coordinate_of(to.mesh(), position), out;
  // Every source rank is asked for its addend; those that differ from the destination's coordinate
  // on a kept axis hold one that is not wanted.
  for (std::int32_t p = 0; p < from.mesh().size(); ++p) {
    std::vector<std::int64_t> coordinate = coordinate_of(from.mesh(), p);
    std::int64_t addend = 0;
    bool takes = true;
    for (int axis = 0; axis < from.mesh().axes(); ++axis) {
      if (!placement_of(from, axis).is_partial()) continue;
      auto at = static_cast<std::size_t>(axis);
      addend = addend * from.mesh().axis_size(axis) + coordinate[at];
      if (axes_correspond_ && placement_of(to, axis).is_partial() && coordinate[at] != wanted[at])
        takes = false;
    }
    if (takes && std::find(out.begin(), out.end(), addend) == out.end()) out.push_back(addend);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::byte> RequestOracle::source(std::int32_t position,
                                             const std::vector<std::int64_t>& elements) const {
  std::vector<std::int64_t> coordinate = coordinate_of(request_.source().mesh(), position);
  std::int64_t addend = 0;
  for (int axis = 0; axis < request_.source().mesh().axes(); ++axis)
    if (placement_of(request_.source(), axis).is_partial())
      addend = addend * request_.source().mesh().axis_size(axis) +
               coordinate[static_cast<std::size_t>(axis)];
  return cut(addends_[static_cast<std::size_t>(addend)], elements);
}

std::vector<std::byte> RequestOracle::destination(std::int32_t position,
                                                  const std::vector<std::int64_t>& elements) const {
  std::vector<std::byte> out = cut(fold_of(addends_of_destination(position)), elements);
  auto width = static_cast<std::size_t>(size_bytes(request_.dtype()));
  for (std::size_t i = 0; !zero_axes_.empty() && i < elements.size(); ++i)
    if (!has_value(position, elements[i])) std::memset(out.data() + i * width, 0, width);
  return out;
}

const std::vector<std::uint64_t>& RequestOracle::fold_of(
    const std::vector<std::int64_t>& wanted) const {
  for (const auto& [addends, tensor] : folded_)
    if (addends == wanted) return tensor;
  std::vector<std::uint64_t> tensor;
  for (std::size_t i = 0; i < addends_[0].size(); ++i) {
    std::vector<std::uint64_t> operands;
    for (std::int64_t addend : wanted)
      operands.push_back(addends_[static_cast<std::size_t>(addend)][i]);
    tensor.push_back(folded(op_, request_.dtype(), divisor_, operands));
  }
  folded_.emplace_back(wanted, std::move(tensor));
  return folded_.back().second;
}

std::vector<std::byte> RequestOracle::cut(const std::vector<std::uint64_t>& tensor,
                                          const std::vector<std::int64_t>& elements) const {
  auto width = static_cast<std::size_t>(size_bytes(request_.dtype()));
  std::vector<std::byte> out(elements.size() * width);
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i] >= 0)
      std::memcpy(out.data() + i * width, &tensor[static_cast<std::size_t>(elements[i])], width);
  return out;
}

}  // namespace reshard::test
