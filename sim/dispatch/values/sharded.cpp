// SPDX-License-Identifier: BSD-3-Clause
// Values of the shards of a tensor: assembled to the whole, moved by plans, masked for lookups.
#include "sim/dispatch/values/values.h"

#include <fmt/core.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <span>

#include "core/base/errors.h"
#include "core/layout/layout.h"
#include "sim/dispatch/dispatched.h"
#include "sim/operators/float8.h"
#include "sim/store/store.h"

namespace reshard::sim {

namespace {

// By dim: the global index of every local one.
using Places = std::vector<std::vector<std::int64_t>>;

Places places_of(const Layout& layout, std::int32_t position) {
  Places out(to_index(layout.dims()));
  for (int d = 0; d < layout.dims(); ++d)
    for (const Run& run : layout.runs(d, position))
      for (std::int64_t i = 0; i < run.size; ++i) out[to_index(d)].push_back(run.global_lo + i);
  return out;
}

// Calls visit(global, local) with row-major indices, local ones ascending.
template <class Visit>
void for_each_element(const Shape& shape, const Places& places, Visit&& visit) {
  std::int64_t count = 1;
  for (const auto& dim : places) count *= static_cast<std::int64_t>(dim.size());
  std::vector<std::size_t> at(places.size(), 0);
  for (std::int64_t local = 0; local < count; ++local) {
    std::int64_t global = 0;
    for (std::size_t d = 0; d < places.size(); ++d)
      global = global * shape[static_cast<int>(d)] + places[d][at[d]];
    visit(global, local);
    for (std::size_t d = places.size(); d-- > 0;) {
      if (++at[d] < places[d].size()) break;
      at[d] = 0;
    }
  }
}

// Row-major coordinate over the partial axes.
std::int64_t addend_of(const TensorSpec& spec, const Mesh& mesh, std::int32_t position) {
  MeshCoordinate coordinate = mesh.coordinate(position);
  std::int64_t out = 0;
  for (int axis = 0; axis < mesh.axes(); ++axis)
    if (spec.placements[to_index(axis)].is_partial())
      out = out * mesh.axis_size(axis) + coordinate[to_index(axis)];
  return out;
}

// The position with the same part and addend that is first along axes of replicas.
std::int32_t first_copy(const TensorSpec& spec, const Mesh& mesh, std::int32_t position) {
  MeshCoordinate coordinate = mesh.coordinate(position);
  for (int axis = 0; axis < mesh.axes(); ++axis)
    if (spec.placements[to_index(axis)].is_replicate()) coordinate[to_index(axis)] = 0;
  return mesh.position_at(coordinate);
}

// ---- numbers

template <class T>
T fold(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::Product:
      return a * b;
    case ReduceOp::Max:
      return std::isnan(static_cast<double>(a)) || a > b ? a : b;
    case ReduceOp::Min:
      return std::isnan(static_cast<double>(a)) || a < b ? a : b;
    default:
      return a + b;
  }
}

const OpPlacement* norm_of(const OpPlacements& placements) {
  for (const OpPlacement& placement : placements)
    if (placement.kind == OpPlacement::Kind::NormPartial) return &placement;
  return nullptr;
}

Array raised(const Array& array, double power) {
  std::vector<double> out = values<double>(array);
  for (double& value : out) value = std::pow(std::abs(value), power);
  return Array::of(array.dtype, array.shape, out);
}

template <class T>
Array array_of(DType dtype, const Shape& shape, std::vector<T> numbers) {
  return Array::of(dtype, shape, std::move(numbers));
}

template <class T>
Array assembled(const Sharded& sharded, const Layout& layout) {
  const TensorSpec& spec = sharded.spec;
  ReduceOp op = ReduceOp::Sum;
  double divisor = 1;
  for (std::size_t axis = 0; axis < spec.placements.size(); ++axis) {
    const OpPlacement& placement = spec.placements[axis];
    if (placement.kind != OpPlacement::Kind::Partial) continue;
    if (placement.op == ReduceOp::Avg) divisor *= sharded.mesh->shape()[axis];
    if (placement.op != ReduceOp::Avg) op = placement.op;
  }
  std::vector<T> out(to_index(element_count(spec.meta.shape)), T{0});
  std::vector<bool> seen(out.size(), false);
  for (std::int32_t position = 0; position < sharded.mesh->size(); ++position) {
    if (first_copy(spec, *sharded.mesh, position) != position) continue;
    std::vector<T> part = values<T>(sharded.shards[to_index(position)]);
    for_each_element(spec.meta.shape, places_of(layout, position),
                     [&](std::int64_t global, std::int64_t local) {
                       T& into = out[to_index(global)];
                       T value = part[to_index(local)];
                       into = seen[to_index(global)] ? fold(op, into, value) : value;
                       seen[to_index(global)] = true;
                     });
  }
  if constexpr (std::is_floating_point_v<T>)
    for (T& value : out) value /= divisor;
  return array_of(spec.meta.dtype, spec.meta.shape, std::move(out));
}

// ---- bytes as executors move them

template <class Stored, class T>
void write_as(const std::vector<T>& from, std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto value = static_cast<Stored>(from[i]);
    std::memcpy(bytes.data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
}

template <class Stored, class T>
std::vector<T> read_as(std::span<const std::byte> bytes) {
  std::vector<T> out(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = static_cast<T>(value);
  }
  return out;
}

// Calls visit(Stored{}, Computed{}) with the types in which the dtype is stored and computed.
template <class Visit>
void visit_stored(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::F64:
      return visit(double{}, double{});
    case DType::F32:
      return visit(float{}, double{});
    case DType::F16:
      return visit(Eigen::half{}, double{});
    case DType::BF16:
      return visit(Eigen::bfloat16{}, double{});
    case DType::F8E4M3:
      return visit(Float8<3>{}, double{});
    case DType::F8E5M2:
      return visit(Float8<2>{}, double{});
    case DType::I64:
      return visit(std::int64_t{}, std::int64_t{});
    case DType::I32:
      return visit(std::int32_t{}, std::int64_t{});
    case DType::I16:
      return visit(std::int16_t{}, std::int64_t{});
    case DType::I8:
      return visit(std::int8_t{}, std::int64_t{});
    case DType::U8:
    case DType::Bool:
      return visit(std::uint8_t{}, std::int64_t{});
    default:
      throw InputError("values of " + std::string(text(dtype)) + " are not computed");
  }
}

void write(const Array& array, std::span<std::byte> bytes) {
  visit_stored(array.dtype, [&](auto stored, auto computed) {
    write_as<decltype(stored)>(values<decltype(computed)>(array), bytes);
  });
}

Array read(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  Array out;
  visit_stored(dtype, [&](auto stored, auto computed) {
    out = array_of(dtype, shape, read_as<decltype(stored), decltype(computed)>(bytes));
  });
  return out;
}

// Placements after a redistribution, without masks, which the look-up itself applies.
OpPlacements without_masks(const OpPlacements& to, const OpPlacements& from) {
  OpPlacements out = to;
  for (std::size_t axis = 0; axis < out.size(); ++axis)
    if (out[axis].kind == OpPlacement::Kind::MaskPartial && out[axis] != from[axis])
      out[axis] = OpPlacement::replicate();
  return out;
}

}  // namespace

