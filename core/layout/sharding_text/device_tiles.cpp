// SPDX-License-Identifier: BSD-3-Clause
// Tiles are numbered in row-major order, each with its device; after the tensor's dims there can be
// more tile dims, along which devices hold the same. Placements follow from the first step along
// each mesh axis: it changes the tile index of one dim by the number of tiles of the axes nested in
// it, or the axis cuts nothing. The result is then compared with the text for every rank.
#include "core/layout/sharding_text/device_tiles.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/layout/sharding_text/axis_cuts.h"

namespace reshard {
namespace {

class TileReader {
 public:
  TileReader(Cursor& cursor, const Mesh& mesh, const Shape& shape)
      : cursor_(cursor), mesh_(mesh), cuts_(mesh, shape, cursor.field()) {}

  PlacementList read() {
    cursor_.expect("{");
    cursor_.skip_spaces();
    if (cursor_.peek() == '{')
      refuse("the sharding of one tensor", "a tuple; pass one sharding at a time");
    if (cursor_.accept("replicated"))
      finish();
    else if (cursor_.accept("unreduced"))
      add_up();
    else if (cursor_.accept("maximal"))
      refuse("a sharding over the mesh", "maximal: one device holds everything");
    else if (cursor_.accept("manual"))
      refuse("a sharding that states what each device holds", "manual");
    else if (cursor_.accept("unknown"))
      refuse("a sharding that states what each device holds", "unknown");
    else
      read_tiles();
    return cuts_.take();
  }

 private:
  [[noreturn]] void refuse(std::string_view expected, const std::string& found) const {
    throw InputError(fmt::format("{}: expected {}, found {}", cursor_.field(), expected, found));
  }

  // Skips attributes that do not affect the layout, then expects the end.
  void finish() {
    for (cursor_.skip_spaces(); cursor_.peek() != '}'; cursor_.skip_spaces()) {
      if (!cursor_.accept("metadata={")) cursor_.fail("'}' after the sharding of one tensor");
      std::size_t end = cursor_.rest().find('}');
      if (end == std::string_view::npos) cursor_.fail("metadata={...}");
      cursor_.expect(cursor_.rest().substr(0, end + 1));
    }
    cursor_.expect("}");
    cursor_.skip_spaces();
    cursor_.expect_end();
  }

  void add_up() {
    finish();
    for (int axis = 0; axis < mesh_.axes(); ++axis) cuts_.add_up(axis);
  }

  // "[2,1,4]".
  std::vector<std::int64_t> list(std::string_view open, std::string_view close) {
    cursor_.expect(open);
    std::vector<std::int64_t> out;
    do {
      cursor_.skip_spaces();
      if (out.size() == 2 * kMaxDims) cursor_.fail("at most 16 numbers");
      out.push_back(cursor_.integer("a number of tiles", 0, kMaxRanks));
      cursor_.skip_spaces();
    } while (cursor_.accept(","));
    cursor_.expect(close);
    return out;
  }
  static std::int64_t product(const std::vector<std::int64_t>& of) {
    std::int64_t out = 1;
    for (std::int64_t factor : of)
      out = factor > 0 ? std::min(out, kMaxBytes / factor) * factor : 0;
    return out;
  }

  void read_tiles() {
    if (!cursor_.accept("devices="))
      cursor_.fail("{devices=[..]<=[..]}, {devices=[..]0,1,..} or {replicated}");
    tiles_ = list("[", "]");
    if (product(tiles_) != mesh_.size())
      refuse(fmt::format("a tile for each of the {} ranks of the mesh {}", mesh_.size(),
                         shape_text(mesh_)),
             std::to_string(product(tiles_)));
    std::vector<std::int64_t> devices = cursor_.accept("<=") ? counted_devices() : listed_devices();
    cursor_.skip_spaces();
    if (cursor_.accept("last_tile_dim_replicate"))
      require_or_same();
    else
      cuts_.require_dims(static_cast<int>(tiles_.size() - std::min(read_same(), tiles_.size())));
    finish();
    place(devices);
    follow_axes();
  }

  // "[4,2]T(1,0)": the devices 0, 1, .. as an array of these sizes, with its dims in this order.
  std::vector<std::int64_t> counted_devices() {
    std::vector<std::int64_t> sizes = list("[", "]"), order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    if (product(sizes) != mesh_.size())
      refuse(fmt::format("sizes of {} devices after '<='", mesh_.size()),
             std::to_string(product(sizes)));
    if (cursor_.accept("T")) {
      std::vector<std::int64_t> given = list("(", ")"), sorted = given;
      std::sort(sorted.begin(), sorted.end());
      if (sorted != order)
        refuse(fmt::format("each of the {} dims once after 'T'", sizes.size()), "another order");
      order = given;
    }
    std::vector<std::int64_t> stride(sizes.size(), 1), out;
    for (std::size_t i = sizes.size() - 1; i > 0; --i) stride[i - 1] = stride[i] * sizes[i];
    for (std::int64_t at = 0; at < mesh_.size(); ++at) {
      std::int64_t rest = at, device = 0;
      for (std::size_t i = order.size(); i-- > 0;) {
        device += rest % sizes[to_index(order[i])] * stride[to_index(order[i])];
        rest /= sizes[to_index(order[i])];
      }
      out.push_back(device);
    }
    return out;
  }

  // "0,2,1,3".
  std::vector<std::int64_t> listed_devices() {
    std::vector<std::int64_t> out;
    std::vector<bool> seen(to_index(mesh_.size()), false);
    do {
      cursor_.skip_spaces();
      if (out.size() == seen.size())
        cursor_.fail(fmt::format("only {}, one for each tile", counted(mesh_.size(), "device")));
      std::int64_t device = cursor_.integer("a device", 0, mesh_.size() - 1);
      if (seen[to_index(device)]) refuse("each device once", std::to_string(device) + " twice");
      seen[to_index(device)] = true;
      out.push_back(device);
    } while (cursor_.accept(","));
    if (out.size() != seen.size())
      refuse(counted(mesh_.size(), "device") + ", one for each tile", std::to_string(out.size()));
    return out;
  }

