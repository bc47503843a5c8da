// SPDX-License-Identifier: BSD-3-Clause
// Shardings as XLA, Shardy and JAX print them, compared with each device's tile worked out by hand.
#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/layout/layout.h"
#include "tests/support/cases.h"
#include "tests/support/prng.h"

namespace reshard::test {
namespace {

std::string read(const std::string& mesh, const std::string& shape, const std::string& text) {
  return parse_layout(shape, "f32", mesh_of(mesh), text, "--from").placements_text();
}

std::string error_of(const std::string& mesh, const std::string& shape, const std::string& text) {
  try {
    return "read as " + read(mesh, shape, text);
  } catch (const InputError& error) {
    return error.what();
  }
}

// XLA's own rule: a dim is cut into equal tiles of ceil(length / tiles), the last short or empty.
Box tile_box(const Shape& shape, const std::vector<std::int64_t>& tiles,
             const std::vector<std::int64_t>& at) {
  Box out{DimVector(shape.size()), DimVector(shape.size())};
  for (int dim = 0; dim < shape.size(); ++dim) {
    auto d = static_cast<std::size_t>(dim);
    std::int64_t size = (shape[dim] + tiles[d] - 1) / tiles[d];
    out.lo[dim] = std::min(shape[dim], at[d] * size);
    out.hi[dim] = std::min(shape[dim], (at[d] + 1) * size);
  }
  return out;
}

// Whether each rank's boxes are its tile; `devices` in order of tiles, the dims' and then that of
// devices which hold the same.
bool holds_tiles(const Layout& layout, const std::vector<std::int64_t>& tiles, std::int64_t same,
                 const std::vector<std::int64_t>& devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::vector<std::int64_t> at(tiles.size());
    std::int64_t rest = static_cast<std::int64_t>(i) / same;
    for (std::size_t d = tiles.size(); d-- > 0; rest /= tiles[d]) at[d] = rest % tiles[d];
    Box box = tile_box(layout.shape(), tiles, at);
    std::int32_t position = *layout.mesh().position_of(Rank{static_cast<std::int32_t>(devices[i])});
    std::vector<Box> found = layout.boxes(position);
    bool empty = false;
    for (int dim = 0; dim < box.dims(); ++dim) empty = empty || box.lo[dim] == box.hi[dim];
    if (empty ? !found.empty() : found.size() != 1 || !(found[0] == box)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("tiles of devices as XLA prints them, by hand") {
  // Of a warning of XLA: one tile on 4 devices; dim 0 by the second axis, dim 1 by the first.
  CHECK(read("2x2", "96,96", "{devices=[1,1,2,2]<=[4] last_tile_dim_replicate}") == "RR");
  CHECK(read("2x2", "96,96", "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}") == "S(1)S(0)");
  CHECK(read("2x2", "96,96", "{devices=[1,1,4]<=[4] last_tile_dim_replicate}") == "RR");
  CHECK(read("2x2", "96,96", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}") == "S(0)R");
  CHECK(read("2x2", "96,96", "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}") == "RS(0)");
  CHECK(read("2x2", "96,96", "{devices=[2,2]<=[4]}") == "S(0)S(1)");
  CHECK(read("2x2", "96,96", "{devices=[2,2]<=[2,2]T(1,0)}") == "S(1)S(0)");
  CHECK(read("2x4", "96,96", "{devices=[8,1]<=[8]}") == "S(0)S(0)");
  CHECK(read("2x4", "96,96", "{devices=[1,8]<=[2,4]T(1,0)}") == "S(1)[1]S(1)[0]");
  CHECK(read("2x1x4", "8,8", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}") == "S(0)RR");
  CHECK(read("2x2x2", "8,8,8", "{devices=[2,2,2]<=[2,2,2]T(2,0,1)}") == "S(1)S(2)S(0)");
  CHECK(read("2x2", "8,8", "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}") == "RS(0)");
  CHECK(read("2x2", "8,8", "{devices=[2,2]0,1,2,3}") == "S(0)S(1)");
  CHECK(read("2x2", "8,8", "{devices=[2,1,2]<=[4] last_tile_dims={replicated}}") == "S(0)R");
  CHECK(read("2x2", "8,8", "{devices=[2,1,1,2]<=[4] last_tile_dims={replicated, replicated}}") ==
        "S(0)R");
  CHECK(read("2x2", "8,8", "{replicated}") == "RR");
  CHECK(read("2x2", "8,8", " sharding={replicated} ") == "RR");
  CHECK(read("2x2", "8,8", "mhlo.sharding = \"{devices=[4,1]<=[4]}\"") == "S(0)S(0)");
  CHECK(read("2x2", "8,8", "GSPMDSharding({devices=[2,2]<=[4]}, memory_kind=device)") ==
        "S(0)S(1)");
  CHECK(read("2x2", "8", "{devices=[4]<=[4] metadata={op_name=\"jit(f)/mul\"}}") == "S(0)S(0)");
  CHECK(read("4", "", "{devices=[4]<=[4] last_tile_dim_replicate}") == "R");
  CHECK(read("1", "8,8", "{devices=[1,1]0}") == "R");
  // Device i is the i-th of the mesh's ranks.
  CHECK(read("[[4,6],[5,7]]", "8,8", "{devices=[2,2]<=[4]}") == "S(1)S(0)");
}

TEST_CASE("a device list and placements say the same for every rank") {
  test::Prng prng(20260725);
  auto below = [&](std::int64_t n) { return static_cast<std::size_t>(prng.below(n)); };
  int fitting = 0, refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<std::int32_t> sizes(1 + below(3));
    for (std::int32_t& size : sizes) size = static_cast<std::int32_t>(1 + below(4));
    auto mesh = std::make_shared<const Mesh>(Mesh::row_major(sizes));
    std::size_t dims = 1 + below(3);
    // Each axis cuts a dim, at a place in its order, or none.
    std::vector<std::pair<std::size_t, int>> cuts;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis)
      cuts.emplace_back(below(static_cast<std::int64_t>(dims) + 1), static_cast<int>(axis));
    for (std::size_t i = cuts.size(); i > 1; --i)
      std::swap(cuts[i - 1], cuts[below(static_cast<std::int64_t>(i))]);
    std::vector<std::int64_t> tiles(dims, 1);
    for (auto [dim, axis] : cuts)
      if (dim < dims) tiles[dim] *= sizes[static_cast<std::size_t>(axis)];
    std::int64_t all = std::accumulate(tiles.begin(), tiles.end(), std::int64_t{1},
                                       std::multiplies<>()),
                 same = mesh->size() / all;
    std::vector<std::vector<std::int64_t>> of_tile(static_cast<std::size_t>(all));
    for (std::int32_t position = 0; position < mesh->size(); ++position) {
      MeshCoordinate at = mesh->coordinate(position);
      std::vector<std::int64_t> tile(dims, 0);
      for (auto [dim, axis] : cuts)
        if (dim < dims)
          tile[dim] = tile[dim] * sizes[static_cast<std::size_t>(axis)] +
                      at[static_cast<std::size_t>(axis)];
      std::int64_t index = 0;
      for (std::size_t dim = 0; dim < dims; ++dim) index = index * tiles[dim] + tile[dim];
      of_tile[static_cast<std::size_t>(index)].push_back(position);
    }
    std::vector<std::int64_t> devices;
    for (const auto& holders : of_tile)
      devices.insert(devices.end(), holders.begin(), holders.end());
    Shape shape(static_cast<int>(dims), 0);
    for (int dim = 0; dim < shape.size(); ++dim)
      shape[dim] = tiles[static_cast<std::size_t>(dim)] * static_cast<std::int64_t>(1 + below(3));
    bool fits = round % 4 != 3;
    if (!fits) std::swap(devices[below(mesh->size())], devices[below(mesh->size())]);
    std::string written = fmt::format("{{devices=[{},{}]{} last_tile_dim_replicate}}",
                                      fmt::join(tiles, ","), same, fmt::join(devices, ","));
    CAPTURE(shape_text(*mesh), text(shape), written);
    try {
      Layout layout = parse_layout(text(shape), "f32", mesh, written, "--from");
      CHECK(holds_tiles(layout, tiles, same, devices));
      ++fitting;
    } catch (const InputError&) {
      CHECK_FALSE(fits);
      ++refused;
    }
  }
  CHECK(fitting + refused == 400);
  CHECK(fitting >= 300);
  CHECK(refused > 20);
}

TEST_CASE("tiles that are not the mesh's are refused, with the reason") {
  const std::string start = "--from: expected tiles that follow the axes of the mesh ";
  CHECK(error_of("4", "8,8", "{devices=[2,2]<=[4]}") ==
        start + "4, found 2 tiles of dim 0 from axes that make 1");
  CHECK(error_of("2x2", "8,8", "{devices=[2,2]0,3,1,2}") ==
        start + "2x2, found axis 0 of 2 cutting both dim 0 and dim 1");
  CHECK(error_of("2x2", "8,8", "{devices=[4,1]3,2,1,0}") ==
        start + "2x2, found a step of -2 tiles of dim 0 along axis 0 instead of 1");
  CHECK(error_of("dp=4", "8", "{devices=[4]0,2,1,3}") ==
        start + "dp=4, found a step of 2 tiles of dim 0 along axis dp instead of 1");
  CHECK(error_of("4", "8", "{devices=[4]0,1,3,2}") ==
        start + "4, found tile 3 of dim 0 on rank 2, whose axes make it 2");
  CHECK(error_of("2x2", "8,8", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}") ==
        "--from: expected a tile for each of the 4 ranks of the mesh 2x2, found 8");
  CHECK(error_of("2x2", "8", "{devices=[2,2]<=[4]}") ==
        "--from: expected a sharding of 1 dim, the dims of the shape, found one of 2 dims");
  CHECK(error_of("2x2", "8,8,8", "{devices=[2,2]<=[4] last_tile_dim_replicate}") ==
        "--from: expected a sharding of 3 dims, the dims of the shape, found one of 1 dim");
  CHECK(error_of("2x2", "8", "{maximal device=0}") ==
        "--from: expected a sharding over the mesh, found maximal: one device holds everything");
  CHECK(error_of("2x2", "8", "{manual}") ==
        "--from: expected a sharding that states what each device holds, found manual");
  CHECK(error_of("2x2", "8", "{{replicated}, {replicated}}") ==
        "--from: expected the sharding of one tensor, found a tuple; pass one sharding at a time");
  CHECK(error_of("2x2", "8,8", "{devices=[2,1,2]<=[4] last_tile_dims={manual}}") ==
        "--from: expected only 'replicated' in last_tile_dims=, found 'manual'");
  CHECK(error_of("2x2", "8,8", "{devices=[2,2]0,1,1,2}") ==
        "--from: expected each device once, found 1 twice");
  CHECK(error_of("2x2", "8,8", "{devices=[2,2]<=[4]T(1)}") ==
        "--from: expected each of the 1 dims once after 'T', found another order");
  CHECK(error_of("2x2", "8,8", "{devices=[2,2]<=[8]}") ==
        "--from: expected sizes of 4 devices after '<=', found 8");
  CHECK(error_of("2", "8", "SingleDeviceSharding(device=CpuDevice(id=0))") ==
        "--from: expected a sharding over the mesh, found a single device");
  // 10 in 4 tiles: 3, 3, 3, 1; in halves of halves: 3, 2, 3, 2.
  CHECK(error_of("2x2", "10", "{devices=[4]<=[4]}") ==
        "--from: expected the length of dim 0 to be divisible by its 4 tiles, found 10: tile 1 is "
        "3..6 in XLA, 3..5 if 2 axes cut in turn");
  CHECK(read("4", "10", "{devices=[4]<=[4]}") == "S(0)");
  CHECK(error_of("a=2,b=2", "10", "P(('a', 'b'))").starts_with("--from: expected the length"));
}

TEST_CASE("shardings of Shardy") {
  const std::string mesh = "x=2,y=4";
  CHECK(read(mesh, "8,8", "#sdy.sharding<@mesh, [{\"x\"}, {}]>") == "S(0)R");
  CHECK(read(mesh, "8,8", "sdy.sharding = #sdy.sharding<@mesh_0, [{}, {\"y\", \"x\"}]>") ==
        "S(1)[1]S(1)[0]");
  CHECK(read(mesh, "8,8", "#sdy.sharding<@mesh, [{\"x\", ?}, {?}p1], replicated={\"y\"}>") ==
        "S(0)R");
  CHECK(read(mesh, "8,8", "#sdy.sharding<@mesh, [{}, {}], unreduced={\"x\"}>") == "P(sum)R");
  CHECK(read(mesh, "", "#sdy.sharding<@mesh, []>") == "RR");
  CHECK(read(mesh, "8", "#sdy.sharding<@mesh, [{\"y\":(1)4}]>") == "RS(0)");
  CHECK(read("2x4", "8,8", "#sdy.sharding<mesh<[\"x\"=2, \"y\"=4]>, [{\"y\"}, {}]>") == "RS(0)");
  CHECK(error_of(mesh, "8", "#sdy.sharding<@mesh, [{\"y\":(1)2}]>") ==
        "--from: expected whole axes of the mesh, found a part of 2 of the axis y=4; use a mesh "
        "with this axis split into several");
  CHECK(error_of(mesh, "8", "#sdy.sharding<@mesh, [{\"x\"}, {}]>") ==
        "--from: expected a sharding of 1 dim, the dims of the shape, found one of 2 dims");
  CHECK(error_of(mesh, "8", "#sdy.sharding<@mesh, [{\"z\"}]>") ==
        "--from: expected an axis of the mesh x=2,y=4, found 'z'");
  CHECK(error_of(mesh, "8,8", "#sdy.sharding<@mesh, [{\"x\"}, {\"x\"}]>") ==
        "--from: expected every axis at most once, found 'x'");
  CHECK(error_of("2x4", "8", "#sdy.sharding<@mesh, [{\"x\"}]>") ==
        "--from: expected a mesh with axis names, such as dp=2,tp=2, found 'x'");
  CHECK(error_of(mesh, "8", "#sdy.sharding<mesh<[\"x\"=4, \"y\"=2]>, [{\"x\"}]>") ==
        "--from: expected the mesh x=2,y=4 of ranks 0-7, found x=4,y=2 of ranks 0-7");
}

TEST_CASE("shardings of JAX with their mesh") {
  const std::string mesh = "x=2,y=4";
  for (const char* named :
       {"NamedSharding(mesh=Mesh('x': 2, 'y': 4), spec=PartitionSpec('x', None))",
        "NamedSharding(mesh={'x': 2, 'y': 4}, spec=PartitionSpec('x',), memory_kind=device)",
        "NamedSharding(mesh=Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto)), spec=P('x'), "
        "memory_kind=unpinned_host)",
        "NamedSharding(mesh=Mesh(device_ids=array([[0, 1, 2, 3],\n       [4, 5, 6, 7]]), "
        "axis_names=('x', 'y'), axis_types=(Auto, Auto)), spec=PartitionSpec('x', None), "
        "memory_kind=device)",
        "NamedSharding(mesh, P('x', None))"}) {
    CAPTURE(named);
    CHECK(read(mesh, "8,8", named) == "S(0)R");
  }
  CHECK(read("2x4", "8,8", "NamedSharding(mesh=Mesh('x': 2, 'y': 4), spec=PartitionSpec('y'))") ==
        "RS(0)");
  CHECK(read(mesh, "8,8", "P(None, 'y', unreduced={'x'})") == "P(sum)S(1)");
  CHECK(error_of("x=4,y=2", "8", "NamedSharding(mesh=Mesh('x': 2, 'y': 4), spec=P('x'))") ==
        "--from: expected the mesh x=4,y=2 of ranks 0-7, found x=2,y=4 of ranks 0-7");
  CHECK(error_of(mesh, "8", "NamedSharding(mesh=Mesh('x': 2, 'y': 4))") ==
        "--from: expected spec=PartitionSpec(...) in NamedSharding(...), found ')'");
  // P() cuts nothing; in PyTorch's words it might be Partial().
  CHECK(read(mesh, "8,8", "P()") == "RR");
  CHECK(read("2x4", "8,8", "P()") == "RR");
  CHECK(error_of("8", "8,8", "P()") ==
        "--from: expected R (JAX's P(), which shards no dim) or P(sum) (PyTorch's Partial()), "
        "found 'P()'");
}

TEST_CASE("placements and meshes as a DTensor prints them") {
  for (const char* printed :
       {"placements=(Shard(dim=0), Replicate())", "placements=[Shard(0), Replicate()]",
        "placements=(Shard(dim=0), Replicate()),",
        "DTensor(local_tensor=tensor([[1., 2.],\n        [3., 4.]]), "
        "device_mesh=DeviceMesh((x=2, y=4), 'cpu', stride=(4, 1)), placements=(Shard(dim=0), "
        "Replicate()))",
        "Spec(f32[8, 8](S(0)R))"}) {
    CAPTURE(printed);
    CHECK(read("2x4", "8,8", printed) == "S(0)R");
  }
  CHECK(read("2x4", "8,8",
             "(_MaskPartial(reduce_op=sum, offset_shape=torch.Size([8, 8]), "
             "offset_dim=0), Shard(dim=1))") == "P(sum)S(1)");
  CHECK(read("2x4", "8,8", "MaskP(sum, (8, 8), 0)R") == "P(sum)R");
  CHECK(read("2x4", "8,8", "(_NormPartial(2), Replicate())") == "P(sum)R");
  CHECK(read("2x4", "8,8", "_NormP(2)S(0)") == "P(sum)S(0)");
  CHECK(error_of("2", "8", "_MaskPartial(reduce_op=max, offset_shape=None, offset_dim=0)") ==
        "--from: expected a mask with reduction sum, found 'max'");
  CHECK(error_of("2", "8", "_MaskPartial(") == "--from: expected (...), found '('");

  auto mesh = [](const char* text) {
    Mesh found = parse_mesh(text);
    return shape_text(found) + " of " + ranks_text(found.ranks());
  };
  CHECK(mesh("DeviceMesh('cuda', tensor([[0, 1], [2, 3]]), mesh_dim_names=('dp', 'tp'))") ==
        "dp=2,tp=2 of 0-3");
  CHECK(mesh("DeviceMesh(device_type=cuda, mesh=tensor([[0, 2],\n        [1, 3]], "
             "dtype=torch.int32))") == "2x2 of 0,2,1,3");
  CHECK(mesh("device_mesh=DeviceMesh('cpu', [0, 1, 2, 3])") == "4 of 0-3");
  CHECK(mesh("DeviceMesh:([[0, 1], [2, 3]])") == "2x2 of 0-3");
  CHECK(mesh("init_device_mesh('cuda', (2, 4), mesh_dim_names=('dp', 'tp'))") ==
        "dp=2,tp=4 of 0-7");
  CHECK(mesh("DTensor(local_tensor=tensor([1.]), device_mesh=DeviceMesh((dp=2), 'cpu', "
             "stride=(1,)), placements=(Shard(dim=0),))") == "dp=2 of 0-1");
  CHECK(mesh("Mesh('x': 2, 'y': 4)") == "x=2,y=4 of 0-7");
  CHECK(mesh("Mesh(device_ids=array([[0, 2], [1, 3]]), axis_names=('x', 'y'))") ==
        "x=2,y=2 of 0,2,1,3");
  CHECK(mesh("sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>") == "x=2,y=4 of 0-7");
  CHECK(mesh("{'x': 2, 'y': 4}") == "x=2,y=4 of 0-7");
  for (const char* wrong : {"Mesh('x': 2", "Mesh(2, 4)", "mesh<[\"x\"=2>", "{'x': 0}", "Mesh()",
                            "DeviceMesh('cuda', tensor([[0, 1], [2, 3])", "tensor([0, 1])"})
    CHECK_THROWS_AS(parse_mesh(wrong), InputError);
}

}  // namespace reshard::test
