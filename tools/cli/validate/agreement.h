// SPDX-License-Identifier: BSD-3-Clause
// Makes processes fail together: where a single process would let main report an error, one of many
// must inform the others.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/launch/launch.h"
#include "backends/registry/backend.h"
#include "core/plan/executor.h"
#include "tools/cli/failure.h"

namespace reshard::tools {

// A process that stops while others wait for it would leave them hanging, and each process would
// report a wrong option again. So work that can fail on one process alone is done in a phase: at
// its end every process reports how it went, and if one failed all stop, with its exit code and one
// message. While the others are inside a call that waits (a run) there is no such end: a process
// that fails then reports its reason itself and ends all.

// A phase returns any text that must be the same on every process.
using Phase = std::function<std::string()>;

// Collective. Runs the phase on every process. If it throws on some, or returns different texts,
// throws Stopped on all. `result_name` names the text in the error: "the plan". With a single
// process, exceptions pass unchanged.
void together(Processes& processes, std::string_view result_name, const Phase& phase);

// Runs work that waits for other processes. A process on which it throws reports why, with its
// rank, and ends all; with a single process, exceptions pass unchanged.
void waiting_for_others(Processes& processes, const std::function<void()>& work);

// ---- before there is a backend -----------------------------------------------------------------

// The backend that a command line of `validate` asks for; null: none, or one that does not exist.
const backends::BackendRow* backend_of(int argc, char** argv);
// This process among those that were launched for the backend, as the launcher's variables state.
// It is alone without a launcher, on a backend in one process, and on none (null).
backends::launch::LaunchedProcess launch_of(const backends::BackendRow* backend);
// All processes of the launch meet and stop, and the first reports the reason. A process that
// cannot meet the others speaks for itself. Throws Stopped.
[[noreturn]] void fail_together(const backends::BackendRow* backend, const std::exception_ptr& why);

}  // namespace reshard::tools
