// SPDX-License-Identifier: BSD-3-Clause
// Every mistake of a caller results in a code and a sentence, never in a crash, and leaves results
// alone.
#include <reshard/reshard.h>
#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/capi/job_calls.h"

using Catch::Matchers::Contains;
using namespace reshard::test;

namespace {

reshard_request_texts texts(const char* mesh, const char* shape, const char* from, const char* to) {
  reshard_request_texts out = RESHARD_INIT(reshard_request_texts);
  out.mesh = mesh;
  out.shape = shape;
  out.from = from;
  out.to = to;
  return out;
}

// Plan and programs of f32[4,4] S(0) -> S(1) on two ranks.
struct Programs {
  Programs() {
    reshard_request_texts t = texts("2", "4,4", "S(0)", "S(1)");
    REQUIRE(reshard_request_create(&t, &request) == RESHARD_OK);
    reshard_plan_options options = RESHARD_INIT(reshard_plan_options);
    options.planner = "p2p";
    REQUIRE(reshard_plan_create(request, nullptr, &options, &plan) == RESHARD_OK);
    REQUIRE(reshard_program_create(plan, 0, 0, &program) == RESHARD_OK);
    run.struct_size = sizeof run;
    run.exchange = [](void*, const reshard_transfer*, std::int32_t, const reshard_transfer*,
                      std::int32_t) { return 0; };
    run.source = source.data();
    run.destination = destination.data();
    run.source_bytes = run.destination_bytes = 32;
  }
  ~Programs() {
    reshard_program_free(program);
    reshard_plan_free(plan);
    reshard_request_free(request);
  }
  reshard_request* request = nullptr;
  reshard_plan* plan = nullptr;
  reshard_program* program = nullptr;
  std::array<float, 8> source{}, destination{};
  reshard_run run{};
};

}  // namespace

TEST_CASE("texts that are wrong are input errors that name the field") {
  reshard_request* request = nullptr;
  auto create = [&](reshard_request_texts t) { return reshard_request_create(&t, &request); };
  expect_input_error(create(texts(nullptr, "4", "R", "R")), "mesh: expected a pointer, found NULL");
  expect_input_error(create(texts("2", nullptr, "R", "R")), "shape");
  expect_input_error(create(texts("2", "4", nullptr, "R")), "from");
  expect_input_error(create(texts("2", "4", "R", nullptr)), "to: expected");
  expect_input_error(create(texts("2x", "4", "R", "R")), "mesh");
  expect_input_error(create(texts("2", "4,,", "R", "R")), "shape");
  expect_input_error(create(texts("2", "4", "S(7)", "R")), "from");
  expect_input_error(create(texts("2", "4", "S(0)", "P(max)")), "forbidden");
  reshard_request_texts bad_type = texts("2", "4", "R", "R");
  bad_type.dtype = "f33";
  expect_input_error(create(bad_type), "f33");
  CHECK(request == nullptr);
  expect_input_error(reshard_request_create(nullptr, &request), "texts");
  reshard_request_texts good = texts("2", "4", "R", "R");
  expect_input_error(reshard_request_create(&good, nullptr), "request");
}

TEST_CASE("structs of another version are refused or understood") {
  reshard_request* request = nullptr;
  reshard_request_texts t = texts("2", "4", "R", "S(0)");
  for (std::uint32_t size :
       {0u, 4u, static_cast<std::uint32_t>(offsetof(reshard_request_texts, name)) - 1, 5000u,
        0xccccccccu}) {
    t.struct_size = size;
    expect_input_error(reshard_request_create(&t, &request), "struct_size");
  }
  // A caller compiled with a later header: fine as long as it does not ask for what we do not know.
  struct Later {
    reshard_request_texts known;
    std::int64_t added;
  } later{texts("2", "4", "R", "S(0)"), 0};
  later.known.struct_size = sizeof later;
  REQUIRE(reshard_request_create(&later.known, &request) == RESHARD_OK);
  reshard_request_free(request);
  later.added = 1;
  expect_input_error(reshard_request_create(&later.known, &request), "unknown to this version");
  later.added = 0;
  later.known.reserved = 1;
  expect_input_error(reshard_request_create(&later.known, &request), "reserved");

  Programs c;
  struct LaterFacts {
    reshard_plan_facts known;
    std::int64_t added;
  } facts{{}, -1};
  facts.known.struct_size = sizeof facts;
  REQUIRE(reshard_plan_get_facts(c.plan, &facts.known) == RESHARD_OK);
  CHECK(facts.known.struct_size == sizeof facts);
  CHECK(facts.known.rank_count == 2);
  CHECK(facts.added == 0);
  // A caller of the first version, whose struct ends earlier.
  facts.known = {};
  facts.known.struct_size = offsetof(reshard_plan_facts, tensor_count);
  facts.known.tensor_count = 77;
  REQUIRE(reshard_plan_get_facts(c.plan, &facts.known) == RESHARD_OK);
  CHECK((facts.known.rank_count == 2 && facts.known.tensor_count == 77));
  facts.known.struct_size = 8;
  facts.known.rank_count = 99;
  expect_input_error(reshard_plan_get_facts(c.plan, &facts.known), "struct_size");
  CHECK(facts.known.rank_count == 99);
}

