// SPDX-License-Identifier: BSD-3-Clause
// How the links of a topology are drawn: width by capacity, colour by kind or by load.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/picture/palette.h"
#include "sim/picture/pictures.h"
#include "sim/picture/topology/node_links.h"

namespace reshard::sim {

class LinkInk {
 public:
  LinkInk(const Topology& topology, const NodeLinks& links, const LinkLoads& loads);

  bool by_load() const { return !loads_.uses.empty(); }
  // Used share of the capacity, in thousandths.
  std::int64_t used(ResourceId link) const;
  double width(ResourceId link) const;  // 2 to 8 pixels
  // None for a link that carried nothing.
  std::optional<Shade> colour(ResourceId link, PathClass path_class) const;
  // "node0.gpu2.nic.out: 50 GB/s, carried 1.000 MiB, 12.5 % of what it can".
  std::string tip(ResourceId link) const;

  // Legend: what widths and colours mean.
  struct Sample {
    std::string label;
    double width;
    Shade colour;
  };
  std::vector<Sample> samples() const;

 private:
  const Topology& topology_;
  const NodeLinks& links_;
  const LinkLoads loads_;
  std::int64_t widest_ = 1;  // bytes per second
};

}  // namespace reshard::sim
