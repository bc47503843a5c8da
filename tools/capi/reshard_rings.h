/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs plans between processes of one host: messages go through shared memory, which the caller
 * maps. No communicator is needed, and nothing is copied more than twice.
 *
 * Errors are those of reshard.h. After a RESHARD_BACKEND_ERROR the rings are unusable: processes
 * may have stopped in the middle of a message. */
#pragma once
#ifndef RESHARD_RESHARD_RINGS_H
#define RESHARD_RESHARD_RINGS_H

#include <reshard/reshard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One process's end of the shared memory. Unlike other handles it changes as it is used: only one
 * thread at a time may run over it, and all processes must run in the same order. Threads that run
 * at once need separate rings in separate memory. */
typedef struct reshard_rings reshard_rings;

/* Describes a wait to the `waiting` function. */
typedef struct reshard_wait {
  void* context;
  int64_t waited_ms; /* for how long nothing has moved */
  int32_t rank;      /* the rank that is waited for */
} reshard_wait;

/* Called while nothing arrives, about ten times a second and whenever a signal arrives, for each
 * rank that is waited for, as a process that died sends no sign. 0 keeps waiting; any other value
 * ends the run with RESHARD_BACKEND_ERROR. Anything that a rank wrote before one call is found
 * before the next call. */
typedef int32_t (*reshard_waiting)(const reshard_wait* wait);

typedef struct reshard_rings_options {
  uint32_t struct_size;
  int32_t place;        /* of this process among them, from 0 */
  const int32_t* ranks; /* the global rank at each place, each once; equal on all processes */
  int32_t rank_count;
  int32_t reserved;
  void* memory;            /* shared, mapped by every process; must outlive the handle */
  int64_t memory_bytes;    /* at least what reshard_rings_get_bytes returns */
  reshard_waiting waiting; /* NULL: wait for ever */
  void* context;           /* passed to `waiting` */
} reshard_rings_options;

/* The size of the memory that this many processes share. It must start at a page and be all zeros
 * when the first of them uses it; pages that messages do not need are never touched. */
RESHARD_API int32_t reshard_rings_get_bytes(int32_t rank_count, int64_t* bytes);
RESHARD_API int32_t reshard_rings_create(const reshard_rings_options* options,
                                         reshard_rings** rings);
RESHARD_API void reshard_rings_free(reshard_rings* rings);

/* Like reshard_execute, but over the rings, in which all ranks of the plan must have places. `run`
 * must have neither exchange nor context. `number` is equal on all processes and different for each
 * run: a message of another run than expected fails both with RESHARD_BACKEND_ERROR, which detects
 * a process that left out a run or ran another plan. */
RESHARD_API int32_t reshard_execute_on_rings(const reshard_program* program, const reshard_run* run,
                                             reshard_rings* rings, int64_t number);

#ifdef __cplusplus
}
#endif
#endif /* RESHARD_RESHARD_RINGS_H */
