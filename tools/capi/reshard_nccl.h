/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs plans on a caller's NCCL communicator, CUDA stream and device memory: the executor of
 * `reshard validate --backend nccl`, inside a program that has its own.
 *
 * Link libreshard_nccl in addition to libreshard. Rank r of a plan is rank r of the communicator.
 * Errors, structs and handles are as in reshard.h, but the text of an error comes from
 * reshard_nccl_last_error(), and only one thread at a time may use a handle. All ranks of the
 * communicator must call the functions marked collective, in the same order, as for any use of it.
 *
 * Lent objects. The communicator is neither finalized nor destroyed, and is aborted only if
 * abort_on_error allows it. It must come from the libnccl.so.2 that this process has loaded, 2.14
 * or newer; $RESHARD_NCCL_LIBRARY names another library that contains NCCL (a framework's). After
 * every call here its GPU is the thread's current device.
 *
 * Streams. Everything runs on the one stream that is passed: after what the caller put there
 * before, and before what comes later. Reading the destination, changing the source or freeing
 * either must be ordered after that work on the stream. Do not capture it into a graph. The stream
 * may be NULL, CUDA's default stream. */
#pragma once
#ifndef RESHARD_RESHARD_NCCL_H /* guards against two copies, as in a build tree and installed */
#define RESHARD_RESHARD_NCCL_H

#include <reshard/reshard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The types that ncclComm_t and cudaStream_t point to. */
struct ncclComm;
struct CUstream_st;

RESHARD_API const char* reshard_nccl_last_error(void);

typedef struct reshard_nccl reshard_nccl;
typedef struct reshard_nccl_plan reshard_nccl_plan;

typedef struct reshard_nccl_options {
  uint32_t struct_size;
  /* 0: messages only, over the communicator itself; folds in the plan's order, with the bits of
   * `reshard simulate`. 1: NCCL's own collectives, on splits of the communicator, which prepare
   * makes if they do not exist yet; each costs time and GPU memory, and floating-point sums and
   * products of three or more operands follow NCCL's order. */
  uint32_t nccl_collectives;
  /* 1: if other ranks are lost the communicator is aborted, which ends kernels that wait for them;
   * it must not be used or destroyed after that. */
  uint32_t abort_on_error;
  uint32_t reserved;
  int64_t time_limit_s; /* of a single wait on other ranks or the GPU, which then fails with
                           RESHARD_BACKEND_ERROR; 0: 300. After that only the free functions may be
                           called */
} reshard_nccl_options;

/* Not collective. Allocates 64 KiB of GPU memory. `options` NULL: the defaults. */
RESHARD_API int32_t reshard_nccl_create(struct ncclComm* comm, struct CUstream_st* stream,
                                        const reshard_nccl_options* options, reshard_nccl** nccl);
/* Collective; call it before the communicator is destroyed. Free all plans prepared on it first. */
RESHARD_API void reshard_nccl_free(reshard_nccl* nccl);

/* In memory of the communicator's GPU. */
typedef reshard_shards reshard_nccl_shards;

/* The bytes of GPU memory that prepare would allocate for these shards, one entry per tensor of the
 * plan: temporaries, packed messages and tables, but not what NCCL takes for splits. Not
 * collective. */
RESHARD_API int32_t reshard_nccl_get_memory(reshard_nccl* nccl, const reshard_plan* plan,
                                            const reshard_nccl_shards* shards, int64_t* bytes);

/* Collective. Prepares a plan to run on this rank's shards, one entry per tensor of the plan; their
 * memory must live as long as `prepared`. Allocates all memory that runs need. Waits for the
 * stream; no other stream may have outstanding operations of the communicator. A rank without a
 * part in the plan passes empty shards. If the plan is not the same on all ranks, if shards do not
 * fit the plan, or if memory is short, on any rank, all ranks get the same error, which says what
 * is wrong, and all may go on; after any other error the other ranks wait until their time limit.
 */
RESHARD_API int32_t reshard_nccl_prepare(reshard_nccl* nccl, const reshard_plan* plan,
                                         const reshard_nccl_shards* shards,
                                         reshard_nccl_plan** prepared);
/* Waits until no run is in progress, then for all other work on its GPU, as cudaFree does. */
RESHARD_API void reshard_nccl_plan_free(reshard_nccl_plan* prepared);

/* Collective. Puts one run on the stream and returns; call it any number of times, without waiting
 * in between. Reports errors that NCCL has reported for earlier runs. */
RESHARD_API int32_t reshard_nccl_run(reshard_nccl_plan* prepared);
/* Waits until all runs of this plan are done, watching the communicator, which waiting for the
 * stream would not. Neither collective nor required. */
RESHARD_API int32_t reshard_nccl_wait(reshard_nccl_plan* prepared);

#ifdef __cplusplus
}
#endif
#endif /* RESHARD_RESHARD_NCCL_H */
