/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reshard from C: plan a redistribution, ask what one rank does, run it over your own communicator
 * and buffers.
 *
 * Errors. Functions return RESHARD_OK or the exit code with which the program `reshard` would end;
 * reshard_last_error() says in one sentence why this thread's last failed call failed. No argument
 * crashes the library except an invalid pointer. Results are written only if a call succeeds.
 *
 * Structs. Each begins with `struct_size`, which the caller sets to the sizeof that it was compiled
 * with (before the call, in results too), so that later versions can add fields at the end. Unused
 * fields of a struct that is passed in must be 0; RESHARD_INIT does both.
 *
 * Handles are made by the *_create*, *_parse and *_join functions and freed by *_free, which accept
 * NULL. They never change, and several threads may use one at once. A program keeps its plan alive,
 * so handles may be freed in any order.
 *
 * Terms: a *rank* is numbered globally. A *buffer* is the source shard (0), the destination shard
 * (1) or a temporary of the plan (2 and above); it is local, dense and row-major. Of several
 * tensors the t-th, from 0, has the buffers 2 t and 2 t + 1, and temporaries come after those of
 * the last. A scalar has the shape (1). README.md in this folder explains the rest. */
#pragma once
#ifndef RESHARD_RESHARD_H /* guards against two copies, as in a build tree and installed */
#define RESHARD_RESHARD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RESHARD_API __attribute__((visibility("default")))
#else
#define RESHARD_API
#endif

/* The number of nodes in reshard.map. Nothing is ever removed under one SOVERSION. */
#define RESHARD_API_VERSION 9

#define RESHARD_MAX_DIMS 8

/* {sizeof(TYPE), 0, ...}: `reshard_plan_options options = RESHARD_INIT(reshard_plan_options);` */
#ifdef __cplusplus
#define RESHARD_INIT(TYPE) (::reshard_initialised<TYPE>())
#else
#define RESHARD_INIT(TYPE) \
  { .struct_size = (uint32_t)sizeof(TYPE) }
#endif

enum {
  RESHARD_OK = 0,
  RESHARD_FINDINGS = 1,      /* a check that was asked for did not hold; reshard_command only */
  RESHARD_INPUT_ERROR = 2,   /* an argument, text or limit is wrong or cannot be met */
  RESHARD_CHECK_FAILURE = 3, /* a bug in reshard */
  RESHARD_BACKEND_ERROR = 4  /* the system, MPI, or the caller's exchange function failed */
};

RESHARD_API int32_t reshard_api_version(void); /* the loaded library's RESHARD_API_VERSION */
RESHARD_API const char* reshard_version(void); /* "0.1.0" */
/* The text of this thread's last failed call; "" if none has failed. Valid until the thread's next
 * call. */
RESHARD_API const char* reshard_last_error(void);

/* ---- Requests and topologies ---- */

typedef struct reshard_request reshard_request;
typedef struct reshard_topology reshard_topology;

/* The texts of the command line's options; NULL: the option is not given. */
typedef struct reshard_request_texts {
  uint32_t struct_size;
  uint32_t reserved;
  const char* mesh;         /* "4x4", "dp=4,tp=4", "[[0,1],[2,3]]" */
  const char* ranks;        /* "0-7"; NULL: 0 .. n-1 */
  const char* to_mesh;      /* NULL: the source's */
  const char* to_ranks;     /* NULL: the source's, or 0 .. n-1 of to_mesh */
  const char* shape;        /* "32,8192,4096"; "" is a scalar */
  const char* dtype;        /* "bf16"; NULL: f32 */
  const char* from;         /* "S(0)R" */
  const char* to;           /* "RS(1)" */
  const char* name;         /* of the tensor, for reports: UTF-8; NULL: none */
  const char* id;           /* by which others of its job name it; NULL: none */
  const char* const* after; /* the ids of those of its job that it comes after, on every rank
                               (docs/commands.md, "Order within a job") */
  int32_t after_count;
  uint32_t reserved_after;
} reshard_request_texts;

RESHARD_API int32_t reshard_request_create(const reshard_request_texts* texts,
                                           reshard_request** request);
RESHARD_API void reshard_request_free(reshard_request* request);

/* A preset ("dgx-h100"), a preset with a count ("dgx-h100:4"), or the path of a topology file. */
RESHARD_API int32_t reshard_topology_create(const char* name, reshard_topology** topology);
/* Parses the text of a topology file; `count` is the count in "NAME:COUNT", or 0 for none. */
RESHARD_API int32_t reshard_topology_parse(const char* text, int64_t count,
                                           reshard_topology** topology);
RESHARD_API void reshard_topology_free(reshard_topology* topology);

/* ---- Plans ---- */

typedef struct reshard_plan reshard_plan;

