// SPDX-License-Identifier: BSD-3-Clause
// MPI of this process: started when it is first needed, ended with the program.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace reshard::backends::mpi {

// A limit for what MPI does at the start of a program, which waits for all processes and cannot be
// polled: MPI_Init and the first communicators.
//
// A thread of its own watches. When the time is over it says why and ends this process; the
// launcher then ends the others. Only for a program whose MPI is ours: no caller is asked.
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

// Held while MPI is used. MPI is ended in order when the program ends with no session held and none
// abandoned.
class Session {
 public:
  // Initialises MPI where nobody has. Throws InputError where a launcher started several processes
  // that MPI does not connect (another MPI's mpirun), or MPI is over. `time_limit_s`: how long the
  // beginning and the end of the program wait for the other processes; then the program ends with
  // exit code 4.
  explicit Session(std::int64_t time_limit_s);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();
  // After a failure others may never answer, and ending MPI waits for them: it will not be. A
  // process that leaves without ending makes mpirun end the rest.
  static void abandon() noexcept;
};

// "Open MPI 4.1.4", "MPICH 4.0.2". Starts nothing.
std::string library_version();

}  // namespace reshard::backends::mpi
