// SPDX-License-Identifier: BSD-3-Clause
// The registry of backends by name; a backend runs plans on real ranks. A new backend is one folder
// and one row in registry.cpp.
//
// Whether a backend is usable depends on what was found when reshard was built and on what this
// machine has now. The status of an unusable one has the reason, and how to get it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/launch/launch.h"
#include "core/plan/executor.h"
#include "core/traffic/communicator_policy.h"

namespace reshard::backends {

struct BackendOptions : launch::JobOptions {
  std::int64_t time_limit_s = 300;  // for any single wait on other ranks or on the device; the run
                                    // then ends with a BackendError
  int device =
      -1;  // GPU; -1: the local rank's, or all local GPUs where one process drives all ranks
  // Fold in the order that the plan declares, even where the library's own collective would fold
  // faster in another order.
  bool declared_order = false;
  // NCCL backend only: which communicators there are, and when they are made.
  CommunicatorPolicy communicators = CommunicatorPolicy::Eager;
  // Called with one sentence per warning; never twice with the same sentence.
  std::function<void(const std::string&)> warn = {};
};

struct BackendStatus {
  bool usable = false;
  std::string what;        // "Open MPI 4.1.4, mpirun at /usr/bin/mpirun"; if not usable, why not
  std::string how_to_get;  // a command or a sentence; empty where usable
};

// What callers must know of a backend before they have its executor.
struct BackendFacts {
  // Who sets the rank of a process; none: one process holds all ranks.
  std::optional<launch::Among> launched_by = {};
  // Its processes meet at a rendezvous that the caller or the launcher names. MPI connects its own.
  bool meets_at_rendezvous = false;
  // Without a launcher, one process drives as many ranks as BackendOptions::world_size states.
  bool may_drive_all_ranks = false;
  bool uses_gpus = false;
  bool has_communicators = false;  // takes BackendOptions::communicators
  // Bytes cross the links between devices even on one host, as a topology describes them.
  bool crosses_links = false;
};

struct BackendRow {
  std::string_view name;
  std::string_view purpose;  // one line for --help and `doctor`
  BackendFacts facts;
  // Only inspects the machine: never throws, never ends the process, creates nothing that lasts.
  BackendStatus (*probe)();
  // One executor per process. Throws BackendError or InputError if the backend is not available.
  std::unique_ptr<Executor> (*make)(const BackendOptions& options);
};

// mpi, cuda, nccl.
std::span<const BackendRow> backends();
// Throws InputError listing the known names.
const BackendRow& find_backend(std::string_view name);

}  // namespace reshard::backends