TEST_CASE("plans are joined, and their shards are asked for by tensor") {
  Programs c;
  reshard_plan* two[] = {c.plan, c.plan};
  reshard_plan* joined = nullptr;
  expect_input_error(reshard_plan_join(two, 0, &joined), "count: expected 1 or more");
  expect_input_error(reshard_plan_join(nullptr, 2, &joined), "plans");
  REQUIRE(reshard_plan_join(two, 2, &joined) == RESHARD_OK);
  reshard_plan_facts one = RESHARD_INIT(reshard_plan_facts), both = one;
  REQUIRE(reshard_plan_get_facts(c.plan, &one) == RESHARD_OK);
  REQUIRE(reshard_plan_get_facts(joined, &both) == RESHARD_OK);
  CHECK((one.tensor_count == 1 && both.tensor_count == 2));
  CHECK(both.received_bytes_total == 2 * one.received_bytes_total);
  CHECK(reshard_plan_request(joined) ==
        std::string(reshard_plan_request(c.plan)) + "; " + reshard_plan_request(c.plan));
  reshard_times alone = RESHARD_INIT(reshard_times), together = alone;
  REQUIRE(reshard_plan_get_times(c.plan, nullptr, &alone) == RESHARD_OK);
  REQUIRE(reshard_plan_get_times(joined, nullptr, &together) == RESHARD_OK);
  CHECK((together.bound_ps > alone.bound_ps && together.bound_ps < 2 * alone.bound_ps));
  // Messages so small wait for their launches, side by side.
  CHECK(together.time_ps >= alone.time_ps);
  reshard_program* program = nullptr;
  REQUIRE(reshard_program_create(joined, 0, 0, &program) == RESHARD_OK);
  reshard_run run = RESHARD_INIT(reshard_run);
  expect_input_error(reshard_execute(program, &run), "tensors: expected shards of 2 tensors");
  // What follows the second is 0, as a larger struct of a later version would have it.
  reshard_shards shards[3] = {RESHARD_INIT(reshard_shards), RESHARD_INIT(reshard_shards), {}};
  run.tensors = shards;
  shards[1].struct_size += 8;
  expect_input_error(reshard_execute(program, &run), "the same struct_size in all");
  run.source = &run;
  expect_input_error(reshard_execute(program, &run), "expected NULL with tensors");
  reshard_program_free(program);
  reshard_plan_free(joined);
}

