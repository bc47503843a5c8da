// SPDX-License-Identifier: BSD-3-Clause
// Reads the placement manifests of Mooncake (mooncake-reshard), as `weight_placement_to_json`
// writes them: which box of which tensor each participant has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/models/files/foreign_layouts.h"

namespace reshard::sim {

// `side` is "from" or "to". Participants become the ranks from `first_rank` on, in the order of the
// topology; each fragment becomes a buffer. `place` names the text in messages. Throws InputError
// for missing or unknown fields, and for what the format forbids: participants without a part,
// fragments outside their tensor, and tensors with elements that a replica or an owner lacks or has
// twice. Ids, which are digests, are not checked, nor is that the boxes are those which the axes
// imply.
ForeignLayouts parse_placement(std::string_view text, const std::string& place,
                               std::string_view side, std::int64_t first_rank);
// The same, from a file.
ForeignLayouts read_placement(const std::string& path, std::string_view side,
                              std::int64_t first_rank);

}  // namespace reshard::sim
