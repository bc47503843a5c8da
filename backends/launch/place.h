// SPDX-License-Identifier: BSD-3-Clause
// Decides which rank runs on which GPU. All processes derive the same answer from the same facts.
//
// Some launchers number the processes of a node and some do not; some show every GPU to each
// process and some only its own, under a different index. So GPUs are compared by identity rather
// than by index, and nodes by the identity of the running system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/launch/meeting.h"

namespace reshard::backends::launch {

// What one process knows about itself.
struct ProcessFacts {
  std::string node;
  std::int32_t local_rank = -1;   // from the launcher; -1: unknown
  std::int32_t device = -1;       // from the user; -1: not given
  std::vector<std::string> gpus;  // identities of the GPUs that it sees
};
std::string this_node();

// Collective: returns the facts of all processes, by process, on every process.
std::vector<ProcessFacts> share_facts(Meeting& meeting, const ProcessFacts& mine);

struct Placement {
  // By process: the GPU of each of its ranks, as an index into the GPUs that the process sees.
  std::vector<std::vector<int>> devices;
  std::int32_t ranks = 0, gpus = 0;  // totals of the job
  std::int32_t most_on_one = 0;      // the largest number of ranks on one GPU
};
// In a job of several processes each has one rank, on the GPU that the user named, else on the one
// of its local rank. A single process has `ranks` ranks: round-robin over its GPUs, or all on the
// one that the user named. Throws InputError if that GPU does not exist, or if a process sees none.
Placement place(const std::vector<ProcessFacts>& facts, std::int32_t ranks);

}  // namespace reshard::backends::launch