TEST_CASE("null handles and results are input errors everywhere") {
  Programs c;
  std::int32_t rank = 0;
  std::int64_t bytes = 0;
  char* text = nullptr;
  reshard_plan* plan = nullptr;
  reshard_topology* topology = nullptr;
  reshard_program* program = nullptr;
  reshard_buffer buffer = RESHARD_INIT(reshard_buffer);
  reshard_times times = RESHARD_INIT(reshard_times);
  for (std::int32_t code : {reshard_topology_create(nullptr, &topology),
                            reshard_topology_create("dgx-h100", nullptr),
                            reshard_topology_parse(nullptr, 0, &topology),
                            reshard_plan_create(nullptr, nullptr, nullptr, &plan),
                            reshard_plan_create(c.request, nullptr, nullptr, nullptr),
                            reshard_plan_parse(nullptr, 0, &plan),
                            reshard_plan_parse("x", 1, nullptr),
                            reshard_plan_write(nullptr, &text, &bytes),
                            reshard_plan_write(c.plan, nullptr, &bytes),
                            reshard_plan_write(c.plan, &text, nullptr),
                            reshard_plan_get_facts(nullptr, nullptr),
                            reshard_plan_get_facts(c.plan, nullptr),
                            reshard_plan_prove(nullptr),
                            reshard_plan_get_rank(nullptr, 0, &rank),
                            reshard_plan_get_rank(c.plan, 0, nullptr),
                            reshard_plan_get_rank_bytes(nullptr, 0, nullptr),
                            reshard_plan_get_rank_bytes(c.plan, 0, nullptr),
                            reshard_plan_get_buffer(nullptr, 0, 0, &buffer),
                            reshard_plan_get_buffer(c.plan, 0, 0, nullptr),
                            reshard_plan_get_times(nullptr, nullptr, &times),
                            reshard_plan_get_times(c.plan, nullptr, nullptr),
                            reshard_program_create(nullptr, 0, 0, &program),
                            reshard_program_create(c.plan, 0, 0, nullptr),
                            reshard_program_get_facts(nullptr, nullptr),
                            reshard_program_get_facts(c.program, nullptr),
                            reshard_program_get_buffer(nullptr, 0, &buffer),
                            reshard_program_get_buffer(c.program, 0, nullptr),
                            reshard_program_get_operation(nullptr, 0, nullptr),
                            reshard_program_get_operation(c.program, 0, nullptr),
                            reshard_program_get_message(nullptr, 0, 0, nullptr),
                            reshard_program_get_move(nullptr, 0, 0, 0, nullptr),
                            reshard_program_get_box(nullptr, 0, 0, nullptr),
                            reshard_program_get_operand(nullptr, 0, 0, 0, nullptr),
                            reshard_execute(nullptr, &c.run),
                            reshard_execute(c.program, nullptr)})
    expect_input_error(code, "expected a pointer, found NULL");
  CHECK(text == nullptr);
  reshard_request_free(nullptr);
  reshard_topology_free(nullptr);
  reshard_plan_free(nullptr);
  reshard_program_free(nullptr);
  reshard_text_free(nullptr);
  CHECK(std::string(reshard_plan_planner(nullptr)).empty());
  CHECK(std::string(reshard_plan_request(nullptr)).empty());
}

TEST_CASE("numbers out of range and questions of the wrong kind are input errors") {
  Programs c;
  std::int32_t rank = -7;
  reshard_program* program = nullptr;
  reshard_plan* plan = nullptr;
  reshard_topology* topology = nullptr;
  reshard_buffer buffer = RESHARD_INIT(reshard_buffer);
  reshard_box box = RESHARD_INIT(reshard_box);
  reshard_move move = RESHARD_INIT(reshard_move);
  reshard_operation operation = RESHARD_INIT(reshard_operation);
  reshard_message message = RESHARD_INIT(reshard_message);
  expect_input_error(reshard_plan_get_rank(c.plan, 2, &rank), "less than 2, found 2");
  expect_input_error(reshard_plan_get_rank(c.plan, -1, &rank), "found -1");
  CHECK(rank == -7);
  expect_input_error(reshard_plan_get_buffer(c.plan, 5, 0, &buffer), "expected one of 0-1");
  expect_input_error(reshard_plan_get_buffer(c.plan, 0, 2, &buffer), "buffer");
  expect_input_error(reshard_program_create(c.plan, 9, 0, &program), "rank");
  for (std::int64_t alignment : {std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 40})
    expect_input_error(reshard_program_create(c.plan, 0, alignment, &program), "alignment");
  expect_input_error(reshard_program_get_operation(c.program, 2, &operation), "operation");
  // Operation 0 copies, operation 1 exchanges.
  expect_input_error(reshard_program_get_message(c.program, 0, 0, &message),
                     "expected an exchange, found copy");
  expect_input_error(reshard_program_get_message(c.program, 1, 2, &message), "message");
  expect_input_error(reshard_program_get_move(c.program, 0, 1, 0, &move), "message");
  expect_input_error(reshard_program_get_move(c.program, 1, 0, 1, &move), "move");
  expect_input_error(reshard_program_get_box(c.program, 0, 0, &box), "expected a fill or a reduce");
  expect_input_error(reshard_program_get_operand(c.program, 1, 0, 0, &box),
                     "expected a reduce, found exchange");
  expect_input_error(reshard_plan_parse("reshard-plan 1\nplanner x\n", -1, &plan), "text_bytes");
  expect_input_error(reshard_plan_parse("nonsense", 8, &plan), "text:1");
  expect_input_error(reshard_topology_create("no-such-machine", &topology), "no-such-machine");
  expect_input_error(reshard_topology_parse("nonsense", 0, &topology), "text:1");
  expect_input_error(reshard_topology_parse("nonsense", -4, &topology), "count");
  reshard_plan_options options = RESHARD_INIT(reshard_plan_options);
  options.planner = "fastest";
  expect_input_error(reshard_plan_create(c.request, nullptr, &options, &plan), "fastest");
  options.planner = nullptr;
  options.memory_limit_bytes = 63;
  expect_input_error(reshard_plan_create(c.request, nullptr, &options, &plan), "memory limit");
  options.memory_limit_bytes = -1;
  expect_input_error(reshard_plan_create(c.request, nullptr, &options, &plan),
                     "memory_limit_bytes");
  CHECK((plan == nullptr && program == nullptr && topology == nullptr));
}

