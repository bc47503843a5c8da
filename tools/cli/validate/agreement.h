// SPDX-License-Identifier: BSD-3-Clause
// Makes processes fail together: where a single process would let main report an error, one of many
// must tell the others.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/launch/launch.h"
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

// The backend with many processes, mpi or nccl, that a command line of `validate` asks for; else
// empty.
std::string backend_of(int argc, char** argv);
// This process's place in the job on that backend, from its launcher's variables. On other
// backends, and without a launcher, it is alone.
backends::launch::LaunchedProcess launch_of(std::string_view backend);
// All processes of the launch meet and stop, and the first reports why. A process that cannot meet
// the others reports for itself. Throws Stopped.
[[noreturn]] void fail_together(const std::string& backend, const std::exception_ptr& why);

}  // namespace reshard::tools
