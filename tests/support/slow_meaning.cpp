// SPDX-License-Identifier: BSD-3-Clause
// The meaning of a request, derived from its placements axis by axis.
#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

#include "tests/support/oracle.h"
#include "tests/support/slow_proof.h"

namespace reshard::test {
namespace {

using State = SlowValue::State;

std::vector<std::int64_t> coordinates(const Mesh& mesh, std::int32_t position) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(mesh.axes()));
  for (int axis = mesh.axes() - 1; axis >= 0; --axis) {
    out[static_cast<std::size_t>(axis)] = position % mesh.axis_size(axis);
    position /= mesh.axis_size(axis);
  }
  return out;
}

// Number of the addend that a source position holds.
std::int64_t addend_at(const Layout& source, std::int32_t position) {
  std::vector<std::int64_t> coordinate = coordinates(source.mesh(), position);
  std::int64_t out = 0;
  for (int axis = 0; axis < source.mesh().axes(); ++axis)
    if (placement_of(source, axis).is_partial())
      out = out * source.mesh().axis_size(axis) + coordinate[static_cast<std::size_t>(axis)];
  if (out >= 64) throw std::logic_error("more addends than bits");
  return out;
}

bool same_axes(const Request& request) {
  return request.is_product() &&
         request.source().mesh().shape() == request.destination().mesh().shape();
}

// The addends that meet in a destination position: of all source positions that stand where it
// stands on every axis that stays Partial.
std::uint64_t wanted_at(const Request& request, std::int32_t position) {
  const Layout &from = request.source(), &to = request.destination();
  std::vector<std::int64_t> mine = coordinates(to.mesh(), position);
  std::uint64_t out = 0;
  for (std::int32_t p = 0; p < from.mesh().size(); ++p) {
    std::vector<std::int64_t> theirs = coordinates(from.mesh(), p);
    bool meets = true;
    for (int axis = 0; axis < from.mesh().axes(); ++axis)
      if (same_axes(request) && placement_of(from, axis).is_partial() &&
          placement_of(to, axis).is_partial())
        meets &= mine[static_cast<std::size_t>(axis)] == theirs[static_cast<std::size_t>(axis)];
    if (meets) out |= std::uint64_t{1} << addend_at(from, p);
  }
  return out;
}

// S -> P(sum) of more than one rank.
bool is_zero_axis(const Request& request, int axis) {
  return same_axes(request) && request.source().mesh().axis_size(axis) > 1 &&
         placement_of(request.source(), axis).is_shard_like() &&
         placement_of(request.destination(), axis).is_partial();
}

// The elements that have values in a destination position: all that some source position holds
// which stands where it stands on every zero axis.
std::set<std::int64_t> valued_at(const Request& request, std::int32_t position) {
  const Layout& from = request.source();
  std::vector<std::int64_t> mine = coordinates(request.destination().mesh(), position);
  std::set<std::int64_t> out;
  for (std::int32_t p = 0; p < from.mesh().size(); ++p) {
    std::vector<std::int64_t> theirs = coordinates(from.mesh(), p);
    bool meets = true;
    for (int axis = 0; axis < from.mesh().axes(); ++axis)
      if (is_zero_axis(request, axis))
        meets &= mine[static_cast<std::size_t>(axis)] == theirs[static_cast<std::size_t>(axis)];
    if (!meets) continue;
    for (std::int64_t element : held_elements(from, p))
      if (element >= 0) out.insert(element);
  }
  return out;
}

std::int64_t divisor_of(const Request& request) {
  const Layout &from = request.source(), &to = request.destination();
  auto partial = [](const Layout& layout, int axis) {
    return placement_of(layout, axis).is_partial();
  };
  std::int64_t out = 1;
  for (int axis = 0; axis < from.mesh().axes(); ++axis)
    if (partial(from, axis) && placement_of(from, axis).op == ReduceOp::Avg &&
        !(same_axes(request) && partial(to, axis)))
      out *= from.mesh().axis_size(axis);
  for (int axis = 0; axis < to.mesh().axes(); ++axis)
    if (partial(to, axis) && placement_of(to, axis).op == ReduceOp::Sum &&
        !(same_axes(request) && partial(from, axis)) && !is_zero_axis(request, axis))
      out *= to.mesh().axis_size(axis);
  return out;
}

// Of what is folded; of what is made where nothing is.
ReduceOp op_of(const Request& request) {
  const Layout &from = request.source(), &to = request.destination();
  ReduceOp out = ReduceOp::Sum;
  for (const Layout* layout : {&from, &to})
    for (const Placement& placement : layout->placements())
      if (placement.is_partial()) out = placement.op;
  for (int axis = 0; axis < from.mesh().axes(); ++axis) {
    bool kept = same_axes(request) && placement_of(to, axis).is_partial();
    if (placement_of(from, axis).is_partial() && !kept && from.mesh().axis_size(axis) > 1)
      out = placement_of(from, axis).op;
  }
  return out == ReduceOp::Avg ? ReduceOp::Sum : out;
}

std::vector<SlowMeaning::Shard> shards_of(
    const Layout& layout, int dims, const std::function<void(std::int32_t, SlowValue&)>& describe) {
  std::vector<SlowMeaning::Shard> out;
  for (std::int32_t p = 0; p < layout.mesh().size(); ++p) {
    Shape local = layout.local_shape(p), shape(std::max(0, dims - local.size()), 1);
    for (int d = 0; d < local.size(); ++d) shape.push_back(local[d]);
    SlowMeaning::Shard shard{layout.mesh().rank_at(p), shape, {}};
    for (std::int64_t element : held_elements(layout, p)) {
      SlowValue value{State::Value, -1, element, 0, 1};
      describe(p, value);
      shard.values.push_back(value);
    }
    out.push_back(std::move(shard));
  }
  return out;
}

}  // namespace

SlowMeaning::SlowMeaning(const Request& request, int dims)
    : op_(op_of(request)), dtype_(request.dtype()) {
  source_ = shards_of(request.source(), dims, [&](std::int32_t p, SlowValue& value) {
    if (value.element < 0) value.state = State::Unwritten;
    value.addends = std::uint64_t{1} << addend_at(request.source(), p);
  });
  std::vector<std::set<std::int64_t>> valued;
  for (std::int32_t p = 0; p < request.destination().mesh().size(); ++p)
    valued.push_back(valued_at(request, p));
  destination_ = shards_of(request.destination(), dims, [&](std::int32_t p, SlowValue& value) {
    if (!valued[static_cast<std::size_t>(p)].contains(value.element)) {
      value = {State::Padding, -1, -1, 0, 1};
      return;
    }
    value.addends = wanted_at(request, p);
    value.divisor = divisor_of(request);
  });
}

}  // namespace reshard::test
