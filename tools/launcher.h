// SPDX-License-Identifier: BSD-3-Clause
// Which of many processes this is, as its launcher's variables tell, for the time before any
// library is asked: N processes that get the same wrong option should complain once.
#pragma once

#include <string_view>

namespace reshard::tools {

// By torchrun's (not for mpi), Open MPI's, PMI's or Slurm's variables, in this order; 0 where there
// are none or where they do not make sense.
int launched_rank(std::string_view backend);
bool is_launched(std::string_view backend);

// Backends that many processes share: mpi, nccl.
bool is_of_many(std::string_view backend);

// Whether this process speaks where all processes of the command line have the same to say: not for
// `validate` on a backend of many processes, unless it is the first.
bool speaks_for_all(int argc, char** argv);

// For a process that leaves without a word before there is anything to agree through: half a second
// later than the first process speaks, since a launcher ends all when one has left with an error.
void let_the_first_speak();

}  // namespace reshard::tools
