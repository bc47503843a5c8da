// SPDX-License-Identifier: BSD-3-Clause
// A model's transfer and its order in time, and variants of both:
// "stages=in-turn,at-once buckets=1GiB memory=4GiB tp=8,16".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout/request.h"
#include "core/layout/stages.h"
#include "sim/models/transfer.h"

namespace reshard::sim {

struct WhatIf {
  std::string name;  // of the one thing that is changed, "tp=16"
  ModelTransfer transfer;
  bool is_in_turn = false;                       // one stage of the source after another
  std::int64_t bucket_bytes = 0;                 // if not 0, so many bytes of tensors after another
  std::optional<std::int64_t> extra_bytes = {};  // of memory beyond both sides
};

// A variant for each value. A word that is none of stages, buckets and memory is one of the second
// side's, or, with "from." in front, of the first's. Throws InputError naming `field`.
std::vector<WhatIf> parse_what_ifs(std::string_view text, const WhatIf& base,
                                   std::string_view field);

// The order of the tensors that a variant has; empty for all at once.
Stages stages_of(const WhatIf& variant, const std::vector<Request>& requests);

}  // namespace reshard::sim
