/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A part of reshard.h, which includes it: what one rank does, and running it on the caller's
 * memory. */
#pragma once
#ifndef RESHARD_RESHARD_PROGRAM_H
#define RESHARD_RESHARD_PROGRAM_H

#include <reshard/reshard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- One rank's program ---- */

typedef struct reshard_program reshard_program;

/* The operations of one rank, in order. Temporaries are laid out in one arena, at offsets that are
 * multiples of `alignment` (a power of two; 0: 256). */
RESHARD_API int32_t reshard_program_create(const reshard_plan* plan, int32_t rank,
                                           int64_t alignment, reshard_program** program);
RESHARD_API void reshard_program_free(reshard_program* program);

typedef struct reshard_program_facts {
  uint32_t struct_size;
  int32_t rank;
  int32_t operation_count;
  int32_t buffer_count;
  int32_t dims;
  int32_t element_bytes; /* as in reshard_plan_facts */
  int64_t arena_bytes;
} reshard_program_facts;

RESHARD_API int32_t reshard_program_get_facts(const reshard_program* program,
                                              reshard_program_facts* facts);
/* Like reshard_plan_get_buffer, and also sets arena_offset. */
RESHARD_API int32_t reshard_program_get_buffer(const reshard_program* program, int32_t buffer,
                                               reshard_buffer* result);

enum {
  RESHARD_COPY = 0,     /* copies boxes to equal boxes on this rank:     part_count moves */
  RESHARD_FILL = 1,     /* sets boxes to zero:                           part_count boxes */
  RESHARD_EXCHANGE = 2, /* messages, all in flight at once:              part_count messages */
  RESHARD_REDUCE = 3,   /* box = (operand 0 op operand 1 ...) / divisor: part_count folds */
  RESHARD_ALL_GATHER = 4,
  RESHARD_REDUCE_SCATTER = 5,
  RESHARD_ALL_REDUCE = 6,
  RESHARD_ALL_TO_ALL = 7
};

enum {
  RESHARD_SUM = 0,
  RESHARD_MIN = 2,
  RESHARD_MAX = 3,
  RESHARD_PRODUCT = 4,
  RESHARD_BAND = 5,
  RESHARD_BOR = 6,
  RESHARD_BXOR = 7
};

/* Operations may run in listed order, or each as soon as those in `after` are done; in the latter
 * case temporaries must not share the arena. A collective works on a box of a buffer, usually the
 * whole buffer. A box with a part per member has n equal blocks along `*_dim`, and its extents
 * before that dim are 1. Folds go in the order of `group`, round after every operation, and divide
 * once at the end. */
typedef struct reshard_operation {
  uint32_t struct_size;
  int32_t kind;
  int32_t step; /* of the plan; the same number on all ranks */
  int32_t part_count;
  int32_t after_count;
  int32_t reduce_op;    /* of reduce, reduce_scatter and all_reduce */
  int64_t divisor;      /* of the same kinds; 1: none */
  const int32_t* after; /* operations of this program that must be done first, ascending; valid as
                           long as the program */
  /* Collectives only: */
  const int32_t* group; /* ranks in order; valid as long as the program */
  int32_t group_size;
  int32_t member;                    /* this rank's index in the group */
  int32_t input, output;             /* buffers */
  int64_t input_bytes, output_bytes; /* of the boxes */
  int32_t input_dim, output_dim;
  int64_t input_offset[RESHARD_MAX_DIMS], input_extents[RESHARD_MAX_DIMS],
      output_offset[RESHARD_MAX_DIMS], output_extents[RESHARD_MAX_DIMS]; /* elements */
} reshard_operation;

RESHARD_API int32_t reshard_program_get_operation(const reshard_program* program, int32_t operation,
                                                  reshard_operation* result);

typedef struct reshard_message {
  uint32_t struct_size;
  int32_t receives; /* 0: this rank sends, 1: it receives */
  int32_t peer;     /* rank */
  int32_t move_count;
  int64_t bytes; /* of all moves, one after another, each dense and row-major */
} reshard_message;

/* Sends first, then receives, each ascending by peer; at most one of each per peer. */
RESHARD_API int32_t reshard_program_get_message(const reshard_program* program, int32_t operation,
                                                int32_t message, reshard_message* result);

/* The box of `source` is copied to the box of `destination`, which has the same extents. In a
 * message one of the two buffers is the peer's. */
