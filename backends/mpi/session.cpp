// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>

#include "backends/launch/launch.h"
#include "backends/launch/patience.h"
#include "backends/mpi/calls.h"
#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard::backends::mpi {

namespace {

constexpr int kBackendFailed = 4;    // the exit code of a BackendError
constexpr std::int64_t kLeast = 15;  // seconds; the shortest limit for the start of a program

bool abandoned = false;
int held = 0;
std::int64_t limit_s = 0;

// MPI_Finalize waits for all processes without a limit, and with Open MPI, if processes abort while
// others are in it, mpirun does not end. So all processes meet first.
bool all_have_come() {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  launch::Patience patience{std::chrono::seconds(limit_s)};
  for (int done = 0;;) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return true;
    if (!patience.idle()) return false;
  }
}

// If a session is still held, exit() was called from deep inside, perhaps by MPI itself while it
// aborts (MPICH does that); no MPI function may be called then.
void end_session() {
  if (held > 0 || abandoned || !mpi_is_up()) return;
  if (all_have_come()) {
    MPI_Finalize();
    return;
  }
  // Whatever this process would have returned, the program as a whole has failed.
  std::fprintf(stderr, "MPI: other ranks did not reach the end of the program within %lld s\n",
               static_cast<long long>(limit_s));
  std::fflush(nullptr);
  std::_Exit(kBackendFailed);
}

}  // namespace

Session::Session(std::int64_t time_limit_s) {
  limit_s = time_limit_s;
  int up = 0, over = 0;
  MPI_Finalized(&over);
  if (over != 0) throw InputError("the mpi backend was asked for after MPI_Finalize");
  MPI_Initialized(&up);
  if (up == 0) {
    Deadline deadline("MPI_Init", time_limit_s);
    int provided = 0;
    RESHARD_MPI_CALL(-1, MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
    RESHARD_MPI_CALL(-1, MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    RESHARD_MPI_CALL(-1, MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    std::atexit(end_session);
  }
  int size = 1, launched = launch::likely_launch(launch::Among::MpiJoins).size;
  RESHARD_MPI_CALL(-1, MPI_Comm_size(MPI_COMM_WORLD, &size));
  if (size == 1 && launched > 1)
    throw InputError(
        fmt::format("a launcher started {} processes, but {} connects this one to none of them; "
                    "use its own mpirun",
                    launched, library_version()));
  ++held;
}

Session::~Session() { --held; }

void Session::abandon() noexcept { abandoned = true; }

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "MPI";
  std::string version(text, to_index(length));
#if defined(OPEN_MPI)
  // "Open MPI v4.1.4, package: ...".
  version = version.substr(0, version.find(','));
  if (std::size_t v = version.find(" v"); v != std::string::npos) version.erase(v + 1, 1);
#else
  // "MPICH Version:\t4.0.2\nMPICH Release date:...".
  version = version.substr(0, version.find('\n'));
  if (std::size_t at = version.find("Version:"); at != std::string::npos) {
    std::size_t number = version.find_first_not_of(" \t", at + 8);
    if (number != std::string::npos) version = version.substr(0, at) + version.substr(number);
  }
#endif
  return version;
}

Deadline::Deadline(std::string what, std::int64_t limit_s)
    : watcher_(
          [this, what = std::move(what), limit_s] { watch(what, std::max(limit_s, kLeast)); }) {}

Deadline::~Deadline() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  watcher_.join();
}

void Deadline::watch(const std::string& what, std::int64_t limit_s) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, std::chrono::seconds(limit_s), [this] { return over_; })) return;
  // MPI itself may not know its rank yet, but the launcher's variables do.
  std::fprintf(stderr,
               "reshard: error: rank %d: MPI: %s did not end within %lld s: some of the other "
               "ranks are missing\n",
               launch::likely_launch(launch::Among::MpiJoins).rank, what.c_str(),
               static_cast<long long>(limit_s));
  std::fflush(nullptr);
  std::_Exit(kBackendFailed);
}

}  // namespace reshard::backends::mpi
