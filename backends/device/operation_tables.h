// SPDX-License-Identifier: BSD-3-Clause
// Turns operations into kernel launches on one device, straight between buffers: nothing is packed.
// The buffers may belong to any number of ranks.
#pragma once

#include <functional>
#include <vector>

#include "backends/device/launch_tables.h"
#include "core/schedule/lowering.h"

namespace reshard::backends {

// Where operations find their buffers; the memory need not be allocated yet.
class DeviceBuffers {
 public:
  virtual ~DeviceBuffers() = default;
  // The start of the buffer on that rank, its shape there, and its dtype.
  virtual std::byte* data(BufferId buffer, Slot slot) const = 0;
  virtual Shape shape(BufferId buffer, Slot slot) const = 0;
  virtual DType dtype(BufferId buffer) const = 0;
};

// Adds the launches for the operations that `run` emits; `run` is called twice. The launches must
// run one after the other. All folds must have the same operator and the same divisor.
std::vector<LaunchTables::Id> add_operations(const std::function<void(Operations&)>& run,
                                             const DeviceBuffers& buffers, LaunchTables& tables);

}  // namespace reshard::backends
