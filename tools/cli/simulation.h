// SPDX-License-Identifier: BSD-3-Clause
// What `simulate` does, also for commands that get a plan in another way: a plan, its
// time, its bytes, and the report on them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/job/job.h"
#include "sim/report/run_report.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/output/output_files.h"

namespace reshard::tools {

struct SimulationOptions {
  MachineOptions machine;
  DataOptions data;  // how: "full", "proof", or "fitting" for full within the budget, else proof
  OutputOptions output;
};

struct Simulated {
  sim::Subject subject;
  bool as_one = false;  // report whether its tensors would be faster together
  std::optional<sim::KvFacts> kv = {};
};

// Checks the options, and that `inputs` and the files to write are apart, before `subject` reads
// anything.
void simulate(const SimulationOptions& options, std::vector<NamedFile> inputs,
              const std::function<Simulated()>& subject);

// The names of sim::exports() after `first`, for --emit.
std::vector<std::string> emit_names(std::vector<std::string> first);
// "print plan: ...; csv: ...;"
std::string emit_help();
// Prints the job's plan as the export of that name. `topology` is as the user gave it.
void print_export(const sim::Job& job, const std::string& name, const std::string& topology,
                  Progress& progress);

void write_run_page(OutputFiles& written, const std::string& file, std::string_view kind,
                    const sim::RunReport& report, sim::Study& study);

}  // namespace reshard::tools
