// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/calls.h"

#include <string>

#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard::backends::mpi {

void check(int code, const char* call, int rank) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  throw BackendError(
      "MPI", call,
      length > 0 ? std::string(text, to_index(length)) : "error " + std::to_string(code), rank);
}

bool mpi_is_up() {
  int up = 0, over = 0;
  MPI_Initialized(&up);
  MPI_Finalized(&over);
  return up != 0 && over == 0;
}

MpiCommunicator::~MpiCommunicator() {
  if (comm_ != MPI_COMM_NULL && mpi_is_up()) MPI_Comm_free(&comm_);
}

}  // namespace reshard::backends::mpi
