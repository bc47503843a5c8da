/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Plans on a caller's NCCL communicator, CUDA stream and device memory: the executor behind
 * `reshard validate --backend nccl`, inside a program that has its own.
 *
 * Link libreshard_nccl beside libreshard. Rank r of a plan is rank r of the communicator. Errors,
 * structs and handles are as in reshard.h, but the text of an error comes from
 * reshard_nccl_last_error(), and a handle is used by one thread at a time. Functions marked
 * collective are called by all ranks of the communicator in the same order, as is every use of it.
 *
 * What is lent. The communicator is neither finalized nor destroyed, and aborted only where
 * abort_on_error asks for that. It must be of the libnccl.so.2 that this process has loaded, 2.14
 * or newer; $RESHARD_NCCL_LIBRARY names another library that has NCCL in it (a framework's). Its
 * GPU is the thread's current device after every call here.
 *
 * Streams. Everything runs on the one stream that is given: after what the caller put there before,
 * before what comes later. Reading the destination, changing the source or freeing either must be
 * ordered behind that stream. Not to be captured into a graph. The stream may be NULL, CUDA's
 * default one. */
#pragma once
#ifndef RESHARD_RESHARD_NCCL_H /* the same header from two places, as in a build tree and \
                                  installed */
#define RESHARD_RESHARD_NCCL_H

#include <reshard/reshard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What ncclComm_t and cudaStream_t point to. */
struct ncclComm;
struct CUstream_st;

RESHARD_API const char* reshard_nccl_last_error(void);

typedef struct reshard_nccl reshard_nccl;
typedef struct reshard_nccl_plan reshard_nccl_plan;

typedef struct reshard_nccl_options {
  uint32_t struct_size;
  /* 0: messages only, over the communicator itself; folds in the plan's order, bits are those of
   * `reshard simulate`. 1: collectives are NCCL's own, on splits of the communicator that prepare
   * makes where they are not there yet; each costs time and GPU memory, and floating sums and
   * products of three and more are in NCCL's order. */
  uint32_t nccl_collectives;
  /* 1: where others are lost the communicator is aborted, too, which ends kernels that wait for
   * them; it must not be used or destroyed after that. */
  uint32_t abort_on_error;
  uint32_t reserved;
  int64_t time_limit_s; /* for a single wait on other ranks or the GPU, then RESHARD_BACKEND_ERROR;
                           0: 300. After such an error only the free functions are of use */
} reshard_nccl_options;

/* Not collective. Takes 64 KiB of GPU memory. `options` NULL: the defaults. */
RESHARD_API int32_t reshard_nccl_create(struct ncclComm* comm, struct CUstream_st* stream,
                                        const reshard_nccl_options* options, reshard_nccl** nccl);
/* Collective, before the communicator goes. Plans made on it must be gone. */
RESHARD_API void reshard_nccl_free(reshard_nccl* nccl);

/* In memory of the communicator's GPU. */
typedef reshard_shards reshard_nccl_shards;

/* Bytes of GPU memory that prepare would take for these shards, one for every tensor of the plan:
 * temporaries, messages as they are packed, tables; beside what NCCL takes for splits. Not
 * collective. */
RESHARD_API int32_t reshard_nccl_get_memory(reshard_nccl* nccl, const reshard_plan* plan,
                                            const reshard_nccl_shards* shards, int64_t* bytes);

/* Collective. Makes a plan ready on this rank's shards, one for every tensor of the plan, which
 * stay where they are and must live as long as `prepared`. Takes all memory that runs need. Waits
 * for the stream; no other stream may have operations of the communicator outstanding. A rank
 * without a part in the plan gives empty shards. A plan that is not the same on all ranks, shards
 * that are not the plan's, or memory that is not there, on any rank, are the same error on all
 * ranks, which says what differs, and all go on; any other error leaves the others to their time
 * limit. */
RESHARD_API int32_t reshard_nccl_prepare(reshard_nccl* nccl, const reshard_plan* plan,
                                         const reshard_nccl_shards* shards,
                                         reshard_nccl_plan** prepared);
/* Waits until no run is under way, then for whatever else its GPU is at, as cudaFree does. */
RESHARD_API void reshard_nccl_plan_free(reshard_nccl_plan* prepared);

/* Collective. Puts one run on the stream and returns; as often as asked, without waiting in
 * between. Says what NCCL has reported of earlier runs. */
RESHARD_API int32_t reshard_nccl_run(reshard_nccl_plan* prepared);
/* Waits until all runs of this plan are done and watches the communicator meanwhile, which waiting
 * for the stream does not. Not collective, and not needed. */
RESHARD_API int32_t reshard_nccl_wait(reshard_nccl_plan* prepared);

#ifdef __cplusplus
}
#endif
#endif /* RESHARD_RESHARD_NCCL_H */
