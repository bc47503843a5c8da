// SPDX-License-Identifier: BSD-3-Clause
// MPI of this process: started when it is first needed, ended with the program.
#pragma once

#include <string>

namespace reshard::backends::mpi {

// Initialises MPI where nobody has. Throws InputError where a launcher started several processes that MPI does not connect (another MPI's mpirun), or MPI is over.
void start_session();
// MPI will not be ended in order: after a failure others may never answer, and ending waits for them. A process that leaves without ending makes mpirun end the rest.
void abandon_session() noexcept;
// "Open MPI 4.1.4", "MPICH 4.0.2". Starts nothing.
std::string library_version();

}  // namespace reshard::backends::mpi
