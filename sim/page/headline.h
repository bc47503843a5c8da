// SPDX-License-Identifier: BSD-3-Clause
// The top of a page: what was asked, what came out in a few figures, and what the time waits for.
#pragma once

#include <string>
#include <vector>

#include "sim/picture/markup.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

// One large number: "time", "671.089 us", "1.04 times the bound".
struct Figure {
  std::string name, value, note = {};
};
void draw_figures(Node parent, const std::vector<Figure>& figures);

// Names and values in two columns.
struct Fact {
  std::string name, value;
};
void draw_facts(Node parent, const std::vector<Fact>& facts);

// What the time of a run is waited for, as parts of one bar; nothing where no time passes.
void draw_causes(Node parent, const PathFacts& path);

}  // namespace reshard::sim
