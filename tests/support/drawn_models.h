// SPDX-License-Identifier: BSD-3-Clause
// Small models in the buffers of both sides of a transfer, drawn, with the copies that move them;
// and what lies where by the number of every element.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/judge/judge.h"
#include "core/stored/stored.h"
#include "tests/support/prng.h"

namespace reshard::test {

struct DrawnModel {
  std::unique_ptr<ModelTensors> tensors = std::make_unique<ModelTensors>();
  std::unique_ptr<Stored> source, destination;
};
// Fused, flat, own parts with gaps, aliases, and plain placements; sources hold every tensor whole.
// Ranks are below `world`; with 12 the sides have ranks of their own.
DrawnModel draw_model(Prng& prng, int world = 12);
// Every buffer has its tensors' dtype.
DrawnModel draw_unconverted_model(Prng& prng);

// By buffer, the number of every element: that of the tensor's first element plus the row-major
// index; -1: padding.
using ElementNumbers = std::vector<std::vector<std::int64_t>>;
ElementNumbers element_numbers(const Stored& side);

struct DrawnCopy {
  CopyEnd from, to;
};
// Right copies, their ends written in every way.
std::vector<DrawnCopy> right_copies(const DrawnModel& model, Prng& prng);

// Breaks one copy, leaves one out, or does one twice. The result can still be right.
void break_copies(const DrawnModel& model, std::vector<DrawnCopy>& copies, Prng& prng);

}  // namespace reshard::test
