/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A part of reshard.h, which includes it: plans between the buffers that a model's ranks have, as a
 * file of layouts gives them (docs/check.md, reshard_plan_create_job_from_file), and such files of
 * models that frameworks spread over ranks.
 *
 * Programs and executors run on shards, of which each represents all that a rank has of a tensor.
 * reshard_rank_buffers finds the shards in the buffers: shards that are one dense stretch of a
 * buffer are run on in place, others are copied, before a run and after it. */
#pragma once
#ifndef RESHARD_RESHARD_BUFFERS_H
#define RESHARD_RESHARD_BUFFERS_H

#include <reshard/reshard_program.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A model's config.json and two parallelisms: the texts of `reshard model`. */
typedef struct reshard_model_texts {
  uint32_t struct_size;
  uint32_t reserved;
  const char* config; /* the text of config.json, `config_bytes` of it */
  int64_t config_bytes;
  const char* config_name; /* of its file, for messages; NULL: "config" */
  const char* from;        /* "megatron tp=8 pp=8": before the transfer */
  const char* to;          /* "vllm tp=32 ep replicas=4": after it */
  const char* ranks;       /* "0-7", of `from`; NULL, here and below: the program's default */
  const char* to_ranks;    /* of `to` */
  const char* dtype;       /* in which weights are sent */
} reshard_model_texts;

/* The file of layouts of such a transfer, for reshard_plan_create_job_from_text. `notes`: what is
 * assumed or left out, a line each. Free both with reshard_text_free. */
RESHARD_API int32_t reshard_model_write_layouts(const reshard_model_texts* texts, char** layouts,
                                                int64_t* layouts_bytes, char** notes,
                                                int64_t* notes_bytes);

enum { RESHARD_FROM = 0, RESHARD_TO = 1 }; /* sides: before the transfer, after it */

typedef struct reshard_stored_buffer {
  uint32_t struct_size;
  int32_t rank;
  const char* name;  /* as the layouts have it: UTF-8; valid as long as the plan */
  const char* dtype; /* "bf16" */
  int32_t dims;
  int32_t reserved;
  int64_t shape[RESHARD_MAX_DIMS];
  int64_t bytes; /* all of it, padding included */
} reshard_stored_buffer;

/* How many buffers all ranks have on that side; 0 for a plan that is not of layouts. */
RESHARD_API int32_t reshard_plan_get_stored_count(const reshard_plan* plan, int32_t side,
                                                  int32_t* count);
/* The buffer-th of them, from 0, in the order of the file's lines. */
RESHARD_API int32_t reshard_plan_get_stored_buffer(const reshard_plan* plan, int32_t side,
                                                   int32_t buffer, reshard_stored_buffer* result);

/* Memory of a whole buffer, which the host can read and, on the side RESHARD_TO, write. */
typedef struct reshard_lent_buffer {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;
  void* data; /* on the side RESHARD_FROM it is not written */
  int64_t bytes;
} reshard_lent_buffer;

typedef struct reshard_rank_buffers reshard_rank_buffers;

/* The rank's buffers of both sides, in any order, each once and none left out; all of the same
 * struct_size. The memory stays in use, and no buffer of RESHARD_TO may overlap another. */
RESHARD_API int32_t reshard_rank_buffers_create(const reshard_plan* plan, int32_t rank,
                                                const reshard_lent_buffer* from, int32_t from_count,
                                                const reshard_lent_buffer* to, int32_t to_count,
                                                reshard_rank_buffers** buffers);
RESHARD_API void reshard_rank_buffers_free(reshard_rank_buffers* buffers);

/* The shards by tensor, `count` of them, as many as the plan has tensors: what reshard_run.tensors
 * points to, and a rank's part of what reshard_execute_all and the functions that prepare take.
 * Valid as long as `buffers`. The caller sets struct_size in all. */
RESHARD_API int32_t reshard_rank_buffers_get_shards(const reshard_rank_buffers* buffers,
                                                    reshard_shards* shards, int32_t count);
/* Bytes of the shards that are not in their buffers. */
RESHARD_API int32_t reshard_rank_buffers_get_staged_bytes(const reshard_rank_buffers* buffers,
                                                          int64_t* bytes);
/* Before every run: reads the buffers of RESHARD_FROM. */
RESHARD_API int32_t reshard_rank_buffers_gather(const reshard_rank_buffers* buffers);
/* After every run: writes those of RESHARD_TO, but not their padding. */
RESHARD_API int32_t reshard_rank_buffers_scatter(const reshard_rank_buffers* buffers);

#ifdef __cplusplus
}
#endif

#endif /* RESHARD_RESHARD_BUFFERS_H */
