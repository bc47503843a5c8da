// SPDX-License-Identifier: BSD-3-Clause
// MPI in this process: initialized when first needed, finalized when the program ends.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace reshard::backends::mpi {

// A time limit for calls at the start of a program that wait for all processes and cannot be
// polled: MPI_Init and the first communicators.
//
// A separate thread watches. When the time is over it prints why and ends this process; the
// launcher then ends the others. Only for programs in which reshard owns MPI, as no caller is
// asked.
class Deadline {
 public:
  // At least 15 seconds, as starting takes that long on a busy machine.
  Deadline(std::string what, std::int64_t limit_s);
  // Disarms the limit.
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

// Held while MPI is in use. MPI is finalized when the program ends, unless a session is still held
// or was abandoned.
class Session {
 public:
  // Initializes MPI if the process has not. Throws InputError if a launcher started several
  // processes that this MPI does not connect (the mpirun of another MPI), or if MPI has been
  // finalized. `time_limit_s`: how long the start and the end of the program wait for the other
  // processes; after that it ends with exit code 4.
  explicit Session(std::int64_t time_limit_s);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();
  // Call after a failure: other processes may never respond, and MPI_Finalize would wait for them,
  // so it is not called. mpirun ends the other processes when one exits without it.
  static void abandon() noexcept;
};

// "Open MPI 4.1.4", "MPICH 4.0.2". Does not initialize MPI.
std::string library_version();

}  // namespace reshard::backends::mpi
