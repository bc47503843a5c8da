// SPDX-License-Identifier: BSD-3-Clause
// A limit for what MPI does at the start of a program, which waits for all processes and cannot be
// polled: MPI_Init and the first communicators.
//
// A thread of its own watches. When the time is over it says why and ends this process; the
// launcher then ends the others. Only for a program whose MPI is ours: no caller is asked.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace reshard::backends::mpi {

class Deadline {
 public:
  // At least a quarter of a minute: to start takes its time, on a busy machine too.
  Deadline(std::string what, std::int64_t limit_s);
  // In time.
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  void watch(const std::string& what, std::int64_t limit_s);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread watcher_;
};

}  // namespace reshard::backends::mpi
