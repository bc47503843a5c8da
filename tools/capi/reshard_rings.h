/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reshard between processes of one host: messages go through memory that they share, which the
 * caller maps. No communicator is needed, and nothing is copied more than twice.
 *
 * Errors are those of reshard.h. Behind a RESHARD_BACKEND_ERROR the rings are of no use: processes
 * may have stopped in the middle of a message. */
#pragma once
#ifndef RESHARD_RESHARD_RINGS_H
#define RESHARD_RESHARD_RINGS_H

#include <reshard/reshard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One process's end of the shared memory. Unlike other handles it changes as it is used: runs over
 * it are of one thread at a time, and in one order on all processes. Threads that run at once have
 * rings of their own, in memory of their own. */
typedef struct reshard_rings reshard_rings;

/* What a process that waits is asked about. */
typedef struct reshard_wait {
  void* context;
  int64_t waited_ms; /* nothing has moved for so long */
  int32_t rank;      /* is waited for */
} reshard_wait;

/* Called while nothing arrives, about ten times a second and whenever a signal comes, for each rank
 * that is waited for: a process that died says nothing. 0 waits on; anything else ends the run with
 * RESHARD_BACKEND_ERROR. What a rank wrote before a call is looked for before the next one. */
typedef int32_t (*reshard_waiting)(const reshard_wait* wait);

typedef struct reshard_rings_options {
  uint32_t struct_size;
  int32_t place;        /* of this process among them, from 0 */
  const int32_t* ranks; /* the global rank at each place, each once; equal on all processes */
  int32_t rank_count;
  int32_t reserved;
  void* memory;            /* the same on all processes, mapped by each; must outlive the handle */
  int64_t memory_bytes;    /* at least reshard_rings_get_bytes says */
  reshard_waiting waiting; /* NULL: waits for ever */
  void* context;           /* of `waiting` */
} reshard_rings_options;

/* What so many processes share. The memory begins at a page's first byte and is all zeros when the
 * first of them uses it; pages that messages do not need are never touched. */
RESHARD_API int32_t reshard_rings_get_bytes(int32_t rank_count, int64_t* bytes);
RESHARD_API int32_t reshard_rings_create(const reshard_rings_options* options,
                                         reshard_rings** rings);
RESHARD_API void reshard_rings_free(reshard_rings* rings);

/* As reshard_execute, over the rings; all ranks of the plan have places in them. `run` has neither
 * exchange nor context. `number` is equal on all processes and another one for each run: what comes
 * of another run than awaited ends both with RESHARD_BACKEND_ERROR, so that a process that left a
 * run out, or ran another plan, is found out. */
RESHARD_API int32_t reshard_execute_on_rings(const reshard_program* program, const reshard_run* run,
                                             reshard_rings* rings, int64_t number);

#ifdef __cplusplus
}
#endif
#endif /* RESHARD_RESHARD_RINGS_H */