typedef struct reshard_move {
  uint32_t struct_size;
  int32_t source, destination; /* buffers */
  int32_t reserved;
  int64_t source_offset[RESHARD_MAX_DIMS], destination_offset[RESHARD_MAX_DIMS],
      extents[RESHARD_MAX_DIMS]; /* elements */
} reshard_move;

/* Copy: `message` is 0. Exchange: a move of that message. */
RESHARD_API int32_t reshard_program_get_move(const reshard_program* program, int32_t operation,
                                             int32_t message, int32_t move, reshard_move* result);

typedef struct reshard_box {
  uint32_t struct_size;
  int32_t buffer;
  int32_t operand_count; /* for the destination of a fold; else 0 */
  int32_t reserved;
  int64_t offset[RESHARD_MAX_DIMS], extents[RESHARD_MAX_DIMS]; /* elements */
} reshard_box;

/* Fill: the part's box. Reduce: the part's destination. */
RESHARD_API int32_t reshard_program_get_box(const reshard_program* program, int32_t operation,
                                            int32_t part, reshard_box* result);
/* Reduce: an operand of the part. */
RESHARD_API int32_t reshard_program_get_operand(const reshard_program* program, int32_t operation,
                                                int32_t part, int32_t operand, reshard_box* result);

/* ---- Running a program over the caller's communicator ---- */

/* Passed in arrays, so this struct will never change. */
typedef struct reshard_transfer {
  int32_t peer; /* rank */
  int32_t tag;  /* equal at both ends; unique among a run's messages from one rank to another */
  void* data;   /* contiguous, more than 0 bytes; must not be written if it is to be sent */
  int64_t bytes;
} reshard_transfer;

/* Carries all of these transfers and returns 0 when they are done; any other value ends the run
 * with RESHARD_BACKEND_ERROR. Sends and receives must make progress together (post all, wait for
 * all). Called only on ranks that have something to send or receive, in the same order of tags on
 * all of them. */
typedef int32_t (*reshard_exchange)(void* context, const reshard_transfer* sends,
                                    int32_t send_count, const reshard_transfer* receives,
                                    int32_t receive_count);

/* A rank's shards of one tensor. In an array, one per tensor, all have the same struct_size. */
typedef struct reshard_shards {
  uint32_t struct_size;
  uint32_t reserved;
  const void* source;        /* NULL if the rank has none or it is empty; aligned to the element */
  int64_t source_bytes;      /* exactly the buffer's size */
  void* destination;         /* like `source`; must not overlap it */
  int64_t destination_bytes; /* exactly the buffer's size */
} reshard_shards;

typedef struct reshard_run {
  uint32_t struct_size;
  uint32_t reserved;
  reshard_exchange exchange; /* NULL only if the program has nothing to send or receive */
  void* context;             /* passed to `exchange` */
  const void* source; /* the rank's source shard; NULL if it has none or it is empty. Aligned to the
                         element, as are the other two */
  int64_t source_bytes;      /* exactly the buffer's size */
  void* destination;         /* the rank's destination shard; overlaps neither source nor arena */
  int64_t destination_bytes; /* exactly the buffer's size */
  void* arena;               /* NULL: the library allocates temporaries */
  int64_t arena_bytes;       /* at least the program's arena_bytes */
  const reshard_shards* tensors; /* one per tensor; NULL: one tensor, with the shards above */
} reshard_run;

/* Runs the rank's program once on host memory and returns when the destination is complete. All
 * ranks of the plan must call it. The result has the bits of `reshard simulate`, whatever carries
 * the messages. In addition to the arena it allocates memory for packed messages and operands of
 * folds: at most what the rank sends plus twice what it receives in one step. A program may run any
 * number of times, also on several threads at once. */
RESHARD_API int32_t reshard_execute(const reshard_program* program, const reshard_run* run);

/* Runs the plan for all its ranks at once, on shards in this process: for tests, and for a process
 * that holds all shards. `shards` has one entry for every tensor of every rank: the tensors of the
 * plan's first rank (reshard_plan_get_rank), then those of the second, and so on; `count` = ranks
 * times tensors. Only sources may overlap, as those of replicas may; they are read only. Boxes are
 * copied and folded in place, on this thread, to the bits of `reshard simulate`; in addition to the
 * shards it allocates only those temporaries that hold more than copies. */
RESHARD_API int32_t reshard_execute_all(const reshard_plan* plan, const reshard_shards* shards,
                                        int64_t count);

#ifdef __cplusplus
}
#endif
#endif /* RESHARD_RESHARD_PROGRAM_H */
