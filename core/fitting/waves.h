// SPDX-License-Identifier: BSD-3-Clause
// Plans with exchanges that run in waves, so that less memory is in use at a time: only the
// messages of one wave are packed, and a source can be freed once the waves that read it are done.
//
// A wave carries the same share of every message, so that all links stay busy in all waves. If the
// plan frees sources, it carries the same share of what every rank sends, in the order of tensors,
// so that tensors are done one after another.
#pragma once

#include <cstdint>
#include <functional>

#include "core/plan/plan.h"

namespace reshard {

// Makes every rank run its steps in listed order. Does not change the values.
void run_in_turn(Plan& plan);

// The most waves that in_waves cuts a step into: more would be too many messages.
std::int32_t most_waves(const Plan& plan);

// The same plan with exchange s cut into waves[s] parts, each at most most_waves(plan) (other steps
// have 1), and its steps in turn. Messages that are a small part of what their ranks send and
// receive are cut into fewer, so that all waves carry about as much, within nodes and between them.
// If the plan frees sources, local copies are spread over the waves, too.
// `node_of` may be unset.
using NodeOf = std::function<std::int32_t(Rank rank)>;
Plan in_waves(const Plan& plan, const IndexVector<StepId, std::int32_t>& waves,
              const NodeOf& node_of);

// The same with about `waves` waves in total, each exchange in proportion to its bytes.
Plan in_even_waves(const Plan& plan, std::int64_t waves, const NodeOf& node_of);

}  // namespace reshard
