// SPDX-License-Identifier: BSD-3-Clause
// Variants of a model's transfer and of its order in time: "stages=in-turn,at-once buckets=1GiB
// memory=4GiB tp=8,16".
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
  std::string name;  // the one thing that differs, "tp=16"
  ModelTransfer transfer;
  bool is_in_turn = false;        // the stages of the source one after another
  std::int64_t bucket_bytes = 0;  // if not 0: buckets of so many bytes of tensors one after another
  std::optional<std::int64_t> extra_bytes = {};  // limit of memory beyond both sides
};

// One variant per value. A word other than stages, buckets and memory changes the parallelism of
// the second side or, with the prefix "from.", of the first. Throws InputError naming `field`.
std::vector<WhatIf> parse_what_ifs(std::string_view text, const WhatIf& base,
                                   std::string_view field);

// The order of the tensors in a variant; empty if all move at once.
Stages stages_of(const WhatIf& variant, const std::vector<Request>& requests);

}  // namespace reshard::sim