typedef struct reshard_plan_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* planner;        /* NULL: "auto" */
  int64_t memory_limit_bytes; /* the most bytes that a rank may hold at once; 0: no limit */
  int64_t extra_memory_bytes; /* the same beyond source and destination; 0: no limit */
  int32_t no_extra_memory;    /* 1: nothing beyond source and destination, a limit of 0 */
  int32_t free_source;        /* 1: a source counts until nothing reads it any more, a destination
                                 from its first write. For executors that free and allocate them so:
                                 those of this library run on shards that exist throughout */
} reshard_plan_options;

/* Plans and proves. `topology` NULL: as many dgx-h100 as the ranks need; `options` NULL: none. */
RESHARD_API int32_t reshard_plan_create(const reshard_request* request,
                                        const reshard_topology* topology,
                                        const reshard_plan_options* options, reshard_plan** plan);
/* The same for a job: plans `count` requests together, at least one, which the caller keeps. The
 * plan has a tensor for each, in this order. Equal requests, as those of most layers are, cost
 * little. */
RESHARD_API int32_t reshard_plan_create_job(const reshard_request* const* requests, int32_t count,
                                            const reshard_topology* topology,
                                            const reshard_plan_options* options,
                                            reshard_plan** plan);
/* The same for the requests in a file, as `reshard simulate --requests PATH` reads it. `topology`
 * NULL: the one that the file names, if any. */
RESHARD_API int32_t reshard_plan_create_job_from_file(const char* path,
                                                      const reshard_topology* topology,
                                                      const reshard_plan_options* options,
                                                      reshard_plan** plan);
/* The same for the text of such a file; `text_bytes` of it. */
RESHARD_API int32_t reshard_plan_create_job_from_text(const char* text, int64_t text_bytes,
                                                      const reshard_topology* topology,
                                                      const reshard_plan_options* options,
                                                      reshard_plan** plan);
/* Reads and proves a plan's text. If the proof fails, returns an input error that says why. */
RESHARD_API int32_t reshard_plan_parse(const char* text, int64_t text_bytes, reshard_plan** plan);
RESHARD_API void reshard_plan_free(reshard_plan* plan);
/* Joins `count` plans, which the caller keeps, into one of all their tensors, which stay
 * independent: the steps of the first plan, then those of the second, and so on. */
RESHARD_API int32_t reshard_plan_join(const reshard_plan* const* plans, int32_t count,
                                      reshard_plan** plan);
/* The plan's text, which parse reads back to an equal plan. Free it with reshard_text_free. */
RESHARD_API int32_t reshard_plan_write(const reshard_plan* plan, char** text, int64_t* text_bytes);
RESHARD_API void reshard_text_free(char* text);

/* Ranks that run a plan over their own transport (reshard_execute) must have the same plan:
 * programs of two different plans would exchange wrong bytes. Compare digests before the first run.
 * `digest`: memory for 33 characters, 32 hexadecimal digits and the terminating NUL; equal for
 * equal plans only. */
RESHARD_API int32_t reshard_plan_get_digest(const reshard_plan* plan, char* digest);
/* How the plan differs from the plan with this text: "destination placements R, where the other one
 * has S(1)"; empty if they are equal. Free it with reshard_text_free. */
RESHARD_API int32_t reshard_plan_compare(const reshard_plan* plan, const char* text,
                                         int64_t text_bytes, char** difference,
                                         int64_t* difference_bytes);

/* Writes a report of the plan on the topology that it was made for, or the default one of a plan
 * that was read or joined. `form`: "table", "explanation", "json", "html", "perfetto", "simulation"
 * or "simulation-proof" (README.md). Free `text` with reshard_text_free. */
RESHARD_API int32_t reshard_plan_report(const reshard_plan* plan, const char* form, char** text,
                                        int64_t* text_bytes);

typedef struct reshard_plan_facts {
  uint32_t struct_size;
  int32_t rank_count;   /* ranks of source and destination together */
  int32_t buffer_count; /* source and destination of each tensor in turn, then temporaries */
  int32_t step_count;
  int32_t dims;               /* the same for every buffer; at least 1 */
  int32_t element_bytes;      /* 0 if the tensors' element sizes differ */
  int64_t peak_bytes_max;     /* source, destination and live temporaries on the fullest rank */
  int64_t received_bytes_max; /* from other ranks, padding included */
  int64_t received_bytes_total;
  int64_t padding_bytes_total; /* the part of received_bytes_total that is zero padding */
  int32_t tensor_count;
  int32_t reserved;
} reshard_plan_facts;

RESHARD_API int32_t reshard_plan_get_facts(const reshard_plan* plan, reshard_plan_facts* facts);
/* "p2p"; for `auto`, the planner that it chose. Valid as long as the plan; "" for NULL. */
RESHARD_API const char* reshard_plan_planner(const reshard_plan* plan);
/* "bf16[8192,8192] S(0)R on 2x4 -> RS(1)"; for several tensors "...; ...", and after the fourth how
 * many more. Valid as long as the plan; "" for NULL. */
