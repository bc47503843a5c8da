// SPDX-License-Identifier: BSD-3-Clause
// From the command line's options to a study (sim/study): the request or the plan file, the
// topology, and what this machine's memory allows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim/job/job.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_files.h"

namespace reshard::tools {

// The files that the options name, for require_files.
std::vector<NamedFile> inputs_of(const RequestOptions& request, const MachineOptions& machine);

// What the machine options imply for a command's studies.
sim::StudyOptions study_options(const MachineOptions& machine);

sim::Subject subject_of(const RequestOptions& options, const MachineOptions& machine);

// The topology that the options name, else the one that the subject's file names, else the default.
std::shared_ptr<const Topology> topology_of(const sim::Subject& subject,
                                            const MachineOptions& machine);

// The subject carried through on the machine that the options name.
sim::Job job_of(const sim::Subject& subject, const MachineOptions& machine,
                const sim::StudyOptions& options);

std::int64_t data_budget_of(const DataOptions& options);

}  // namespace reshard::tools
