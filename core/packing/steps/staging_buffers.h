// SPDX-License-Identifier: BSD-3-Clause
// Temporaries of a plan for data in transit at ranks that do not need it. There is one for each
// tensor (or tensors of a series that are sent as one box), stage that fills it, chunk and shape of
// box, on every rank as long as needed, so that it can be released once what the stage brought of
// the chunk has been forwarded.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

class StagingBuffers {
 public:
  explicit StagingBuffers(Plan& plan) : plan_(plan) {}

  struct StagedBox {
    BufferId buffer;
    DimVector lo;
  };
  // Reserves room for a box of a tensor, or of a series from tensor `first` on. Boxes of one
  // tensor, stage and chunk that differ only along `dim` are placed one after the other along it.
  StagedBox take(TensorId tensor, std::int64_t first, Slot slot, std::int32_t stage,
                 std::int32_t chunk, int dim, const DimVector& extents);

 private:
  using Form = std::vector<std::int64_t>;  // as take()'s, and the extents of other dims
  Plan& plan_;
  std::map<Form, BufferId> buffers_;
};

}  // namespace reshard
