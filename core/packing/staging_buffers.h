// SPDX-License-Identifier: BSD-3-Clause
// Room for what waits on its way at a rank that does not need it itself: temporaries of a plan. One
// for each stage that fills it, chunk and form of box, on every rank as long as it needs, so that
// they are given back when what the stage brought of the chunk has gone on.
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
  // Room for a box. Those of a stage and chunk that are alike but along `dim` lie one behind the
  // other there.
  StagedBox take(Slot slot, std::int32_t stage, std::int32_t chunk, int dim,
                 const DimVector& extents);

 private:
  using Form = std::vector<std::int64_t>;  // stage, chunk, dim, extents of the other dims
  Plan& plan_;
  std::map<Form, BufferId> buffers_;
};

}  // namespace reshard
