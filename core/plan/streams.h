// SPDX-License-Identifier: BSD-3-Clause
// Puts a plan's steps on streams (plan.h).
//
// NCCL runs the operations of one communicator in turn, so steps only overlap on streams that have
// communicators of their own. Each communicator takes some hundred megabytes of every GPU and up to
// 32 of its multiprocessors while it is at work, so there are few streams. Copies, fills and folds
// take no time in the model: they only hold up a stream by what they wait for.
#pragma once

#include "core/plan/plan.h"

namespace reshard {

// Puts every step on the stream of a step that it waits for, if it waits for nothing else there;
// else on any on which it would wait for nothing; else on a new one. If all are in use, it has to
// wait for others, on the stream that has been idle for longest. Throws InputError where
// StepOrder does. Returns whether any step has changed its stream.
bool assign_streams(Plan& plan);

}  // namespace reshard