Layout layout_of(const TensorSpec& spec, const MeshRef& mesh) {
  std::vector<Placement> carried;
  for (const OpPlacement& placement : spec.placements) carried.push_back(placement.carried());
  return Layout(spec.meta.shape, spec.meta.dtype, mesh, std::move(carried));
}

Sharded cut(const TensorSpec& spec, const MeshRef& mesh,
            const std::function<Array(std::int64_t addend)>& whole) {
  Sharded out{spec, mesh, {}};
  Layout layout = layout_of(spec, mesh);
  std::map<std::int64_t, Array> wholes;
  for (std::int32_t position = 0; position < mesh->size(); ++position) {
    std::int64_t addend = addend_of(spec, *mesh, position);
    auto at = wholes.find(addend);
    if (at == wholes.end()) at = wholes.emplace(addend, whole(addend)).first;
    visit_computing(spec.meta.dtype, [&](auto computed) {
      using T = decltype(computed);
      std::vector<T> all = values<T>(at->second), part;
      for_each_element(
          spec.meta.shape, places_of(layout, position),
          [&](std::int64_t global, std::int64_t) { part.push_back(all[to_index(global)]); });
      out.shards.push_back(
          array_of(spec.meta.dtype, layout.local_shape(position), std::move(part)));
    });
  }
  return out;
}

