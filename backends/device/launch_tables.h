// SPDX-License-Identifier: BSD-3-Clause
// All tables of tiles that a prepared plan launches, in one allocation of device memory: uploaded
// once, launched any number of times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "backends/device/owners.h"
#include "backends/device/tables.h"

namespace reshard::backends {

class LaunchTables {
 public:
  using Id = std::size_t;

  Id add(const CopyTiles& tiles);
  // can_fold(op, dtype, divisor) must hold.
  Id add(const FoldTiles& tiles, ReduceOp op, DType dtype, std::int64_t divisor);

  // The device memory that upload allocates.
  std::int64_t bytes() const { return static_cast<std::int64_t>(image_.size()); }
  // Call after the last add. This object must stay alive until the stream has passed the upload.
  void upload(Device& device, Stream stream);
  // Launches nothing if the table has no tiles.
  void launch(Id id, Device& device, Stream stream) const;
  void abandon() { memory_.abandon(); }

 private:
  template <class Row>
  std::int64_t put(const Row* rows, std::size_t count);
  void add_group(const std::vector<FoldTiles::Tile>& tiles, const FoldTiles& all,
                 std::int64_t operands_at, int unit_bytes, FoldLaunch launch);

  using KernelLaunch = std::variant<CopyLaunch, FoldLaunch>;
  struct Placed {
    KernelLaunch launch;    // its tiles are set by upload
    std::int64_t tiles_at;  // bytes from the beginning of the image
  };
  std::vector<std::vector<Placed>> launches_;  // by Id
  std::vector<std::byte> image_;
  // Positions in the image of offsets that upload turns into pointers.
  std::vector<std::int64_t> operand_pointers_;
  DeviceMemory memory_;
};

}  // namespace reshard::backends
