// SPDX-License-Identifier: BSD-3-Clause
// Processes that fail together: a process among many must say to the others what main says for a
// single one.
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

// A process that stops while others wait for it would leave them hanging, and a wrong option would
// be reported once per process. So work that may fail without the others is done in a phase: at its
// end every process says how it went, and where one failed all stop, with its exit code and one
// message. Where the others are inside a call that waits (a run), there is no such end: there the
// process says its reason itself and ends all.

// What a phase comes to: any text that must be the same on every process.
using Phase = std::function<std::string()>;

// Runs the phase on every process. Where it throws on some, or comes to different results, throws
// Stopped on all. `result_name` says what differs: "the plan". With a single process
// exceptions pass as they are.
void together(Processes& processes, std::string_view result_name, const Phase& phase);

// Runs what waits for other processes. A process where it throws says why, with its rank, and ends
// all; with a single process exceptions pass as they are.
void waiting_for_others(Processes& processes, const std::function<void()>& work);

// ---- before there is a backend -----------------------------------------------------------------

// The backend that a command line of `validate` asks for; null: none, or one that does not exist.
const backends::BackendRow* backend_of(int argc, char** argv);
// This process among those that were launched for the backend, as the launcher's variables say. It
// is alone without a launcher, on a backend in one process, and on none (null).
backends::launch::LaunchedProcess launch_of(const backends::BackendRow* backend);
// All processes of the launch meet and stop, and the first says why. A process that cannot meet the
// others speaks for itself. Throws Stopped.
[[noreturn]] void fail_together(const backends::BackendRow* backend, const std::exception_ptr& why);

}  // namespace reshard::tools
