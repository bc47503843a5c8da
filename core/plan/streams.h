// SPDX-License-Identifier: BSD-3-Clause
// Puts a plan's steps on streams (plan.h).
//
// Where ranks talk to each other, a stream is a CUDA stream with communicators of its own: NCCL runs
// what one communicator is given in turn, so steps can only overlap on different ones. Each
// communicator takes some hundred megabytes of every GPU and up to 32 of its multiprocessors while
// it is at work, so plans are kept to a few streams. Copies, fills and folds take no time in the
// model; they only hold up a stream by what they wait for.
#pragma once

#include <cstdint>
#include <optional>

#include "core/plan/plan.h"

namespace reshard {

// The most that a planner's plan uses: as many as have room on a GPU of 132 multiprocessors at
// once.
inline constexpr std::int32_t kStreams = 4;

// Puts every step on the stream of a step that it waits for, else on any on which it would wait for
// nothing else, else on a new one. Where `most` streams are in use already, the step waits for those
// before it on one of them: `after` gets these steps. Returns whether any `after` has changed.
// Throws InputError where StepOrder does.
bool assign_streams(Plan& plan, std::int32_t most = kStreams);

// Two steps of one stream that could overlap on a rank with a part in both. None if the streams of
// the plan are as plan.h says.
struct SharedStream {
  Slot slot;
  StepId earlier, later;
};
std::optional<SharedStream> overlap_on_a_stream(const Plan& plan);

}  // namespace reshard
