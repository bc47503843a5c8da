// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/deadline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "backends/job/launch.h"

namespace reshard::backends::mpi {
namespace {

constexpr int kBackendFailed = 4;    // the exit code of a BackendError
constexpr std::int64_t kLeast = 15;  // seconds

}  // namespace

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
  // MPI itself may not know its rank yet; its launcher does.
  std::fprintf(stderr,
               "reshard: error: rank %d: MPI: %s did not end within %lld s: some of the other "
               "ranks have not come\n",
               job::likely_launch(job::Among::MpiJoins).rank, what.c_str(),
               static_cast<long long>(limit_s));
  std::fflush(nullptr);
  std::_Exit(kBackendFailed);
}

}  // namespace reshard::backends::mpi