TEST_CASE("a plan that the proof refutes is refused with the reason") {
  Programs c;
  char* text = nullptr;
  std::int64_t bytes = 0;
  REQUIRE(reshard_plan_write(c.plan, &text, &bytes) == RESHARD_OK);
  std::string wrong(text, static_cast<std::size_t>(bytes));
  reshard_text_free(text);
  std::size_t at = wrong.find("-> b1[0:2,0:2]");
  REQUIRE(at != std::string::npos);
  wrong.replace(at, 14, "-> b1[2:4,0:2]");
  reshard_plan* plan = nullptr;
  expect_input_error(
      reshard_plan_parse(wrong.data(), static_cast<std::int64_t>(wrong.size()), &plan), "text:");
}

TEST_CASE("memory that does not fit the rank is refused before anything is written") {
  Programs c;
  auto with = [&](auto&& change) {
    reshard_run run = c.run;
    change(run);
    return reshard_execute(c.program, &run);
  };
  c.destination.fill(7);
  std::vector<float> shared(16);
  expect_input_error(with([](auto& run) { run.source_bytes = 31; }), "source_bytes: expected 32");
  expect_input_error(with([](auto& run) { run.destination_bytes = 64; }),
                     "destination_bytes: expected 32");
  expect_input_error(with([](auto& run) { run.source = nullptr; }),
                     "source: expected memory of 32 bytes, found NULL");
  expect_input_error(with([](auto& run) { run.destination = nullptr; }), "destination");
  expect_input_error(
      with([&](auto& run) { run.source = reinterpret_cast<const char*>(shared.data()) + 1; }),
      "aligned");
  expect_input_error(
      with([&](auto& run) { run.destination = const_cast<float*>(c.source.data()); }), "overlap");
  expect_input_error(with([](auto& run) { run.struct_size = 8; }), "struct_size");
  expect_input_error(with([](auto& run) { run.reserved = 8; }), "reserved");
  CHECK(c.destination[0] == 7);
  expect_input_error(with([](auto& run) { run.exchange = nullptr; }), "exchange");
}

