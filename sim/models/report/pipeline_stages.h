// SPDX-License-Identifier: BSD-3-Clause
// The pipeline stages of a transfer, recognised in its requests: layers that the same ranks have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout/request.h"

namespace reshard::sim {

// The number that follows "layers." in a name; -1 if there is none.
int layer_in(std::string_view name);

struct PipelineStage {
  std::vector<Rank> from, to;             // ascending
  int first_layer = -1, last_layer = -1;  // -1: it has no layers
  std::vector<std::size_t> tensors = {};  // indices of requests, ascending

  std::string layers_text() const;  // "0-7", "3", "-"
};

// Ascending by the lowest source rank. Layers are in one stage if they have the same source ranks
// and, unless `by_source`, the same destination ranks. A tensor that is in no layer belongs to the
// first stage with all of its ranks, or makes a stage of its own if there is none.
std::vector<PipelineStage> pipeline_stages(const std::vector<const Request*>& requests,
                                           bool by_source);

}  // namespace reshard::sim
