// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/cases.h"

#include "core/base/errors.h"

namespace reshard::test {

MeshRef mesh_of(std::string_view text) { return std::make_shared<const Mesh>(parse_mesh(text)); }

std::vector<std::vector<std::int32_t>> single_axis_meshes(std::int32_t ranks) {
  std::vector<std::vector<std::int32_t>> out;
  for (std::int32_t n = 1; n <= ranks; ++n) out.push_back({n});
  return out;
}

std::vector<std::vector<std::int32_t>> factored_meshes(std::int32_t ranks, int axes) {
  std::vector<std::vector<std::int32_t>> out;
  std::vector<std::int32_t> sizes;
  // All ways to write `left` as a product of at least two factors from 2, appended to `sizes`.
  std::function<void(std::int32_t)> split = [&](std::int32_t left) {
    if (left == 1) {
      if (sizes.size() > 1) out.push_back(sizes);
      return;
    }
    for (std::int32_t factor = 2; factor <= left && static_cast<int>(sizes.size()) < axes;
         ++factor) {
      if (left % factor != 0) continue;
      sizes.push_back(factor);
      split(left / factor);
      sizes.pop_back();
    }
  };
  for (std::int32_t n = 2; n <= ranks; ++n) split(n);
  return out;
}

std::vector<std::vector<std::int32_t>> meshes_with_ones(std::int32_t ranks) {
  std::vector<std::vector<std::int32_t>> out{{1, 1}};
  for (std::int32_t n = 2; n <= ranks; ++n) {
    out.push_back({1, n});
    out.push_back({n, 1});
  }
  return out;
}

std::vector<std::vector<Placement>> all_placements(const std::vector<Placement>& choices,
                                                   std::size_t axes) {
  std::vector<std::vector<Placement>> out{{}};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::vector<std::vector<Placement>> next;
    for (const std::vector<Placement>& list : out)
      for (const Placement& placement : choices) {
        next.push_back(list);
        next.back().push_back(placement);
      }
    out = std::move(next);
  }
  return out;
}

std::int64_t all_small_cases(const std::vector<Shape>& shapes, DType dtype,
                             const std::vector<std::int32_t>& mesh_shape,
                             const std::vector<Placement>& choices, const VisitPair& visit) {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major(mesh_shape));
  std::int64_t pairs = 0;
  for (const Shape& shape : shapes) {
    std::vector<SmallLayout> layouts;
    for (const std::vector<Placement>& placements : all_placements(choices, mesh_shape.size()))
      layouts.emplace_back(Layout(shape, dtype, mesh, placements));
    for (const SmallLayout& source : layouts)
      for (const SmallLayout& destination : layouts) {
        visit(source, destination);
        ++pairs;
      }
  }
  return pairs;
}

namespace {

std::vector<std::int32_t> draw_mesh_shape(Prng& prng, std::int64_t most) {
  std::vector<std::int32_t> out;
  std::int64_t axes = prng.between(1, kMaxAxes), size = 1;
  for (std::int64_t axis = 0; axis < axes; ++axis) {
    auto extent = static_cast<std::int32_t>(prng.one_in(4) ? 1 : prng.between(2, 5));
    if (size * extent > most) extent = 1;
    size *= extent;
    out.push_back(extent);
  }
  return out;
}

MeshRef first_ranks(std::vector<std::int32_t> shape, const std::vector<Rank>& from) {
  std::size_t size = 1;
  for (std::int32_t extent : shape) size *= static_cast<std::size_t>(extent);
  return std::make_shared<const Mesh>(
      std::move(shape),
      std::vector<Rank>(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(size)));
}

Shape draw_shape(Prng& prng) {
  Shape out;
  std::int64_t dims = prng.one_in(12) ? prng.between(0, kMaxDims) : prng.between(1, 4),
               elements = 1;
  for (std::int64_t d = 0; d < dims; ++d) {
    std::int64_t extent = prng.one_in(25) ? 0 : prng.between(1, prng.one_in(3) ? 17 : 6);
    if (elements * extent > 400) extent = 1;
    elements *= extent == 0 ? 1 : extent;
    out.push_back(extent);
  }
  return out;
}

Placement draw_placement(Prng& prng, int dims, const std::vector<ReduceOp>& ops,
                         std::int64_t partial_share) {
  if (prng.one_in(partial_share)) return Placement::partial(prng.pick(ops));
  if (dims == 0 || prng.one_in(4)) return Placement::replicate();
  int dim = static_cast<int>(prng.below(dims));
  if (prng.one_in(4)) return Placement::strided_shard(dim, prng.between(1, 5));
  return Placement::shard(dim);
}

// What can follow `from` on an axis of the same size, one time in ten without regard to what is
// allowed.
Placement draw_next(Prng& prng, const Placement& from, int dims, const std::vector<ReduceOp>& ops) {
  Placement next = draw_placement(prng, dims, ops, 4);
  if (!next.is_partial() || prng.one_in(10)) return next;
  if (from.is_partial()) return from;
  bool can_follow =
      from.is_replicate() || (from.kind == Placement::Kind::Shard && next.op == ReduceOp::Sum);
  return can_follow ? next : Placement::replicate();
}

Layout with_order(Prng& prng, const Shape& shape, DType dtype, const MeshRef& mesh,
                  std::vector<Placement> placements) {
  Layout plain(shape, dtype, mesh, placements);
  if (!prng.one_in(3)) return plain;
  ShardStacks stacks = plain.stacks();
  for (std::vector<int>& stack : stacks) prng.shuffle(stack);
  return Layout(shape, dtype, mesh, std::move(placements), std::move(stacks));
}

// The operators of one draw: one that the dtype has, sum and avg together where they may mix,
// seldom any two.
std::vector<ReduceOp> draw_ops(Prng& prng, DType dtype) {
  std::vector<ReduceOp> can;
  for (int op = 0; op < kReduceOpCount; ++op)
    if (can_reduce(static_cast<ReduceOp>(op), dtype)) can.push_back(static_cast<ReduceOp>(op));
  if (can.empty() || prng.one_in(60))
    return {static_cast<ReduceOp>(prng.below(kReduceOpCount)), ReduceOp::Sum};
  ReduceOp op = prng.pick(can);
  if (can_divide(dtype) && (op == ReduceOp::Sum || op == ReduceOp::Avg) && prng.one_in(3))
    return {ReduceOp::Sum, ReduceOp::Avg};
  return {op};
}

}  // namespace

