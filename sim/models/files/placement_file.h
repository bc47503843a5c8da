// SPDX-License-Identifier: BSD-3-Clause
// The placement manifests of Mooncake (mooncake-reshard), which `weight_placement_to_json` writes:
// which box of which tensor each participant has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/models/files/foreign_layouts.h"

namespace reshard::sim {

// `side` is "from" or "to". Participants are the ranks from `first_rank` on, in the order of the
// topology; each fragment is a buffer. `place` names the text in messages. Throws InputError for
// fields that are missing or not known, and for what the format refuses: participants without a
// part, fragments that are not in their tensor, and tensors of which a replica or an owner lacks
// elements or has some twice. Ids, which are digests, are not compared, nor is what axes split with
// the boxes.
ForeignLayouts parse_placement(std::string_view text, const std::string& place,
                               std::string_view side, std::int64_t first_rank);
// Of a file.
ForeignLayouts read_placement(const std::string& path, std::string_view side,
                              std::int64_t first_rank);

}  // namespace reshard::sim
