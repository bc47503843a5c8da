// SPDX-License-Identifier: BSD-3-Clause
// The NCCL executor on the stand-in: all ranks of a job in this process, each on its own thread
// like a launcher's processes, or all driven by one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/nccl/executor.h"
#include "tests/support/standins/nccl_world.h"

namespace reshard::test {

enum class Drive { RankPerThread, OneThread };

struct StandinJob {
  std::int32_t world = 2;
  Drive drive = Drive::RankPerThread;
  NcclWorldOptions standin = {};
  std::chrono::milliseconds limit{60'000};
  bool declared_order = false;
  backends::nccl::CommunicatorPolicies policies = {};
};

// What a rank gave to NCCL in one launch, in global ranks. A collective has one operation, without
// a peer.
struct LoggedLaunch {
  struct Operation {
    NcclCall call;
    std::int32_t peer;  // -1: a collective
    std::int64_t bytes;
    friend auto operator<=>(const Operation&, const Operation&) = default;
  };
  std::int32_t rank;
  std::vector<std::int32_t> members;  // of the communicator, in its order
  std::vector<Operation> operations;  // in the order in which they were given
};

struct StandinOutcome {
  // By driver: the text of what its body threw; empty if it ended well.
  std::vector<std::string> errors;
  std::vector<std::string> warnings;  // of all drivers
  std::string misuse;                 // what the stand-in found wrong; empty if nothing
  std::int64_t launches = 0, communicators = 0, live_handles = 0;
  std::vector<LoggedLaunch> log;  // each rank's in its order
  bool clean() const;
  std::string text() const;
};

// Runs the body on every driver with its executor; `driver` is the rank if there is a thread per
// rank, else 0. Bodies must not use Catch2.
StandinOutcome run_on_standin(
    const StandinJob& job,
    const std::function<void(backends::nccl::NcclExecutor& executor, std::int32_t driver)>& body);

// The parts of such an executor, for tests of the parts: one driver's API, meeting and devices.
struct StandinParts {
  std::unique_ptr<backends::nccl::NcclApi> api;
  std::unique_ptr<backends::nccl::Meeting> meeting;
  std::vector<std::int32_t> ranks;
  std::vector<std::unique_ptr<StandinDevice>> devices;
  std::function<void(const std::string&)> warn;
};
StandinOutcome run_parts(const StandinJob& job,
                         const std::function<void(StandinParts parts, std::int32_t driver)>& body);

}  // namespace reshard::test
