// SPDX-License-Identifier: BSD-3-Clause
// Which rank runs on which GPU, worked out by all processes from the same facts.
//
// Launchers number the processes of a node or do not, and show all GPUs to each process or only its
// own, under an index of its own. So GPUs are compared by their identity and not by index, and
// nodes by that of the running system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/launch/meeting.h"

namespace reshard::backends::launch {

// What one process knows.
struct ProcessFacts {
  std::string node;
  std::int32_t local_rank = -1;   // as the launcher says; -1: it does not
  std::int32_t device = -1;       // as the user says
  std::vector<std::string> gpus;  // identities of those that it sees
};
std::string this_node();

// Everybody's facts, by process, everywhere.
std::vector<ProcessFacts> share_facts(Meeting& meeting, const ProcessFacts& mine);

struct Placement {
  // By process: the GPU of each of its ranks, as index in what it sees.
  std::vector<std::vector<int>> devices;
  std::int32_t ranks = 0, gpus = 0;  // of the job
  std::int32_t most_on_one = 0;      // ranks of any GPU
};
// A process of several has one rank: on the GPU that the user named, else on that of its local
// rank. A single process has `ranks` ranks, dealt out to its GPUs in turn, all to the one that the
// user named. Throws InputError where there is no such GPU, or none.
Placement place(const std::vector<ProcessFacts>& facts, std::int32_t ranks);

}  // namespace reshard::backends::launch
