// SPDX-License-Identifier: BSD-3-Clause
// Operations as launches on one device, whichever ranks' buffers lie there: nothing is packed.
#pragma once

#include <functional>
#include <vector>

#include "backends/device/launch_tables.h"
#include "core/schedule/lowering.h"

namespace reshard::backends {

// Where operations find their buffers; memory need not be there yet.
class DeviceBuffers {
 public:
  virtual ~DeviceBuffers() = default;
  // The beginning of the buffer on that rank, its shape there, and its dtype.
  virtual std::byte* data(BufferId buffer, Slot slot) const = 0;
  virtual Shape shape(BufferId buffer, Slot slot) const = 0;
  virtual DType dtype(BufferId buffer) const = 0;
};

// Adds the launches of what `run` hands out, which is asked twice; they run one after the other.
// All folds have one operator and one divisor.
std::vector<LaunchTables::Id> add_operations(const std::function<void(Operations&)>& run,
                                             const DeviceBuffers& buffers, LaunchTables& tables);

}  // namespace reshard::backends