Whole assemble(const Sharded& sharded) {
  Whole out;
  const Mesh& mesh = *sharded.mesh;
  for (std::int32_t position = 0; position < mesh.size() && !out.differ; ++position) {
    const Array& copy = sharded.shards[to_index(position)];
    const Array& first = sharded.shards[to_index(first_copy(sharded.spec, mesh, position))];
    visit_computing(copy.dtype, [&](auto computed) {
      using T = decltype(computed);
      std::vector<T> a = values<T>(copy), b = values<T>(first);
      bool same = std::equal(a.begin(), a.end(), b.begin(), b.end(),
                             [](T x, T y) { return x == y || (x != x && y != y); });
      if (!same) out.differ = mesh.rank_at(position);
    });
  }
  Layout layout = layout_of(sharded.spec, sharded.mesh);
  const OpPlacement* norm = norm_of(sharded.spec.placements);
  Sharded powers = sharded;
  if (norm)
    for (Array& shard : powers.shards) shard = raised(shard, norm->norm);
  visit_computing(sharded.spec.meta.dtype, [&](auto computed) {
    out.array = assembled<decltype(computed)>(powers, layout);
  });
  if (norm) out.array = raised(out.array, 1 / norm->norm);
  return out;
}

std::vector<bool> endless_addends(const Sharded& sharded) {
  const OpPlacements& placements = sharded.spec.placements;
  if (std::none_of(placements.begin(), placements.end(), [](const OpPlacement& placement) {
        return placement.is_partial(ReduceOp::Sum) || placement.is_partial(ReduceOp::Avg);
      }))
    return {};
  const Shape& shape = sharded.spec.meta.shape;
  std::vector<bool> out(to_index(element_count(shape)), true);
  Layout layout = layout_of(sharded.spec, sharded.mesh);
  for (std::int32_t position = 0; position < sharded.mesh->size(); ++position) {
    std::vector<double> part = values<double>(sharded.shards[to_index(position)]);
    for_each_element(shape, places_of(layout, position),
                     [&](std::int64_t global, std::int64_t local) {
                       if (std::isfinite(part[to_index(local)])) out[to_index(global)] = false;
                     });
  }
  return out;
}

Shape index_of(std::int64_t element, const Shape& shape) {
  Shape out = shape;
  for (int dim = shape.size(); dim-- > 0; element /= std::max<std::int64_t>(shape[dim], 1))
    out[dim] = element % std::max<std::int64_t>(shape[dim], 1);
  return out;
}

Rank holder_of(const Sharded& sharded, std::int64_t element) {
  Layout layout = layout_of(sharded.spec, sharded.mesh);
  for (std::int32_t position = 0; position < sharded.mesh->size(); ++position) {
    bool has = false;
    for_each_element(sharded.spec.meta.shape, places_of(layout, position),
                     [&](std::int64_t global, std::int64_t) { has = has || global == element; });
    if (has) return sharded.mesh->rank_at(position);
  }
  return sharded.mesh->rank_at(0);
}

