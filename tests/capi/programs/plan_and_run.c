/* SPDX-License-Identifier: BSD-3-Clause */
/* The C API in a C99 program: plan, ask, run. Compiled with -std=c99 -pedantic; also used to test
 * the installed headers and libraries. Prints one line and returns 0 if everything is as expected.
 */
#include <reshard/reshard.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "plan_and_run.c:%d: %s (last error: %s)\n", line, what, reshard_last_error());
}
#define EXPECT(CONDITION) expect((CONDITION) ? 1 : 0, #CONDITION, __LINE__)

/* Sizes of version 1: a change here is a change of the ABI. */
static void check_sizes(void) {
  EXPECT(sizeof(reshard_request_texts) == 16 + 11 * sizeof(void*));
  EXPECT(sizeof(reshard_plan_options) == 40);
  EXPECT(sizeof(reshard_plan_facts) == 64);
  EXPECT(sizeof(reshard_tensor) == 80 + 3 * sizeof(void*));
  EXPECT(sizeof(reshard_rank_bytes) == 40);
  EXPECT(sizeof(reshard_buffer) == 96);
  EXPECT(sizeof(reshard_times) == 64);
  EXPECT(sizeof(reshard_program_facts) == 32);
  EXPECT(sizeof(reshard_operation) == 344);
  EXPECT(sizeof(reshard_message) == 24);
  EXPECT(sizeof(reshard_move) == 208);
  EXPECT(sizeof(reshard_box) == 144);
  EXPECT(sizeof(reshard_transfer) == 24);
  EXPECT(sizeof(reshard_run) == 80);
  EXPECT(sizeof(reshard_shards) == 40);
  EXPECT(sizeof(reshard_held_buffer) == 16 + 2 * sizeof(void*));
  EXPECT(sizeof(reshard_lent_buffer) == 16 + 2 * sizeof(void*));
  EXPECT(sizeof(reshard_stored_buffer) == 88 + 2 * sizeof(void*));
  EXPECT(sizeof(reshard_model_texts) == 16 + 7 * sizeof(void*));
}

static reshard_plan* plan_of(const char* mesh, const char* shape, const char* from, const char* to,
                             const char* planner) {
  reshard_request_texts texts = RESHARD_INIT(reshard_request_texts);
  reshard_plan_options options = RESHARD_INIT(reshard_plan_options);
  reshard_request* request = NULL;
  reshard_plan* plan = NULL;
  texts.mesh = mesh;
  texts.shape = shape;
  texts.dtype = "i32";
  texts.from = from;
  texts.to = to;
  options.planner = planner;
  EXPECT(reshard_request_create(&texts, &request) == RESHARD_OK);
  EXPECT(reshard_plan_create(request, NULL, &options, &plan) == RESHARD_OK);
  reshard_request_free(request);
  return plan;
}

