// SPDX-License-Identifier: BSD-3-Clause
// Which rank this process is, and where the processes of the job meet: from the caller's options,
// else from the variables that torchrun, mpirun and srun set. Nothing else reads those.
//
// The environment is handed in as a function. Everything here is a function of options and
// environment alone; nothing is opened.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace reshard::backends::launch {

using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

// What the caller says of a job without MPI; -1 and empty: as the launcher's variables say.
struct JobOptions {
  std::string rendezvous;  // where processes meet: "HOST:PORT" or "file:PATH"
  // This process's place. Without a launcher's either, the one process drives all ranks: world_size
  // of them, or one per GPU.
  std::int32_t rank = -1, world_size = -1, local_rank = -1;
};

struct LaunchedProcess {
  std::string launcher;  // "options", "torchrun", "Open MPI", "PMI", "Slurm"; empty: none, and this
                         // process drives all ranks
  std::int32_t rank = 0, size = 1;
  // Among the processes of this node, where the launcher says so.
  std::optional<std::int32_t> local_rank, local_size;
};

// The first of: options, torchrun, Open MPI, PMI (MPICH and its kin), Slurm. Throws InputError that
// names the variable which is malformed, or which is missing beside another.
LaunchedProcess find_launch(const JobOptions& options, const Environment& environment);

// For who asks before any library does, or for one that connects its processes itself: variables
// that do not make sense are none.
enum class Among {
  All,        // as find_launch
  MpiStarts,  // not torchrun: job systems set its variables for a whole node, where all processes
              // of an mpirun would take themselves for the same rank
  MpiJoins,   // Open MPI's and PMI's own, which an MPI library goes by
};
LaunchedProcess likely_launch(Among among, const Environment& environment = process_environment());
// By an mpirun, or by a launcher that speaks PMIx to an MPI library and says no more.
bool launched_for_mpi(const Environment& environment = process_environment());

struct MeetingPlace {
  std::string host;  // empty: the file
  int port = 0;
  std::string file;  // rank 0 writes there where it listens
};

// The first of: options.rendezvous, MASTER_ADDR and MASTER_PORT, the first host of Slurm's step,
// this host where all processes are on it. Throws InputError that says what to set. Under torchrun
// the port is the one after MASTER_PORT where the agent's own store listens on that
// (TORCHELASTIC_USE_AGENT_STORE).
MeetingPlace find_meeting_place(const JobOptions& options, const LaunchedProcess& launch,
                                const Environment& environment);

// "node[003-007,012],login1" -> "node003". Throws InputError.
std::string first_host(std::string_view node_list);

inline constexpr int kDefaultPort = 29571;

}  // namespace reshard::backends::launch
