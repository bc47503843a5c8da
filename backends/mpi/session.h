// SPDX-License-Identifier: BSD-3-Clause
// MPI of this process: started when it is first needed, ended with the program.
#pragma once

#include <cstdint>
#include <string>

namespace reshard::backends::mpi {

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