TEST_CASE("memory for all ranks that does not fit the plan is refused before anything is written") {
  Programs c;
  std::vector<float> sources(16, 1), destinations(16, 7);
  auto with = [&](auto&& change, std::int64_t count = 2) {
    std::array<reshard_shards, 3> shards{};  // zeros behind the last
    for (std::size_t r = 0; r < 2; ++r)
      shards[r] = {sizeof(reshard_shards), 0, &sources[8 * r], 32, &destinations[8 * r], 32};
    change(shards);
    return reshard_execute_all(c.plan, shards.data(), count);
  };
  auto as_is = [](auto&) {};
  expect_input_error(reshard_execute_all(nullptr, nullptr, 2), "plan");
  expect_input_error(reshard_execute_all(c.plan, nullptr, 2), "shards");
  for (std::int64_t count : {-1, 0, 1, 3})
    expect_input_error(with(as_is, count),
                       "count: expected 2, shards of 1 tensors on 2 ranks, found");
  expect_input_error(with([](auto& all) { all[1].source_bytes = 16; }),
                     "source_bytes of rank 1: expected 32, the size of the rank's shard, found 16");
  expect_input_error(with([](auto& all) { all[0].destination_bytes = 33; }),
                     "destination_bytes of rank 0: expected 32");
  expect_input_error(with([](auto& all) { all[1].destination = nullptr; }), "found NULL");
  expect_input_error(
      with([&](auto& all) { all[1].source = reinterpret_cast<const char*>(sources.data()) + 1; }),
      "source of rank 1: expected memory aligned to elements of 4 bytes");
  expect_input_error(with([&](auto& all) { all[0].destination = &sources[9]; }),
                     "source of rank 1: expected memory separate from the destination of rank 0, "
                     "found an overlap");
  expect_input_error(
      with([&](auto& all) { all[1].destination = &destinations[7]; }),
      "destination of rank 1: expected memory separate from the destination of rank 0");
  expect_input_error(with([&](auto& all) { all[1].source = &destinations[1]; }),
                     "source of rank 1: expected memory separate from the destination of rank 0");
  expect_input_error(with([](auto& all) { all[1].struct_size = 48; }),
                     "the same struct_size in all");
  expect_input_error(with([](auto& all) { all[1].reserved = 1; }), "reserved");
  CHECK(destinations == std::vector<float>(16, 7));
  // Sources may overlap, and memory that touches is apart.
  CHECK(with([&](auto& all) { all[1].source = all[0].source; }) == RESHARD_OK);
  CHECK(destinations == std::vector<float>(16, 1));
}

TEST_CASE("memory is apart from all that reaches it, not only from what begins before it") {
  Programs c;
  reshard_request_texts t = texts("2", "2,2", "S(0)", "S(1)");
  reshard_request* request = nullptr;
  reshard_plan *small = nullptr, *both = nullptr;
  REQUIRE(reshard_request_create(&t, &request) == RESHARD_OK);
  REQUIRE(reshard_plan_create(request, nullptr, nullptr, &small) == RESHARD_OK);
  std::array<const reshard_plan*, 2> plans{c.plan, small};
  REQUIRE(reshard_plan_join(plans.data(), 2, &both) == RESHARD_OK);
  // The small sources lie within the large one of rank 0, and so would a destination behind them.
  std::vector<float> sources(16, 3), destinations(20);
  std::array<reshard_shards, 4> shards;
  for (std::size_t r = 0; r < 2; ++r) {
    shards[2 * r] = {sizeof(reshard_shards), 0, &sources[8 * r], 32, &destinations[8 * r], 32};
    shards[2 * r + 1] = {sizeof(reshard_shards), 0, &sources[1], 8, &destinations[16 + 2 * r], 8};
  }
  CHECK(reshard_execute_all(both, shards.data(), 4) == RESHARD_OK);
  CHECK(destinations == std::vector<float>(20, 3));
  shards[3].destination = &sources[5];
  expect_input_error(reshard_execute_all(both, shards.data(), 4),
                     "destination of tensor 1 of rank 1: expected memory separate from the source "
                     "of tensor 0 of rank 0");
  reshard_plan_free(small);
  reshard_plan_free(both);
  reshard_request_free(request);
}

TEST_CASE("a communicator that fails ends the run with its code") {
  Programs c;
  c.run.exchange = [](void*, const reshard_transfer*, std::int32_t, const reshard_transfer*,
                      std::int32_t) { return 42; };
  expect(reshard_execute(c.program, &c.run), RESHARD_BACKEND_ERROR, "it returned 42");
  c.run.exchange = [](void*, const reshard_transfer*, std::int32_t, const reshard_transfer*,
                      std::int32_t) -> std::int32_t { throw std::runtime_error("x"); };
  expect(reshard_execute(c.program, &c.run), RESHARD_BACKEND_ERROR, "exception");
}

TEST_CASE("errors belong to the thread that made them") {
  Programs c;
  expect_input_error(reshard_plan_prove(nullptr), "plan");
  std::thread([] {
    CHECK(std::string(reshard_last_error()).empty());
    expect_input_error(reshard_topology_create("elsewhere", nullptr), "topology");
  }).join();
  CHECK_THAT(reshard_last_error(), Contains("plan"));
  // Longer texts than the library keeps are cut, not overrun.
  reshard_topology* topology = nullptr;
  CHECK(reshard_topology_parse(std::string(100'000, 'x').c_str(), 0, &topology) ==
        RESHARD_INPUT_ERROR);
  CHECK(std::strlen(reshard_last_error()) < 4096);
}
