/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs plans on a caller's MPI communicator and host buffers, with the executor of `reshard
 * validate --backend mpi`. Messages within a node go through shared memory; collectives are MPI's
 * own where those give the plan's bits.
 *
 * Link libreshard_mpi (Open MPI) or libreshard_mpich (MPICH), whichever MPI the program uses, in
 * addition to libreshard. Global rank r of a plan is process r of the communicator. Errors, structs
 * and handles are as in reshard.h, but the text of an error comes from reshard_mpi_last_error().
 * All processes of the communicator must call the functions marked collective, in the same order.
 * MPI must be initialised before the first call and finalised after the last. If MPI itself fails,
 * MPICH ends the program unless the error handler of MPI_COMM_WORLD and MPI_COMM_SELF is
 * MPI_ERRORS_RETURN. */
#pragma once
#ifndef RESHARD_RESHARD_MPI_H /* guards against two copies, as in a build tree and installed */
#define RESHARD_RESHARD_MPI_H

#include <mpi.h>
#include <reshard/reshard.h>

#ifdef __cplusplus
extern "C" {
#endif

RESHARD_API const char* reshard_mpi_last_error(void);

typedef struct reshard_mpi reshard_mpi;
typedef struct reshard_mpi_plan reshard_mpi_plan;

typedef struct reshard_mpi_options {
  uint32_t struct_size;
  uint32_t no_shared_memory; /* 1: processes of one node also communicate through MPI */
  int64_t time_limit_s;      /* of a single wait on other processes, which then fails with
                                RESHARD_BACKEND_ERROR; 0: 300 */
} reshard_mpi_options;

/* Collective. Duplicates the communicator; the caller still owns its handle. `options` NULL: the
 * defaults. */
RESHARD_API int32_t reshard_mpi_create(MPI_Comm comm, const reshard_mpi_options* options,
                                       reshard_mpi** mpi);
/* Collective. Free all plans prepared on it first. */
RESHARD_API void reshard_mpi_free(reshard_mpi* mpi);

typedef reshard_shards reshard_mpi_shards;

/* Collective. Prepares a plan to run on this process's shards, an array with one entry per tensor
 * of the plan; their memory must live as long as `prepared`. A process without a rank in the plan
 * passes empty shards. The plan must be the same on all processes: if it is not, or if one of them
 * cannot go on, all get the same RESHARD_INPUT_ERROR, which says what differs or which process has
 * what problem, and all may go on. If `mpi` is NULL, the other processes are not notified. */
RESHARD_API int32_t reshard_mpi_prepare(reshard_mpi* mpi, const reshard_plan* plan,
                                        const reshard_mpi_shards* shards,
                                        reshard_mpi_plan** prepared);
RESHARD_API void reshard_mpi_plan_free(reshard_mpi_plan* prepared);

/* Collective. Runs the plan once and returns when this process's destination is complete; call it
 * any number of times. If processes pass different ones of their prepared plans, all get
 * RESHARD_INPUT_ERROR before a byte moves. */
RESHARD_API int32_t reshard_mpi_run(reshard_mpi_plan* prepared);

#ifdef __cplusplus
}
#endif
#endif /* RESHARD_RESHARD_MPI_H */
