/* SPDX-License-Identifier: BSD-3-Clause */
/* The C API for NCCL in a C99 program without NCCL, without a communicator and perhaps without a
 * GPU: the header is self-contained, structs have their sizes, and every call is refused with a
 * sentence. */
#include <reshard/reshard_nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

/* As in an ABI: other numbers are another SOVERSION. */
typedef char options_size[sizeof(reshard_nccl_options) == 24 ? 1 : -1];
typedef char shards_size[sizeof(reshard_nccl_shards) == 40 ? 1 : -1];

#ifdef RESHARD_HAS_NCCL
static void expect(int holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "refuse_without_nccl.c:%d: %s (last error: %s)\n", line, what,
          reshard_nccl_last_error());
}
#define EXPECT(CONDITION) expect((CONDITION) ? 1 : 0, #CONDITION, __LINE__)
static int says(const char* text) { return strstr(reshard_nccl_last_error(), text) != NULL; }

static void refusals(void) {
  int64_t bytes = -7;
  char nothing[64] = {0};
  struct ncclComm* no_comm = (struct ncclComm*)(void*)nothing;
  reshard_nccl* nccl = NULL;
  reshard_nccl_plan* prepared = NULL;
  reshard_nccl_shards shards = RESHARD_INIT(reshard_nccl_shards);
  reshard_nccl_options options = RESHARD_INIT(reshard_nccl_options);
  EXPECT(strcmp(reshard_nccl_last_error(), "") == 0);
  EXPECT(reshard_nccl_create(NULL, NULL, NULL, &nccl) == RESHARD_INPUT_ERROR &&
         says("comm: expected a communicator, found NULL"));
  EXPECT(reshard_nccl_create(no_comm, NULL, NULL, NULL) == RESHARD_INPUT_ERROR &&
         says("nccl: expected a pointer"));
  options.nccl_collectives = 2;
  EXPECT(reshard_nccl_create(no_comm, NULL, &options, &nccl) == RESHARD_INPUT_ERROR &&
         says("nccl_collectives: expected 0 or 1, found 2"));
  options.nccl_collectives = 1;
  options.abort_on_error = 3;
  EXPECT(reshard_nccl_create(no_comm, NULL, &options, &nccl) == RESHARD_INPUT_ERROR &&
         says("abort_on_error: expected 0 or 1, found 3"));
  options.abort_on_error = 0;
  options.reserved = 1;
  EXPECT(reshard_nccl_create(no_comm, NULL, &options, &nccl) == RESHARD_INPUT_ERROR &&
         says("reserved: expected 0"));
  options.reserved = 0;
  options.time_limit_s = -1;
  EXPECT(reshard_nccl_create(no_comm, NULL, &options, &nccl) == RESHARD_INPUT_ERROR &&
         says("time_limit_s: expected 0 to "));
  options.time_limit_s = 5;
  options.struct_size = 4;
  EXPECT(reshard_nccl_create(no_comm, NULL, &options, &nccl) == RESHARD_INPUT_ERROR &&
         says("options"));
  /* Nobody has loaded NCCL here, so that this cannot be a communicator of it; it is not looked at.
   */
  EXPECT(reshard_nccl_create(no_comm, NULL, NULL, &nccl) == RESHARD_BACKEND_ERROR &&
         says("this process has not loaded it") && says("RESHARD_NCCL_LIBRARY"));
  EXPECT(reshard_nccl_get_memory(NULL, NULL, &shards, &bytes) == RESHARD_INPUT_ERROR &&
         says("nccl: expected a pointer"));
  EXPECT(reshard_nccl_prepare(NULL, NULL, &shards, &prepared) == RESHARD_INPUT_ERROR &&
         says("nccl: expected a pointer"));
  EXPECT(reshard_nccl_run(NULL) == RESHARD_INPUT_ERROR && says("prepared: expected a pointer"));
  EXPECT(reshard_nccl_wait(NULL) == RESHARD_INPUT_ERROR && says("prepared: expected a pointer"));
  EXPECT(nccl == NULL && prepared == NULL && bytes == -7);
  reshard_nccl_plan_free(NULL);
  reshard_nccl_free(NULL);
}
#endif

int main(void) {
#ifdef RESHARD_HAS_NCCL
  refusals();
  printf("refuse_without_nccl: %s\n", failures == 0 ? "all as expected" : "NOT as expected");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
#else
  printf("skipped: built without NCCL; the header alone was compiled (sizes %u and %u)\n",
         (unsigned)sizeof(options_size), (unsigned)sizeof(shards_size));
  return failures == 0 ? 77 : EXIT_FAILURE;
#endif
}
