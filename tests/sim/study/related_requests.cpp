// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/study/related_requests.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "core/base/errors.h"
#include "sim/machines/presets.h"

namespace reshard::test {
namespace {

Placement placement_of(const Side::Axis& axis) {
  if (axis.kind == 'R') return Placement::replicate();
  if (axis.kind == 'S') return Placement::shard(axis.dim);
  return parse_placements("P(" + axis.op + ")", 1, 1, "drawn").placements[0];
}

std::vector<int> any_order(std::size_t count, Prng& prng) {
  std::vector<int> out(count);
  std::iota(out.begin(), out.end(), 0);
  prng.shuffle(out);
  return out;
}

std::int32_t size_of(const std::vector<std::int32_t>& mesh) {
  return std::accumulate(mesh.begin(), mesh.end(), 1, std::multiplies<>());
}

Side draw_side(Prng& prng, const std::vector<std::int32_t>& mesh, std::vector<Rank> ranks,
               int dims) {
  Side out{mesh, std::move(ranks), {}, {}};
  out.ranks.resize(to_index(size_of(mesh)));
  for (std::size_t axis = 0; axis < mesh.size(); ++axis) {
    std::int64_t what = prng.below(10);
    if (what < 3)
      out.axes.push_back({'R'});
    else if (what < 9)
      out.axes.push_back({'S', static_cast<int>(prng.below(dims))});
    else
      out.axes.push_back({'P', 0, "sum"});
  }
  out.order.resize(mesh.size());
  std::iota(out.order.begin(), out.order.end(), 0);
  if (prng.one_in(4)) prng.shuffle(out.order);
  return out;
}

std::vector<std::vector<std::int32_t>> meshes_for(std::int32_t devices) {
  std::vector<std::vector<std::int32_t>> out;
  for (const char* text : {"2", "4", "2x2", "6", "3x2", "8", "2x4", "4x2", "2x2x2", "12", "3x4",
                           "16", "2x8", "8x2", "4x4", "2x4x2"}) {
    Mesh mesh = parse_mesh(text);
    if (mesh.size() <= devices) out.push_back(mesh.shape());
  }
  return out;
}

DrawnMove draw_any(Prng& prng) {
  static const std::vector<const char*> kMachines{"dgx-h100:2",       "dgx-h100",   "dgx-a100:2",
                                                  "a100-quad:4",      "l40s-8",     "gh200-quad:3",
                                                  "rtx-pro-6000-8:2", "nvswitch:12"};
  static const std::vector<Shape> kShapes{{64, 96},  {1024, 768}, {4096, 8192}, {16384, 6144},
                                          {37, 101}, {4800, 333}, {8, 512, 480}};
  static const std::vector<DType> kTypes{DType::U8, DType::BF16, DType::F32};
  DrawnMove out{std::make_shared<const Topology>(sim::find_topology(prng.pick(kMachines))),
                prng.pick(kShapes),
                prng.pick(kTypes),
                {},
                {}};
  std::vector<std::vector<std::int32_t>> meshes = meshes_for(out.machine->devices());
  std::vector<Rank> ranks;
  for (std::int32_t device = 0; device < out.machine->devices(); ++device)
    ranks.push_back(static_cast<Rank>(device));
  if (prng.one_in(4)) prng.shuffle(ranks);
  std::vector<std::int32_t> mesh = prng.pick(meshes);
  int dims = out.shape.size();
  out.from = draw_side(prng, mesh, ranks, dims);
  if (prng.one_in(4)) {
    std::rotate(ranks.begin(), ranks.begin() + prng.below(out.machine->devices()), ranks.end());
    mesh = prng.pick(meshes);
  }
  out.to = draw_side(prng, mesh, ranks, dims);
  return out;
}

}  // namespace

Layout Side::layout(const Shape& shape, DType dtype) const {
  std::vector<Placement> placements;
  ShardStacks stacks(to_index(shape.size()));
  for (const Axis& axis : axes) placements.push_back(placement_of(axis));
  for (int axis : order)
    if (axes[to_index(axis)].kind == 'S') stacks[axes[to_index(axis)].dim].push_back(axis);
  return Layout(shape, dtype, std::make_shared<const Mesh>(mesh, ranks), std::move(placements),
                std::move(stacks));
}

DrawnMove draw_move(Prng& prng) {
  for (;;) {
    DrawnMove out = draw_any(prng);
    try {
      Request request = out.request();
      return out;
    } catch (const InputError&) {
      // Of Partials nothing but themselves comes of R alone.
    }
  }
}

DrawnMove renumbered(const DrawnMove& move, Prng& prng) {
  const Topology& machine = *move.machine;
  std::int32_t here = machine.node().devices;
  std::vector<int> nodes = any_order(to_index(machine.nodes()), prng);
  // Devices by their class and the groups that they are of.
  auto kind_of = [&](std::int32_t local) {
    std::vector<bool> groups;
    for (const DeviceGroup& group : machine.node().groups)
      groups.push_back(std::ranges::binary_search(group.devices, local));
    return std::pair(machine.class_of(static_cast<Rank>(local)), groups);
  };
  std::map<decltype(kind_of(0)), std::vector<std::int32_t>> alike;
  for (std::int32_t local = 0; local < here; ++local) alike[kind_of(local)].push_back(local);
  std::vector<Rank> name(to_index(machine.devices()));
  for (std::size_t node = 0; node < nodes.size(); ++node)
    for (const auto& [kind, locals] : alike) {
      std::vector<std::int32_t> others = locals;
      prng.shuffle(others);
      for (std::size_t i = 0; i < locals.size(); ++i)
        name[node * to_index(here) + to_index(locals[i])] =
            static_cast<Rank>(nodes[node] * here + others[i]);
    }
  DrawnMove out = move;
  for (Side* side : {&out.from, &out.to})
    for (Rank& rank : side->ranks) rank = name[to_index(to_int(rank))];
  return out;
}

namespace {

Side with_axes(const Side& side, const std::vector<int>& turn) {
  Side out = side;
  std::vector<int> place(turn.size());
  for (std::size_t i = 0; i < turn.size(); ++i) {
    place[to_index(turn[i])] = static_cast<int>(i);
    out.mesh[i] = side.mesh[to_index(turn[i])];
    out.axes[i] = side.axes[to_index(turn[i])];
  }
  for (int& axis : out.order) axis = place[to_index(axis)];
  Mesh before(side.mesh, side.ranks), after = Mesh::row_major(out.mesh);
  for (std::int32_t position = 0; position < after.size(); ++position) {
    MeshCoordinate now = after.coordinate(position), was{};
    for (std::size_t i = 0; i < turn.size(); ++i) was[to_index(turn[i])] = now[i];
    out.ranks[to_index(position)] = before.rank_at(before.position_at(was));
  }
  return out;
}

}  // namespace

DrawnMove with_axes_turned(const DrawnMove& move, Prng& prng) {
  DrawnMove out = move;
  std::vector<int> turn = any_order(move.from.mesh.size(), prng);
  out.from = with_axes(move.from, turn);
  if (move.to.mesh != move.from.mesh) turn = any_order(move.to.mesh.size(), prng);
  out.to = with_axes(move.to, turn);
  return out;
}

DrawnMove with_another_axis(const DrawnMove& move, Prng& prng) {
  DrawnMove out = move;
  auto at = static_cast<int>(prng.below(
      static_cast<std::int64_t>(std::min(move.from.mesh.size(), move.to.mesh.size()) + 1)));
  for (Side* side : {&out.from, &out.to}) {
    side->mesh.insert(side->mesh.begin() + at, 1);
    side->axes.insert(side->axes.begin() + at, Side::Axis{'R'});
    for (int& axis : side->order) axis += axis >= at ? 1 : 0;
    side->order.push_back(at);
  }
  return out;
}

namespace {

DrawnMove with_dims(const DrawnMove& move, const Shape& shape, const std::vector<int>& place) {
  DrawnMove out = move;
  out.shape = shape;
  for (Side* side : {&out.from, &out.to})
    for (Side::Axis& axis : side->axes)
      if (axis.kind == 'S') axis.dim = place[to_index(axis.dim)];
  return out;
}

}  // namespace

DrawnMove with_dims_turned(const DrawnMove& move, Prng& prng) {
  std::vector<int> place = any_order(to_index(move.shape.size()), prng);
  Shape shape = move.shape;
  for (int d = 0; d < shape.size(); ++d) shape[place[to_index(d)]] = move.shape[d];
  return with_dims(move, shape, place);
}

DrawnMove with_another_dim(const DrawnMove& move, Prng& prng) {
  auto at = static_cast<int>(prng.below(move.shape.size() + 1));
  Shape shape;
  std::vector<int> place;
  for (int d = 0; d <= move.shape.size(); ++d) {
    if (d == at) shape.push_back(1);
    if (d == move.shape.size()) break;
    place.push_back(shape.size());
    shape.push_back(move.shape[d]);
  }
  return with_dims(move, shape, place);
}

DrawnMove of_twice_the_bytes(const DrawnMove& move) {
  DrawnMove out = move;
  out.dtype = move.dtype == DType::U8     ? DType::BF16
              : move.dtype == DType::BF16 ? DType::F32
                                          : DType::F64;
  return out;
}

DrawnMove reversed(const DrawnMove& move) {
  DrawnMove out = move;
  std::swap(out.from, out.to);
  return out;
}

DrawnMove made_easier(const DrawnMove& move, Prng& prng) {
  DrawnMove out = move;
  std::vector<int> innermost;
  for (std::size_t i = 0; i < move.from.order.size(); ++i) {
    auto cuts_as = [&](int axis) {
      const Side::Axis &own = move.from.axes[to_index(move.from.order[i])],
                       &other = move.from.axes[to_index(axis)];
      return other.kind == 'S' && other.dim == own.dim;
    };
    int axis = move.from.order[i];
    if (move.from.axes[to_index(axis)].kind == 'S' &&
        std::none_of(move.from.order.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                     move.from.order.end(), cuts_as))
      innermost.push_back(axis);
  }
  if (!innermost.empty()) out.from.axes[to_index(prng.pick(innermost))] = Side::Axis{'R'};
  return out;
}

Side somewhere_else(const DrawnMove& move, Prng& prng) {
  for (;;) {
    Side out = draw_side(prng, move.from.mesh, move.from.ranks, move.shape.size());
    bool partial = std::ranges::any_of(out.axes, [](const auto& axis) { return axis.kind == 'P'; });
    if (!partial) return out;
  }
}

namespace {

template <class Change>
DrawnMove on_changed(const DrawnMove& move, Change&& change) {
  NodeTemplate node = move.machine->node();
  std::vector<SharedResource> fabric(move.machine->fabric().begin(), move.machine->fabric().end());
  change(node, fabric);
  DrawnMove out = move;
  out.machine = std::make_shared<const Topology>(move.machine->name(), std::move(node),
                                                 std::move(fabric), move.machine->nodes());
  return out;
}

}  // namespace

DrawnMove on_wider_links(const DrawnMove& move) {
  return on_changed(move, [](NodeTemplate& node, std::vector<SharedResource>& fabric) {
    for (Port& port : node.ports) {
      port.out_bytes_per_s *= 2;
      port.in_bytes_per_s *= 2;
    }
    for (SharedResource& resource : node.shared) resource.bytes_per_s *= 2;
    for (SharedResource& resource : fabric) resource.bytes_per_s *= 2;
    for (RouteRule& rule : node.rules)
      if (rule.cap_bytes_per_s) *rule.cap_bytes_per_s *= 2;
  });
}

DrawnMove on_quicker_links(const DrawnMove& move) {
  return on_changed(move, [](NodeTemplate& node, std::vector<SharedResource>&) {
    for (RouteRule& rule : node.rules) rule.latency_ps /= 2;
  });
}

}  // namespace reshard::test
