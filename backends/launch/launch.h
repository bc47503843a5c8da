// SPDX-License-Identifier: BSD-3-Clause
// Finds which rank this process is and where the processes of the job meet: from the caller's
// options, else from the variables that torchrun, mpirun and srun set. No other code reads these
// variables.
//
// The environment is passed in as a function. Everything here depends on options and environment
// alone; nothing is opened.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace reshard::backends::launch {

using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

// What the caller states about a job without MPI; -1 or empty: take it from the launcher's
// variables.
struct JobOptions {
  std::string rendezvous;  // where processes meet: "HOST:PORT" or "file:PATH"
  // This process's rank. If no launcher states it either, this one process drives all ranks:
  // world_size of them, or one per GPU.
  std::int32_t rank = -1, world_size = -1, local_rank = -1;
};

struct LaunchedProcess {
  std::string launcher;  // "options", "torchrun", "Open MPI", "PMI", "Slurm"; empty: none, and this
                         // process drives all ranks
  std::int32_t rank = 0, size = 1;
  // Among the processes of this node, if the launcher states it.
  std::optional<std::int32_t> local_rank, local_size;
};

// The first match of: options, torchrun, Open MPI, PMI (MPICH and relatives), Slurm. Throws
// InputError naming a variable that is malformed, or that is missing although its companion is set.
LaunchedProcess find_launch(const JobOptions& options, const Environment& environment);

// A guess that never throws, for callers that ask before any library is loaded or that connect
// their processes themselves: malformed variables are ignored.
enum class Among {
  All,        // as find_launch
  MpiStarts,  // without torchrun: job systems set its variables for a whole node, so all processes
              // of an mpirun would take themselves for the same rank
  MpiJoins,   // only Open MPI's and PMI's variables, which an MPI library itself uses
};
LaunchedProcess likely_launch(Among among, const Environment& environment = process_environment());
// True if started by an mpirun, or by a launcher that passes everything to the MPI library by PMIx.
bool launched_for_mpi(const Environment& environment = process_environment());

struct MeetingPlace {
  std::string host;  // empty: use the file
  int port = 0;
  std::string file;  // where rank 0 writes the address that it listens on
};

// The first of: options.rendezvous, MASTER_ADDR and MASTER_PORT, the first host of Slurm's step,
// and this host if all processes are on it. Throws InputError with what to set. Under torchrun
// the port is MASTER_PORT + 1 if the agent's own store listens on MASTER_PORT
// (TORCHELASTIC_USE_AGENT_STORE).
MeetingPlace find_meeting_place(const JobOptions& options, const LaunchedProcess& launch,
                                const Environment& environment);

// "node[003-007,012],login1" -> "node003". Throws InputError.
std::string first_host(std::string_view node_list);

inline constexpr int kDefaultPort = 29571;

}  // namespace reshard::backends::launch
