// SPDX-License-Identifier: BSD-3-Clause
// The fields of a placement manifest, and what they must be each by itself.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/files/foreign_layouts.h"

namespace reshard::sim {

// Along the axes dp, tp, pp, ep and cp.
inline constexpr std::array<std::string_view, 5> kPlacementAxes{"dp", "tp", "pp", "ep", "cp"};
using PlacementCoordinates = std::array<std::int64_t, kPlacementAxes.size()>;

struct PlacementFragment {
  std::size_t participant;
  Box box;
};

struct PlacementTensor {
  ForeignTensor tensor;
  // Axes along which each rank has a copy of its own, and along which some ranks have it; by axis.
  std::array<bool, kPlacementAxes.size()> is_replicated{}, is_owned{};
  std::vector<PlacementFragment> fragments = {};
  std::vector<std::string> aliases = {};  // ascending, its own name included; empty: none
};

struct PlacementManifest {
  std::vector<PlacementCoordinates> participants;  // in the order of the topology
  std::vector<PlacementTensor> tensors;            // in the order of the file
};

// Throws InputError.
PlacementManifest parse_placement_json(std::string_view text, const std::string& place);

}  // namespace reshard::sim
