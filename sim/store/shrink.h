// SPDX-License-Identifier: BSD-3-Clause
// The same request on a smaller tensor, for moving bytes within a budget.
//
// Dims are halved one at a time. First those that stay divisible by all that cuts them on both
// sides, the one with the longest pieces before the others, so that all local sizes shrink in
// proportion; then uneven ones, rounded up, as long as every shard that was empty stays empty and
// no other becomes so; only when none of these is left, any dim longer than 1.
#pragma once

#include <cstdint>
#include <optional>

#include "core/layout/request.h"

namespace reshard::sim {

// One halving more, or nothing where every dim is 0 or 1.
std::optional<Request> halved(const Request& request);

// Halved until the tensor is at most 1/2^halvings of its size, rounded up, or can shrink no more.
// halvings 0 .. 62.
Request shrunk(const Request& request, int halvings);

}  // namespace reshard::sim
