/* SPDX-License-Identifier: BSD-3-Clause */
/* The C API for MPI in a C99 program on 4 processes: a communicator of the caller's with another
 * order than MPI_COMM_WORLD, the caller's shards, several runs, and errors on all processes at
 * once. */
#include <reshard/reshard_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0, me = 0;

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "run_on_mpi.c:%d: process %d: %s (last errors: %s; %s)\n", line, me, what,
          reshard_mpi_last_error(), reshard_last_error());
}
#define EXPECT(CONDITION) expect((CONDITION) ? 1 : 0, #CONDITION, __LINE__)

static reshard_request* request_of(const char* mesh, const char* ranks, const char* from,
                                   const char* to) {
  reshard_request_texts texts = RESHARD_INIT(reshard_request_texts);
  reshard_request* request = NULL;
  texts.mesh = mesh;
  texts.ranks = ranks;
  texts.shape = "8,8";
  texts.dtype = "i32";
  texts.from = from;
  texts.to = to;
  EXPECT(reshard_request_create(&texts, &request) == RESHARD_OK);
  return request;
}

static reshard_plan* plan_of(const char* mesh, const char* ranks, const char* from,
                             const char* to) {
  reshard_request* request = request_of(mesh, ranks, from, to);
  reshard_plan* plan = NULL;
  EXPECT(reshard_plan_create(request, NULL, NULL, &plan) == RESHARD_OK);
  reshard_request_free(request);
  return plan;
}

/* Two rows of 8 x 8 become two columns; element (r, c) is base + 8 r + c. */
static void rows_to_columns(reshard_mpi* mpi) {
  int32_t source[16], destination[16], run, i;
  reshard_plan* plan = plan_of("4", NULL, "S(0)", "S(1)");
  reshard_mpi_plan* prepared = NULL;
  reshard_mpi_shards shards = RESHARD_INIT(reshard_mpi_shards);
  shards.source = source;
  shards.source_bytes = (int64_t)sizeof source;
  shards.destination = destination;
  shards.destination_bytes = (int64_t)sizeof destination;
  EXPECT(reshard_mpi_prepare(mpi, plan, &shards, &prepared) == RESHARD_OK);
  reshard_plan_free(plan);
  for (run = 0; run < 3; ++run) {
    for (i = 0; i < 16; ++i) {
      source[i] = 1000 * run + 16 * me + i;
      destination[i] = -1;
    }
    EXPECT(reshard_mpi_run(prepared) == RESHARD_OK);
    for (i = 0; i < 16; ++i) EXPECT(destination[i] == 1000 * run + 8 * (i / 2) + 2 * me + i % 2);
  }
  reshard_mpi_plan_free(prepared);
}

/* Sums of what ranks 1 and 3 hold end on both, split; processes 0 and 2 have no part. */
static void sums_on_two(reshard_mpi* mpi) {
  int32_t source[64], destination[32], i;
  int takes_part = me % 2;
  reshard_plan* plan = plan_of("2", "1,3", "P", "S(0)");
  reshard_mpi_plan* prepared = NULL;
  reshard_mpi_shards shards = RESHARD_INIT(reshard_mpi_shards);
  for (i = 0; i < 64; ++i) source[i] = me * 100 + i;
  if (takes_part) {
    shards.source = source;
    shards.source_bytes = (int64_t)sizeof source;
    shards.destination = destination;
    shards.destination_bytes = (int64_t)sizeof destination;
  }
  EXPECT(reshard_mpi_prepare(mpi, plan, &shards, &prepared) == RESHARD_OK);
  EXPECT(reshard_mpi_run(prepared) == RESHARD_OK);
  for (i = 0; takes_part && i < 32; ++i)
    EXPECT(destination[i] == 400 + 2 * (i + (me == 3 ? 32 : 0)));
  reshard_mpi_plan_free(prepared);
  reshard_plan_free(plan);
}

