// SPDX-License-Identifier: BSD-3-Clause
// Files that define what a job moves: requests, or the layouts of both sides.
#pragma once

#include <istream>
#include <string>

#include "sim/job/job.h"

namespace reshard::sim {

// Reads JSON lines, each the fields of a redistribute line, with or without a trace's header before
// them: a mesh is a name from the header, or text such as "dp=2,tp=2", and `after` is the order of
// the job's tensors. Or, detected by its header, a file of layouts (sim/check/check_file.h). Throws
// InputError as read_trace does, and for any other kind of line.
Subject read_job(const std::string& path);
Subject parse_job(std::istream& in, const std::string& file);

}  // namespace reshard::sim
