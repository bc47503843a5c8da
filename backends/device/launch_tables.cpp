// SPDX-License-Identifier: BSD-3-Clause
#include "backends/device/launch_tables.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/base/errors.h"
#include "core/base/integers.h"

namespace reshard::backends {
namespace {

constexpr std::size_t kAlignment = 64;  // of every table in the image

template <class Tiles, class Units>
int lanes_of(const Tiles& tiles, std::int64_t tile_bytes, Units&& units_of) {
  std::int64_t all = 0, most = 0;
  for (const auto& tile : tiles) {
    all += units_of(tile);
    most = std::max(most, units_of(tile));
  }
  return lanes_for(ceil_div(all, static_cast<std::int64_t>(tiles.size())), most, tile_bytes);
}

// Rows shorter than this share the GPU's cache lines and sectors with rows of other boxes.
constexpr std::int64_t kShortRowBytes = 512;

// If rows are short, orders tiles by address in the array whose rows are further apart: tiles that
// touch parts of the same lines then run close together, and find them in the cache.
std::vector<CopyTile> in_order(std::vector<CopyTile> tiles, int unit_bytes) {
  std::int64_t rows = 0, units = 0;
  for (const CopyTile& tile : tiles) {
    rows += tile.rows;
    units += std::int64_t{tile.rows} * tile.units;
  }
  if (units * unit_bytes >= rows * kShortRowBytes) return tiles;
  auto place = [](const CopyTile& tile) {
    return tile.source_pitch >= tile.destination_pitch ? tile.source : tile.destination;
  };
  std::stable_sort(tiles.begin(), tiles.end(), [&](const CopyTile& a, const CopyTile& b) {
    return std::less<>()(place(a), place(b));
  });
  return tiles;
}

}  // namespace

template <class Row>
std::int64_t LaunchTables::put(const Row* rows, std::size_t count) {
  image_.resize((image_.size() + kAlignment - 1) / kAlignment * kAlignment);
  std::size_t at = image_.size();
  image_.resize(at + count * sizeof(Row));
  if (count > 0) std::memcpy(image_.data() + at, rows, count * sizeof(Row));
  return static_cast<std::int64_t>(at);
}

LaunchTables::Id LaunchTables::add(const CopyTiles& tiles) {
  RESHARD_CHECK(memory_.data() == nullptr, "a table is added after the upload");
  std::vector<Placed>& placed = launches_.emplace_back();
  for (std::size_t g = 0; g < CopyTiles::kUnits; ++g) {
    if (tiles.group(g).empty()) continue;
    std::vector<CopyTile> group = in_order(tiles.group(g), 1 << g);
    int lanes = lanes_of(group, tiles.tile_bytes(),
                         [](const CopyTile& tile) { return std::int64_t{tile.rows} * tile.units; });
    placed.push_back({CopyLaunch{nullptr, static_cast<std::int64_t>(group.size()), 1 << g, lanes},
                      put(group.data(), group.size())});
  }
  return launches_.size() - 1;
}

LaunchTables::Id LaunchTables::add(const FoldTiles& tiles, ReduceOp op, DType dtype,
                                   std::int64_t divisor) {
  RESHARD_CHECK(memory_.data() == nullptr, "a table is added after the upload");
  launches_.emplace_back();
  std::int64_t operands_at = put(tiles.operands().data(), tiles.operands().size());
  FoldLaunch launch{nullptr, 0, 0, 0, op, dtype, divisor};
  add_group(tiles.wide(), tiles, operands_at, 16, launch);
  add_group(tiles.narrow(), tiles, operands_at, static_cast<int>(tiles.element_bytes()), launch);
  return launches_.size() - 1;
}

void LaunchTables::add_group(const std::vector<FoldTiles::Tile>& tiles, const FoldTiles& all,
                             std::int64_t operands_at, int unit_bytes, FoldLaunch launch) {
  if (tiles.empty()) return;
  std::vector<FoldTile> rows;
  rows.reserve(tiles.size());
  for (const FoldTiles::Tile& tile : tiles) rows.push_back(tile.tile);
  std::int64_t at = put(rows.data(), rows.size());
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    std::int64_t pointer =
        at + static_cast<std::int64_t>(i * sizeof(FoldTile) + offsetof(FoldTile, operands));
    std::int64_t offset =
        operands_at + static_cast<std::int64_t>(tiles[i].first_operand * sizeof(FoldOperand));
    std::memcpy(image_.data() + pointer, &offset, sizeof offset);
    operand_pointers_.push_back(pointer);
  }
  launch.count = static_cast<std::int64_t>(rows.size());
  launch.unit_bytes = unit_bytes;
  launch.lanes = lanes_of(rows, all.tile_bytes(), [&](const FoldTile& tile) {
    return std::int64_t{tile.rows} * tile.count * all.element_bytes() / unit_bytes;
  });
  launches_.back().push_back({launch, at});
}

void LaunchTables::upload(Device& device, Stream stream) {
  if (image_.empty()) return;
  memory_ = DeviceMemory(device, bytes());
  for (std::int64_t at : operand_pointers_) {
    std::int64_t offset = 0;
    std::memcpy(&offset, image_.data() + at, sizeof offset);
    const std::byte* pointer = memory_.data() + offset;
    std::memcpy(image_.data() + at, &pointer, sizeof pointer);
  }
  for (std::vector<Placed>& all : launches_)
    for (Placed& placed : all) {
      const std::byte* tiles = memory_.data() + placed.tiles_at;
      if (auto* copy = std::get_if<CopyLaunch>(&placed.launch))
        copy->tiles = reinterpret_cast<const CopyTile*>(tiles);
      else
        std::get<FoldLaunch>(placed.launch).tiles = reinterpret_cast<const FoldTile*>(tiles);
    }
  device.upload(memory_.data(), image_, stream);
}

void LaunchTables::launch(Id id, Device& device, Stream stream) const {
  for (const Placed& placed : launches_[id])
    if (const auto* copy = std::get_if<CopyLaunch>(&placed.launch))
      device.copy(*copy, stream);
    else
      device.fold(std::get<FoldLaunch>(placed.launch), stream);
}

}  // namespace reshard::backends