/* Both of the above in one plan: processes 0 and 2 have a part in one tensor alone. */
static void job(reshard_mpi* mpi) {
  int32_t rows[16], columns[16], addends[64], sums[32], i;
  int takes_part = me % 2;
  reshard_request* requests[2];
  reshard_plan* plan = NULL;
  reshard_mpi_plan* prepared = NULL;
  reshard_mpi_shards shards[2] = {RESHARD_INIT(reshard_mpi_shards),
                                  RESHARD_INIT(reshard_mpi_shards)};
  requests[0] = request_of("4", NULL, "S(0)", "S(1)");
  requests[1] = request_of("2", "1,3", "P", "S(0)");
  EXPECT(reshard_plan_create_job((const reshard_request* const*)requests, 2, NULL, NULL, &plan) ==
         RESHARD_OK);
  for (i = 0; i < 2; ++i) reshard_request_free(requests[i]);
  for (i = 0; i < 16; ++i) rows[i] = 16 * me + i;
  for (i = 0; i < 64; ++i) addends[i] = me * 100 + i;
  shards[0].source = rows;
  shards[0].source_bytes = (int64_t)sizeof rows;
  shards[0].destination = columns;
  shards[0].destination_bytes = (int64_t)sizeof columns;
  if (takes_part) {
    shards[1].source = addends;
    shards[1].source_bytes = (int64_t)sizeof addends;
    shards[1].destination = sums;
    shards[1].destination_bytes = (int64_t)sizeof sums;
  }
  EXPECT(reshard_mpi_prepare(mpi, plan, shards, &prepared) == RESHARD_OK);
  EXPECT(reshard_mpi_run(prepared) == RESHARD_OK);
  for (i = 0; i < 16; ++i) EXPECT(columns[i] == 8 * (i / 2) + 2 * me + i % 2);
  for (i = 0; takes_part && i < 32; ++i) EXPECT(sums[i] == 400 + 2 * (i + (me == 3 ? 32 : 0)));
  reshard_mpi_plan_free(prepared);
  reshard_plan_free(plan);
}

static void errors(reshard_mpi* mpi) {
  int32_t memory[16] = {0};
  reshard_plan *plan = plan_of("4", NULL, "S(0)", "S(1)"),
               *wide = plan_of("2", "0,9", "S(0)", "S(1)");
  reshard_mpi* another = NULL;
  reshard_mpi_plan* prepared = NULL;
  reshard_mpi_options options = RESHARD_INIT(reshard_mpi_options);
  reshard_mpi_shards shards = RESHARD_INIT(reshard_mpi_shards);
  EXPECT(reshard_mpi_prepare(NULL, plan, &shards, &prepared) == RESHARD_INPUT_ERROR);
  EXPECT(reshard_mpi_prepare(mpi, NULL, &shards, &prepared) == RESHARD_INPUT_ERROR);
  EXPECT(reshard_mpi_prepare(mpi, plan, NULL, &prepared) == RESHARD_INPUT_ERROR);
  EXPECT(reshard_mpi_prepare(mpi, plan, &shards, NULL) == RESHARD_INPUT_ERROR);
  EXPECT(reshard_mpi_run(NULL) == RESHARD_INPUT_ERROR &&
         strstr(reshard_mpi_last_error(), "prepared") != NULL);
  EXPECT(reshard_mpi_prepare(mpi, wide, &shards, &prepared) == RESHARD_INPUT_ERROR &&
         strstr(reshard_mpi_last_error(), "rank 9") != NULL);
  shards.source = memory;
  shards.source_bytes = 60;
  EXPECT(reshard_mpi_prepare(mpi, plan, &shards, &prepared) == RESHARD_INPUT_ERROR);
  shards.source = NULL;
  EXPECT(reshard_mpi_prepare(mpi, plan, &shards, &prepared) == RESHARD_INPUT_ERROR &&
         strstr(reshard_mpi_last_error(), "found NULL") != NULL);
  shards.source_bytes = -4;
  EXPECT(reshard_mpi_prepare(mpi, plan, &shards, &prepared) == RESHARD_INPUT_ERROR);
  EXPECT(reshard_mpi_create(MPI_COMM_NULL, NULL, &another) == RESHARD_INPUT_ERROR);
  EXPECT(reshard_mpi_create(MPI_COMM_WORLD, NULL, NULL) == RESHARD_INPUT_ERROR);
  options.time_limit_s = -1;
  EXPECT(reshard_mpi_create(MPI_COMM_WORLD, &options, &another) == RESHARD_INPUT_ERROR);
  EXPECT(prepared == NULL && another == NULL);
  reshard_mpi_free(NULL);
  reshard_mpi_plan_free(NULL);
  reshard_plan_free(plan);
  reshard_plan_free(wide);
}

/* The last process has another plan than the others: all are told what differs, nothing moves, and
 * all go on. */
static void different_plans(reshard_mpi* mpi) {
  static const struct {
    const char *ranks, *from, *to, *says;
  } rows[] = {{NULL, "S(0)", "R", "destination placements R, where rank 0 has S(1)"},
              {NULL, "R", "S(1)", "source placements R, where rank 0 has S(0)"},
              {"3,2,1,0", "S(0)", "S(1)", "source ranks 3,2,1,0, where rank 0 has 0-3"}};
  int32_t source[64], destination[64];
  size_t i, row;
  for (row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
    int other = me == 3, whole_from = other && rows[row].from[0] == 'R',
        whole_to = other && rows[row].to[0] == 'R';
    reshard_mpi_plan* prepared = NULL;
    reshard_mpi_shards shards = RESHARD_INIT(reshard_mpi_shards);
    reshard_plan* plan = other ? plan_of("4", rows[row].ranks, rows[row].from, rows[row].to)
                               : plan_of("4", NULL, "S(0)", "S(1)");
    for (i = 0; i < 64; ++i) destination[i] = -1;
    shards.source = source;
    shards.source_bytes = whole_from ? 256 : 64;
    shards.destination = destination;
    shards.destination_bytes = whole_to ? 256 : 64;
    EXPECT(reshard_mpi_prepare(mpi, plan, &shards, &prepared) == RESHARD_INPUT_ERROR);
    EXPECT(strstr(reshard_mpi_last_error(), "on rank 3 than on rank 0") != NULL);
    EXPECT(strstr(reshard_mpi_last_error(), rows[row].says) != NULL);
    EXPECT(prepared == NULL && destination[0] == -1);
    reshard_plan_free(plan);
  }
}

