/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Plans on a caller's MPI communicator and host buffers: the same executor as `reshard validate
 * --backend mpi`. Messages within a node go through shared memory, collectives are MPI's own where
 * those give the plan's bits.
 *
 * Link libreshard_mpi (Open MPI) or libreshard_mpich (MPICH), whichever the program's MPI is,
 * beside libreshard. Global rank r of a plan is process r of the communicator. Errors, structs and
 * handles are as in reshard.h, but the text of an error comes from reshard_mpi_last_error().
 * Functions marked collective are called by all processes of the communicator in the same order.
 * MPI must be initialised before and finalised after. Where MPI itself fails, MPICH ends the
 * program unless the handlers of MPI_COMM_WORLD and MPI_COMM_SELF are MPI_ERRORS_RETURN. */
#pragma once
#ifndef RESHARD_RESHARD_MPI_H /* the same header from two places, as in a build tree and installed \
                               */
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
  uint32_t no_shared_memory; /* 1: processes of one node use MPI, too */
  int64_t
      time_limit_s; /* for a single wait on other processes, then RESHARD_BACKEND_ERROR; 0: 300 */
} reshard_mpi_options;

/* Collective. Duplicates the communicator; its handle belongs to the caller as before. `options`
 * NULL: the defaults. */
RESHARD_API int32_t reshard_mpi_create(MPI_Comm comm, const reshard_mpi_options* options,
                                       reshard_mpi** mpi);
/* Collective. Plans made on it must be gone. */
RESHARD_API void reshard_mpi_free(reshard_mpi* mpi);

typedef reshard_shards reshard_mpi_shards;

/* Collective. Makes a plan ready to run on this process's shards, an array with one for every
 * tensor of the plan, which stay where they are and must live as long as `prepared`. A process
 * without a rank in the plan gives empty shards. The plan must be the same on all processes: where
 * it is not, or where one of them cannot go on, all get the same RESHARD_INPUT_ERROR, which says
 * what differs or which process has what trouble, and all may go on. `mpi` NULL is not told. */
RESHARD_API int32_t reshard_mpi_prepare(reshard_mpi* mpi, const reshard_plan* plan,
                                        const reshard_mpi_shards* shards,
                                        reshard_mpi_plan** prepared);
RESHARD_API void reshard_mpi_plan_free(reshard_mpi_plan* prepared);

/* Collective. Runs the plan once and returns when this process's destination is complete; as often
 * as asked. Where processes come with different ones of their prepared plans all get
 * RESHARD_INPUT_ERROR, before a byte moves. */
RESHARD_API int32_t reshard_mpi_run(reshard_mpi_plan* prepared);

#ifdef __cplusplus
}
#endif
#endif /* RESHARD_RESHARD_MPI_H */