/* i32[4,4] S(0) -> S(1) on two ranks: each keeps 2 x 2 and sends 2 x 2. */
static void check_questions(void) {
  reshard_plan* plan = plan_of("2", "4,4", "S(0)", "S(1)", "p2p");
  reshard_plan_facts facts = RESHARD_INIT(reshard_plan_facts);
  reshard_rank_bytes bytes = RESHARD_INIT(reshard_rank_bytes);
  reshard_buffer buffer = RESHARD_INIT(reshard_buffer);
  reshard_times times = RESHARD_INIT(reshard_times);
  reshard_program* program = NULL;
  reshard_operation operation = RESHARD_INIT(reshard_operation);
  reshard_message message = RESHARD_INIT(reshard_message);
  reshard_move move = RESHARD_INIT(reshard_move);
  EXPECT(reshard_plan_get_facts(plan, &facts) == RESHARD_OK);
  EXPECT(facts.rank_count == 2 && facts.buffer_count == 2 && facts.step_count == 2 &&
         facts.dims == 2 && facts.element_bytes == 4);
  EXPECT(facts.peak_bytes_max == 64 && facts.received_bytes_max == 16 &&
         facts.received_bytes_total == 32 && facts.padding_bytes_total == 0);
  EXPECT(strcmp(reshard_plan_planner(plan), "p2p") == 0);
  EXPECT(strcmp(reshard_plan_request(plan), "i32[4,4] S(0) on 2 -> S(1)") == 0);
  EXPECT(reshard_plan_prove(plan) == RESHARD_OK);
  EXPECT(reshard_plan_get_rank_bytes(plan, 1, &bytes) == RESHARD_OK);
  EXPECT(bytes.source_bytes == 32 && bytes.destination_bytes == 32 && bytes.peak_bytes == 64 &&
         bytes.received_bytes == 16);
  EXPECT(reshard_plan_get_buffer(plan, 1, 1, &buffer) == RESHARD_OK);
  EXPECT(buffer.exists == 1 && buffer.bytes == 32 && buffer.shape[0] == 4 && buffer.shape[1] == 2 &&
         buffer.arena_offset == -1);
  EXPECT(reshard_plan_get_times(plan, NULL, &times) == RESHARD_OK);
  EXPECT(times.bound_ps > 0 && times.time_ps >= times.bound_ps);
  EXPECT(reshard_program_create(plan, 1, 0, &program) == RESHARD_OK);
  reshard_plan_free(plan); /* the program keeps what it needs */
  EXPECT(reshard_program_get_operation(program, 0, &operation) == RESHARD_OK);
  EXPECT(operation.kind == RESHARD_COPY && operation.part_count == 1 && operation.after_count == 0);
  EXPECT(reshard_program_get_move(program, 0, 0, 0, &move) == RESHARD_OK);
  EXPECT(move.source == 0 && move.destination == 1 && move.source_offset[1] == 2 &&
         move.destination_offset[0] == 2 && move.extents[0] == 2);
  EXPECT(reshard_program_get_operation(program, 1, &operation) == RESHARD_OK);
  EXPECT(operation.kind == RESHARD_EXCHANGE && operation.part_count == 2 &&
         operation.group_size == 0);
  EXPECT(reshard_program_get_message(program, 1, 0, &message) == RESHARD_OK);
  EXPECT(message.receives == 0 && message.peer == 0 && message.bytes == 16 &&
         message.move_count == 1);
  EXPECT(reshard_program_get_message(program, 1, 1, &message) == RESHARD_OK);
  EXPECT(message.receives == 1 && message.peer == 0 && message.bytes == 16);
  EXPECT(reshard_program_get_move(program, 1, 1, 0, &move) == RESHARD_OK);
  EXPECT(move.source_offset[1] == 2 && move.destination_offset[0] == 0 && move.extents[0] == 2 &&
         move.extents[1] == 2);
  reshard_program_free(program);
}

/* A reduce_scatter with padding: copy, fill, collective, copy. */
static void check_collective(void) {
  static const int kinds[] = {RESHARD_COPY, RESHARD_FILL, RESHARD_REDUCE_SCATTER, RESHARD_COPY};
  reshard_plan* plan = plan_of("4", "6,4", "P", "S(0)", "rule");
  reshard_program* program = NULL;
  reshard_program_facts facts = RESHARD_INIT(reshard_program_facts);
  reshard_operation operation = RESHARD_INIT(reshard_operation);
  reshard_box box = RESHARD_INIT(reshard_box);
  reshard_buffer buffer = RESHARD_INIT(reshard_buffer);
  int i;
  EXPECT(reshard_program_create(plan, 2, 64, &program) == RESHARD_OK);
  EXPECT(reshard_program_get_facts(program, &facts) == RESHARD_OK);
  EXPECT(facts.rank == 2 && facts.operation_count == 4 && facts.buffer_count == 4 &&
         facts.element_bytes == 4);
  for (i = 0; i < 4; ++i) {
    EXPECT(reshard_program_get_operation(program, i, &operation) == RESHARD_OK);
    EXPECT(operation.kind == kinds[i] && operation.step == i);
    if (i != 2) continue;
    EXPECT(operation.after_count == 2 && operation.after[0] == 0 && operation.after[1] == 1);
    EXPECT(operation.group_size == 4 && operation.member == 2 && operation.group[3] == 3);
    EXPECT(operation.input == 2 && operation.output == 3 && operation.input_bytes == 128 &&
           operation.output_bytes == 32);
    EXPECT(operation.reduce_op == RESHARD_SUM && operation.divisor == 1);
  }
  EXPECT(reshard_program_get_box(program, 1, 0, &box) == RESHARD_OK);
  EXPECT(box.buffer == 2 && box.offset[0] == 6 && box.extents[0] == 2 && box.extents[1] == 4 &&
         box.operand_count == 0);
  EXPECT(reshard_program_get_buffer(program, 3, &buffer) == RESHARD_OK);
  EXPECT(buffer.bytes == 32 && buffer.arena_offset == 128 && facts.arena_bytes == 160);
  reshard_program_free(program);
  reshard_plan_free(plan);
}