  // XLA's warnings print shardings with several tile dims after the tensor's, and with none;
  // devices along such dims hold the same.
  void require_or_same() const {
    auto dims = static_cast<std::size_t>(cuts_.dims());
    if (tiles_.size() < dims) cuts_.require_dims(static_cast<int>(tiles_.size()) - 1);
  }

  // The number of trailing tile dims along which devices hold the same.
  std::size_t read_same() {
    if (!cursor_.accept("last_tile_dims={")) return 0;
    std::size_t out = 0;
    do {
      cursor_.skip_spaces();
      std::string_view word = cursor_.word();
      if (word != "replicated") refuse("only 'replicated' in last_tile_dims=", quoted(word));
      ++out;
      cursor_.skip_spaces();
    } while (cursor_.accept(","));
    cursor_.expect("}");
    return out;
  }

  // Computes the tile of each mesh position, dim by dim.
  void place(const std::vector<std::int64_t>& devices) {
    std::vector<std::int32_t> positions(to_index(mesh_.size()));
    std::iota(positions.begin(), positions.end(), 0);
    std::sort(positions.begin(), positions.end(),
              [&](std::int32_t a, std::int32_t b) { return mesh_.rank_at(a) < mesh_.rank_at(b); });
    tile_of_.resize(positions.size());
    for (std::size_t at = 0; at < devices.size(); ++at) {
      std::vector<std::int64_t>& tile = tile_of_[to_index(positions[to_index(devices[at])])];
      tile.assign(tiles_.size(), 0);
      std::int64_t rest = static_cast<std::int64_t>(at);
      for (std::size_t dim = tiles_.size(); dim-- > 0;) {
        tile[dim] = rest % tiles_[dim];
        rest /= tiles_[dim];
      }
      tile.resize(to_index(cuts_.dims()));
    }
  }

  std::string axis_text(int axis) const {
    return mesh_.names().empty() ? fmt::format("axis {}", axis)
                                 : fmt::format("axis {}", mesh_.names()[axis]);
  }
  [[noreturn]] void fail_mesh(const std::string& why) const {
    refuse(fmt::format("tiles that follow the axes of the mesh {}", shape_text(mesh_)), why);
  }

  struct Cut {
    std::int64_t step;  // change of the tile index along the axis
    int axis;
  };

  void follow_axes() {
    std::vector<std::vector<Cut>> stacks(to_index(cuts_.dims()));
    for (int axis = 0; axis < mesh_.axes(); ++axis) {
      if (mesh_.axis_size(axis) == 1) continue;
      const std::vector<std::int64_t>&here = tile_of_[0],
            &next = tile_of_[to_index(mesh_.stride(axis))];
      int cut = -1;
      for (int dim = 0; dim < cuts_.dims(); ++dim) {
        if (here[to_index(dim)] == next[to_index(dim)]) continue;
        if (cut >= 0)
          fail_mesh(fmt::format("{} of {} cutting both dim {} and dim {}", axis_text(axis),
                                mesh_.axis_size(axis), cut, dim));
        cut = dim;
        stacks[to_index(dim)].push_back({next[to_index(dim)] - here[to_index(dim)], axis});
      }
    }
    for (int dim = 0; dim < cuts_.dims(); ++dim) stack_up(dim, stacks[to_index(dim)]);
    compare(stacks);
  }

  // The outermost axis takes the longest steps.
  void stack_up(int dim, std::vector<Cut>& stack) {
    std::sort(stack.begin(), stack.end(),
              [](const Cut& a, const Cut& b) { return a.step > b.step; });
    std::int64_t step = 1;
    for (std::size_t i = stack.size(); i-- > 0;) {
      if (stack[i].step != step)
        fail_mesh(fmt::format("a step of {} tiles of dim {} along {} instead of {}", stack[i].step,
                              dim, axis_text(stack[i].axis), step));
      step *= mesh_.axis_size(stack[i].axis);
    }
    if (step != tiles_[to_index(dim)])
      fail_mesh(fmt::format("{} tiles of dim {} from axes that make {}", tiles_[to_index(dim)], dim,
                            step));
    for (std::size_t i = 0; i < stack.size(); ++i)
      cuts_.cut(stack[i].axis, dim, static_cast<int>(i));
  }

  void compare(const std::vector<std::vector<Cut>>& stacks) const {
    for (std::int32_t position = 0; position < mesh_.size(); ++position) {
      MeshCoordinate at = mesh_.coordinate(position);
      for (std::size_t dim = 0; dim < stacks.size(); ++dim) {
        std::int64_t tile = 0;
        for (const Cut& cut : stacks[dim]) tile += at[to_index(cut.axis)] * cut.step;
        if (tile != tile_of_[to_index(position)][dim])
          fail_mesh(fmt::format("tile {} of dim {} on rank {}, whose axes make it {}",
                                tile_of_[to_index(position)][dim], dim,
                                to_int(mesh_.rank_at(position)), tile));
      }
    }
  }

  Cursor& cursor_;
  const Mesh& mesh_;
  AxisCuts cuts_;
  std::vector<std::int64_t> tiles_;
  std::vector<std::vector<std::int64_t>> tile_of_;  // by position and dim
};

}  // namespace

PlacementList read_device_tiles(Cursor& cursor, const Mesh& mesh, const Shape& shape) {
  return TileReader(cursor, mesh, shape).read();
}

}  // namespace reshard