RESHARD_API const char* reshard_plan_request(const reshard_plan* plan);
/* Proves the plan again: every destination element holds exactly what the request asks for. */
RESHARD_API int32_t reshard_plan_prove(const reshard_plan* plan);

/* The index-th of the plan's ranks, ascending. */
RESHARD_API int32_t reshard_plan_get_rank(const reshard_plan* plan, int32_t index, int32_t* rank);

typedef struct reshard_tensor {
  uint32_t struct_size;
  int32_t dims; /* its own: 0 for a scalar. In buffers, which all have the dims of the plan, it has
                   leading dims of extent 1 */
  int64_t shape[RESHARD_MAX_DIMS];
  int32_t element_bytes;
  int32_t reserved;
  /* Valid as long as the plan: */
  const char* dtype;   /* "bf16" */
  const char* name;    /* as requested; "" for none, and always for a plan that was read */
  const char* request; /* as reshard_plan_request */
} reshard_tensor;

/* The tensor-th of the plan, from 0. */
RESHARD_API int32_t reshard_plan_get_tensor(const reshard_plan* plan, int32_t tensor,
                                            reshard_tensor* result);

typedef struct reshard_rank_bytes {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t source_bytes;      /* of all tensors; 0 if the rank has no source shard */
  int64_t destination_bytes; /* of all tensors; 0 if the rank has no destination shard */
  int64_t peak_bytes;
  int64_t received_bytes;
} reshard_rank_bytes;

RESHARD_API int32_t reshard_plan_get_rank_bytes(const reshard_plan* plan, int32_t rank,
                                                reshard_rank_bytes* bytes);

typedef struct reshard_buffer {
  uint32_t struct_size;
  int32_t exists; /* 0: this rank does not have the buffer, and the rest is 0 */
  int64_t bytes;
  int64_t arena_offset; /* bytes; where a temporary is in the arena; -1: it is not a temporary, no
                           step of the rank uses it, or no program was asked */
  int64_t shape[RESHARD_MAX_DIMS];
  int32_t tensor;
  int32_t element_bytes;
} reshard_buffer;

RESHARD_API int32_t reshard_plan_get_buffer(const reshard_plan* plan, int32_t rank, int32_t buffer,
                                            reshard_buffer* result);

typedef struct reshard_times {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t time_ps;  /* simulated, alone on the topology, with the topology's own transport: NCCL for
                       all presets, links alone if the topology names none */
  int64_t bound_ps; /* a lower bound for any plan of all tensors on the topology: the greatest of
                       the five below */
  int64_t cut_ps, volume_ps, latency_ps;
  int64_t price_ps, holder_ps; /* 0 if they do not apply */
} reshard_times;

/* `topology` as in the function that made the plan. */
RESHARD_API int32_t reshard_plan_get_times(const reshard_plan* plan,
                                           const reshard_topology* topology, reshard_times* times);

/* ---- The command line ---- */

/* Runs `reshard ARGUMENTS` and returns what it prints: tables, or JSON (tools/json-schemas.md) with
 * "--json". For plan, simulate, replay, sweep, model, kv, calibrate, topo, check, digest, layout,
 * where, compare and ops.
 * Reads and writes the files that the options name. Fails with the program's exit codes; with
 * RESHARD_FINDINGS the text is returned nevertheless. Free it with reshard_text_free. */
RESHARD_API int32_t reshard_command(const char* const* arguments, int32_t count, char** text,
                                    int64_t* text_bytes);

/* ---- Digests of what ranks hold (docs/digest.md) ---- */

typedef struct reshard_held_buffer {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /* as the layouts have it: UTF-8 */
  const void* data;
  int64_t bytes; /* all of the buffer, padding included */
} reshard_held_buffer;

/* Digests of the buffers of one rank, as a file that `reshard digest` reads. `layouts`: a file, as
 * `reshard check` reads it; `side`: "from" or "to"; `rows` of a block, 0: the default, as when the
 * expected digests were printed; `buffers`: `count` of them, all of the same struct_size, each at
 * most once. Free `text` with reshard_text_free. */
RESHARD_API int32_t reshard_digest_buffers(const char* layouts, const char* side, int32_t rank,
                                           int64_t rows, const reshard_held_buffer* buffers,
                                           int32_t count, char** text, int64_t* text_bytes);
/* Joins the digests of several ranks, at least one, into one file. Free `text` with
 * reshard_text_free. */
RESHARD_API int32_t reshard_digest_gather(const char* const* texts, int32_t count, char** text,
                                          int64_t* text_bytes);

#ifdef __cplusplus
}

template <class T>
inline T reshard_initialised() {
  T value = T();
  value.struct_size = static_cast<uint32_t>(sizeof(T));
  return value;
}
#endif

#include <reshard/reshard_buffers.h>
#include <reshard/reshard_program.h>

#endif /* RESHARD_RESHARD_H */