/* Two ranks in one thread: rank 0 runs first, and finds what rank 1 will send in what it is known
 * to hold. */
static int32_t send_nothing_receive_tens(void* context, const reshard_transfer* sends,
                                         int32_t send_count, const reshard_transfer* receives,
                                         int32_t receive_count) {
  static const int32_t block[] = {10, 11, 14, 15};
  int32_t* sent = (int32_t*)context;
  EXPECT(send_count == 1 && receive_count == 1 && sends[0].peer == 1 && receives[0].peer == 1);
  EXPECT(sends[0].bytes == 16 && receives[0].bytes == 16 && sends[0].tag == receives[0].tag);
  memcpy(sent, sends[0].data, 16);
  memcpy(receives[0].data, block, 16);
  return 0;
}

static void check_run(void) {
  static const int32_t expected_sent[] = {2, 3, 6, 7}, expected[] = {0, 1, 4, 5, 10, 11, 14, 15};
  int32_t source[8], destination[8], sent[4];
  reshard_plan* plan = plan_of("2", "4,4", "S(0)", "S(1)", "p2p");
  reshard_program* program = NULL;
  reshard_run run = RESHARD_INIT(reshard_run);
  int i;
  for (i = 0; i < 8; ++i) source[i] = i;
  EXPECT(reshard_program_create(plan, 0, 0, &program) == RESHARD_OK);
  run.exchange = send_nothing_receive_tens;
  run.context = sent;
  run.source = source;
  run.source_bytes = (int64_t)sizeof source;
  run.destination = destination;
  run.destination_bytes = (int64_t)sizeof destination;
  EXPECT(reshard_execute(program, &run) == RESHARD_OK);
  EXPECT(memcmp(sent, expected_sent, sizeof sent) == 0);
  EXPECT(memcmp(destination, expected, sizeof destination) == 0);
  reshard_program_free(program);
  reshard_plan_free(plan);
}

/* All ranks by one call: rows 0 1 and 2 3 become the left and the right half of every row. */
static void check_run_of_all(void) {
  static const int32_t expected[2][8] = {{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}};
  int32_t source[2][8], destination[2][8];
  reshard_plan* plan = plan_of("2", "4,4", "S(0)", "S(1)", NULL);
  reshard_shards shards[2] = {RESHARD_INIT(reshard_shards), RESHARD_INIT(reshard_shards)};
  int i, rank;
  for (rank = 0; rank < 2; ++rank) {
    for (i = 0; i < 8; ++i) source[rank][i] = 8 * rank + i;
    shards[rank].source = source[rank];
    shards[rank].source_bytes = (int64_t)sizeof source[rank];
    shards[rank].destination = destination[rank];
    shards[rank].destination_bytes = (int64_t)sizeof destination[rank];
  }
  EXPECT(reshard_execute_all(plan, shards, 2) == RESHARD_OK);
  EXPECT(memcmp(destination, expected, sizeof destination) == 0);
  reshard_plan_free(plan);
}

static void check_text(void) {
  reshard_plan *plan = plan_of("2", "4,4", "S(0)", "S(1)", NULL), *again = NULL;
  char *text = NULL, *text_again = NULL;
  int64_t bytes = 0, bytes_again = 0;
  EXPECT(reshard_plan_write(plan, &text, &bytes) == RESHARD_OK);
  EXPECT(reshard_plan_parse(text, bytes, &again) == RESHARD_OK);
  EXPECT(reshard_plan_write(again, &text_again, &bytes_again) == RESHARD_OK);
  EXPECT(bytes == bytes_again && memcmp(text, text_again, (size_t)bytes + 1) == 0);
  EXPECT(reshard_plan_parse("reshard-plan 9\n", 15, &again) == RESHARD_INPUT_ERROR);
  reshard_text_free(text);
  reshard_text_free(text_again);
  reshard_plan_free(plan);
  reshard_plan_free(again);
}

int main(void) {
  check_sizes();
  check_questions();
  check_collective();
  check_run();
  check_run_of_all();
  check_text();
  EXPECT(reshard_api_version() == RESHARD_API_VERSION);
  printf("reshard %s, API %d: %s\n", reshard_version(), (int)reshard_api_version(),
         failures == 0 ? "all as expected" : "NOT as expected");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
