// SPDX-License-Identifier: BSD-3-Clause
// Brings the processes of a job together: rank 0 listens at the meeting place, all others try again
// until it is there.
#pragma once

#include <memory>

#include "backends/nccl/launch.h"
#include "backends/nccl/meeting.h"
#include "backends/nccl/socket.h"

namespace reshard::backends::nccl {

// A job of one process needs no place. Throws BackendError where not all ranks have come within the
// limit, InputError where they do not agree about the job.
std::unique_ptr<Meeting> meet(const Launch& launch, const MeetingPlace& place,
                              std::chrono::milliseconds limit);

}  // namespace reshard::backends::nccl