Sharded moved(const Sharded& from, const OpPlacements& to, const PlanOf& plan_of) {
  Sharded out{from.spec, from.mesh, from.shards};
  out.spec.placements = without_masks(to, from.spec.placements);
  std::optional<Request> request = request_of(from.spec, out.spec.placements, from.mesh);
  if (!request) return out;
  const OpPlacement* norm = norm_of(from.spec.placements);
  if (!norm) norm = norm_of(to);
  std::shared_ptr<const Plan> plan = plan_of(*request);
  Store store;
  std::unique_ptr<PreparedPlan> prepared = store.prepare(*plan);
  prepared->fill([&](Rank rank, std::span<std::byte> bytes) {
    const Array& shard = from.shards[to_index(*from.mesh->position_of(rank))];
    write(norm ? raised(shard, norm->norm) : shard, bytes);
  });
  prepared->run();
  Layout layout = request->destination();
  prepared->take([&](Rank rank, std::span<const std::byte> bytes) {
    std::int32_t position = *from.mesh->position_of(rank);
    Array shard = read(from.spec.meta.dtype, layout.local_shape(position), bytes);
    out.shards[to_index(position)] = norm ? raised(shard, 1 / norm->norm) : std::move(shard);
  });
  return out;
}

void write_through(const Sharded& from, const MemoryView& written, Sharded& to,
                   const MemoryView& view) {
  if (from.spec.meta.dtype != to.spec.meta.dtype)
    throw InputError(
        fmt::format("memory that is read as {} and written as {} is not computed here; use --data "
                    "proof to leave values out",
                    text(to.spec.meta.dtype), text(from.spec.meta.dtype)));
  if (written == view && from.spec.meta == to.spec.meta &&
      from.spec.placements == to.spec.placements) {
    to.shards = from.shards;
    return;
  }
  Layout source = layout_of(from.spec, from.mesh), target = layout_of(to.spec, to.mesh);
  for (std::int32_t position = 0; position < from.mesh->size(); ++position) {
    std::vector<std::pair<std::int64_t, std::int64_t>> lies;  // offset in memory, and local element
    for_each_element(from.spec.meta.shape, places_of(source, position),
                     [&](std::int64_t global, std::int64_t local) {
                       lies.emplace_back(written.at(index_of(global, written.shape)), local);
                     });
    std::sort(lies.begin(), lies.end());
    Array& into = to.shards[to_index(position)];
    visit_computing(into.dtype, [&](auto computed) {
      using T = decltype(computed);
      std::vector<T> now = values<T>(from.shards[to_index(position)]), all = values<T>(into);
      for_each_element(
          to.spec.meta.shape, places_of(target, position),
          [&](std::int64_t global, std::int64_t local) {
            std::pair<std::int64_t, std::int64_t> at{view.at(index_of(global, view.shape)), 0};
            auto known = std::lower_bound(lies.begin(), lies.end(), at);
            if (known != lies.end() && known->first == at.first)
              all[to_index(local)] = now[to_index(known->second)];
          });
      into = array_of(into.dtype, into.shape, std::move(all));
    });
  }
}

const OpPlacement* mask_of(const OpPlacements& placements) {
  for (const OpPlacement& placement : placements)
    if (placement.kind == OpPlacement::Kind::MaskPartial) return &placement;
  return nullptr;
}

Mask mask_at(const OpPlacements& index, const MeshRef& mesh, std::int32_t position) {
  const OpPlacement& mask = *mask_of(index);
  std::vector<Placement> parts;
  for (const OpPlacement& placement : index)
    parts.push_back(placement.kind == OpPlacement::Kind::MaskPartial ? Placement::shard(mask.dim)
                                                                     : Placement::replicate());
  Layout layout(mask.mask_shape, DType::F32, mesh, std::move(parts));
  Runs runs = layout.runs(mask.dim, position);
  return runs.empty() ? Mask{} : Mask{runs.front().global_lo, runs.back().global_hi(), {}};
}

Array shifted(const Array& index, Mask& mask) {
  std::vector<std::int64_t> out = values<std::int64_t>(index);
  for (std::int64_t& value : out) {
    bool other = value < mask.lo || value >= mask.hi;
    mask.others.push_back(other);
    value = other ? 0 : value - mask.lo;
  }
  return Array::of(index.dtype, index.shape, out);
}

void clear_others(const Mask& mask, Array& output) {
  if (mask.others.empty()) return;
  std::size_t each = to_index(output.count()) / mask.others.size();
  std::vector<double> out = values<double>(output);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (mask.others[i / std::max<std::size_t>(each, 1)]) out[i] = 0;
  output = Array::of(output.dtype, output.shape, out);
}

}  // namespace reshard::sim
