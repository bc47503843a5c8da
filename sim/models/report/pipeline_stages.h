// SPDX-License-Identifier: BSD-3-Clause
// The pipeline stages of a transfer, as its requests show them: layers that the same ranks have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout/request.h"

namespace reshard::sim {

// The number behind "layers." in a name; -1 if there is none.
int layer_in(std::string_view name);

struct PipelineStage {
  std::vector<Rank> from, to;             // ascending
  int first_layer = -1, last_layer = -1;  // -1: it has no layers
  std::vector<std::size_t> tensors = {};  // indices, ascending

  std::string layers_text() const;  // "0-7", "3", "-"
};

// By the lowest rank of the source. Layers are of one stage if the same ranks have some of them
// before, and, unless `by_source`, afterwards. Tensors without a layer go to the first stage whose
// ranks include theirs, else they are one of their own.
std::vector<PipelineStage> pipeline_stages(const std::vector<const Request*>& requests,
                                           bool by_source);

}  // namespace reshard::sim