namespace {

constexpr std::int64_t kDrawnMeshRanks = 12;

// A second mesh on ranks that begin with the first one's, with some of them, or with none; the
// first one where no rank is left.
MeshRef draw_second_mesh(Prng& prng, const MeshRef& mesh, const std::vector<Rank>& ranks,
                         std::int64_t most) {
  std::int64_t how = prng.below(3);
  std::vector<Rank> others = ranks;
  auto begin = static_cast<std::ptrdiff_t>(how == 0   ? 0
                                           : how == 1 ? prng.below(mesh->size())
                                                      : mesh->size());
  others.erase(others.begin(), others.begin() + begin);
  if (prng.one_in(3) && others.size() >= 2) std::swap(others[0], others[1]);
  auto left = static_cast<std::int64_t>(others.size());
  if (left == 0) return mesh;
  if (prng.one_in(3) && mesh->size() <= left) return first_ranks(mesh->shape(), others);
  return first_ranks(draw_mesh_shape(prng, std::min(most, left)), others);
}

DrawnPair draw(Prng& prng, std::int32_t world, std::int64_t most) {
  auto dtype = static_cast<DType>(prng.below(kDTypeCount));
  Shape shape = draw_shape(prng);
  std::vector<ReduceOp> ops = draw_ops(prng, dtype);
  bool reduces = can_reduce(ops[0], dtype);
  std::vector<Rank> ranks;
  for (std::int32_t r = 0; r < world; ++r) ranks.push_back(Rank{r});
  if (prng.one_in(2)) prng.shuffle(ranks);

  MeshRef mesh = first_ranks(draw_mesh_shape(prng, most), ranks);
  std::vector<Placement> from, to;
  for (int axis = 0; axis < mesh->axes(); ++axis)
    from.push_back(draw_placement(prng, shape.size(), ops, reduces ? 3 : 60));

  MeshRef to_mesh = prng.one_in(3) ? draw_second_mesh(prng, mesh, ranks, most) : mesh;
  for (int axis = 0; axis < to_mesh->axes(); ++axis) {
    bool corresponds = mesh->shape() == to_mesh->shape();
    to.push_back(corresponds
                     ? draw_next(prng, from[static_cast<std::size_t>(axis)], shape.size(), ops)
                     : draw_placement(prng, shape.size(), ops, reduces ? 8 : 60));
  }
  return {with_order(prng, shape, dtype, mesh, from), with_order(prng, shape, dtype, to_mesh, to)};
}

}  // namespace

DrawnPair draw_pair(Prng& prng) { return draw(prng, kDrawnRanks, kDrawnMeshRanks); }

DrawnPair draw_pair(Prng& prng, std::int32_t world) {
  return draw(prng, world, std::min<std::int64_t>(world, kDrawnMeshRanks));
}

namespace {

std::optional<Request> request_of(const DrawnPair& pair) {
  try {
    return Request(pair.source, pair.destination);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<Request> draw_request(Prng& prng) { return request_of(draw_pair(prng)); }

std::optional<Request> draw_request_with_boxes(Prng& prng, std::int32_t world) {
  return request_of(draw_pair_with_boxes(prng, world));
}

std::vector<Request> draw_job(Prng& prng, std::int64_t devices, std::int64_t most) {
  std::int64_t count = prng.between(2, prng.one_in(8) ? most : 8);
  std::vector<Request> out;
  while (std::ssize(out) < count) {
    if (!out.empty() && prng.one_in(3)) {
      out.push_back(prng.pick(out));
      continue;
    }
    std::optional<Request> request = draw_request(prng);
    if (request && to_int(request->ranks().back()) < devices) out.push_back(*std::move(request));
  }
  return out;
}

}  // namespace reshard::test
