// SPDX-License-Identifier: BSD-3-Clause
// Which of many processes this is, as its launcher's variables tell, for the time before any
// backend is there: N processes that get the same wrong option should complain once.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "backends/job/launch.h"

namespace reshard::tools {

// A backend that many processes share, mpi or nccl, that a command line of `validate` asks for;
// else empty.
std::string backend_of(int argc, char** argv);
// What this process is part of on that backend; on others, and without a launcher, it is alone.
backends::job::Launch launch_of(std::string_view backend);

// For a failure before the backend is there. All processes of the launch meet, and the first says
// why; those that have not failed hear of it as the backend tells them. A process that cannot meet
// the others speaks for itself. Throws Stopped.
[[noreturn]] void fail_together(const std::string& backend, const std::exception_ptr& why);

}  // namespace reshard::tools