/* One process has no plan at all: the others are told, at once. */
static void one_without_a_plan(reshard_mpi* mpi) {
  int32_t memory[32];
  reshard_mpi_plan* prepared = NULL;
  reshard_plan* plan = plan_of("4", NULL, "S(0)", "S(1)");
  reshard_mpi_shards shards = RESHARD_INIT(reshard_mpi_shards);
  shards.source = memory;
  shards.source_bytes = 64;
  shards.destination = memory + 16;
  shards.destination_bytes = 64;
  EXPECT(reshard_mpi_prepare(mpi, me == 2 ? NULL : plan, &shards, &prepared) ==
         RESHARD_INPUT_ERROR);
  EXPECT(strstr(reshard_mpi_last_error(), "rank 2: plan: expected") != NULL);
  reshard_plan_free(plan);
}

/* Two prepared plans, run in another order by one process. */
static void another_order(reshard_mpi* mpi) {
  int32_t source[2][16], destination[2][16], i, k;
  reshard_plan* plan = plan_of("4", NULL, "S(0)", "S(1)");
  reshard_mpi_plan* prepared[2] = {NULL, NULL};
  for (k = 0; k < 2; ++k) {
    reshard_mpi_shards shards = RESHARD_INIT(reshard_mpi_shards);
    shards.source = source[k];
    shards.source_bytes = 64;
    shards.destination = destination[k];
    shards.destination_bytes = 64;
    for (i = 0; i < 16; ++i) {
      source[k][i] = 100 * k + me;
      destination[k][i] = -1;
    }
    EXPECT(reshard_mpi_prepare(mpi, plan, &shards, &prepared[k]) == RESHARD_OK);
  }
  EXPECT(reshard_mpi_run(prepared[me == 1]) == RESHARD_INPUT_ERROR);
  EXPECT(strstr(reshard_mpi_last_error(), "expected all ranks to run the same prepared plan") !=
         NULL);
  for (i = 0; i < 16; ++i) EXPECT(destination[0][i] == -1 && destination[1][i] == -1);
  for (k = 0; k < 2; ++k) {
    EXPECT(reshard_mpi_run(prepared[k]) == RESHARD_OK);
    for (i = 0; i < 16; ++i) EXPECT(destination[k][i] == 100 * k + i / 4);
    reshard_mpi_plan_free(prepared[k]);
  }
  reshard_plan_free(plan);
}

/* Some share memory, some do not: said by all. */
static void different_options(MPI_Comm comm) {
  reshard_mpi* mpi = NULL;
  reshard_mpi_options options = RESHARD_INIT(reshard_mpi_options);
  options.no_shared_memory = me == 1;
  EXPECT(reshard_mpi_create(comm, &options, &mpi) == RESHARD_INPUT_ERROR && mpi == NULL);
  EXPECT(strstr(reshard_mpi_last_error(), "found 1 on rank 0 and 0 on rank 1") != NULL);
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  reshard_mpi* mpi = NULL;
  reshard_mpi_options options = RESHARD_INIT(reshard_mpi_options);
  int world_rank = 0, all = 0, way;
  EXPECT(reshard_mpi_create(MPI_COMM_WORLD, NULL, &mpi) == RESHARD_INPUT_ERROR &&
         strstr(reshard_mpi_last_error(), "initialised") != NULL);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm);
  MPI_Comm_rank(comm, &me);
  for (way = 0; way < 2; ++way) {
    options.no_shared_memory = (uint32_t)way;
    options.time_limit_s = 60;
    EXPECT(reshard_mpi_create(comm, &options, &mpi) == RESHARD_OK);
    rows_to_columns(mpi);
    sums_on_two(mpi);
    job(mpi);
    errors(mpi);
    different_plans(mpi);
    one_without_a_plan(mpi);
    another_order(mpi);
    rows_to_columns(mpi);
    reshard_mpi_free(mpi);
  }
  different_options(comm);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, comm);
  if (me == 0) printf("run_on_mpi: %s\n", all == 0 ? "all as expected" : "NOT as expected");
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return all == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
