// SPDX-License-Identifier: BSD-3-Clause
// Rings of shared memory: a caller's mistakes are reported, and after a failed run the rings refuse
// the next one.
#include <reshard/reshard_rings.h>
#include <catch2/catch.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/capi/job_calls.h"

using namespace reshard::test;

namespace {

constexpr std::size_t kPage = 4096;

// Rank 0's part of f32[4,4] S(0) -> S(1) on ranks 4 and 7, whose other rank never comes.
struct LoneRank {
  LoneRank() {
    reshard_request_texts texts = RESHARD_INIT(reshard_request_texts);
    texts.mesh = "2";
    texts.ranks = "4,7";
    texts.shape = "4,4";
    texts.from = "S(0)";
    texts.to = "S(1)";
    reshard_request* request = nullptr;
    REQUIRE(reshard_request_create(&texts, &request) == RESHARD_OK);
    REQUIRE(reshard_plan_create(request, nullptr, nullptr, &plan) == RESHARD_OK);
    reshard_request_free(request);
    REQUIRE(reshard_program_create(plan, 4, 0, &program) == RESHARD_OK);
    std::int64_t bytes = 0;
    REQUIRE(reshard_rings_get_bytes(2, &bytes) == RESHARD_OK);
    memory.resize(static_cast<std::size_t>(bytes) + kPage);
    auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    options.rank_count = 2;
    options.ranks = ranks.data();
    options.memory = memory.data() + (kPage - address % kPage) % kPage;
    options.memory_bytes = bytes;
    run.source = source.data();
    run.destination = destination.data();
    run.source_bytes = run.destination_bytes = 32;
  }
  ~LoneRank() {
    reshard_program_free(program);
    reshard_plan_free(plan);
  }
  void refuses(const std::string& what) const {
    reshard_rings* rings = nullptr;
    expect(reshard_rings_create(&options, &rings), RESHARD_INPUT_ERROR, what);
    CHECK(rings == nullptr);
  }
  reshard_plan* plan = nullptr;
  reshard_program* program = nullptr;
  std::vector<std::byte> memory;
  std::array<std::int32_t, 2> ranks{4, 7};
  reshard_rings_options options = RESHARD_INIT(reshard_rings_options);
  std::array<float, 8> source{}, destination{};
  reshard_run run = RESHARD_INIT(reshard_run);
};

}  // namespace

TEST_CASE("what is wrong with rings is said as they are made") {
  std::int64_t bytes = 0;
  expect(reshard_rings_get_bytes(0, &bytes), RESHARD_INPUT_ERROR, "rank_count: expected 1 to");
  expect(reshard_rings_get_bytes(2, nullptr), RESHARD_INPUT_ERROR, "bytes");
  LoneRank c;
  auto refused = [&](auto change, const std::string& what) {
    reshard_rings_options kept = c.options;
    change(c.options);
    c.refuses(what);
    c.options = kept;
  };
  using Options = reshard_rings_options;
  refused([](Options& o) { o.struct_size = 8; }, "options");
  refused([](Options& o) { o.place = 2; }, "place: expected one of 2, found 2");
  refused([](Options& o) { o.ranks = nullptr; }, "ranks: expected a pointer");
  refused([](Options& o) { o.reserved = 1; }, "reserved");
  refused([](Options& o) { o.memory = static_cast<std::byte*>(o.memory) + 64; },
          "memory: expected a page's first byte");
  refused([](Options& o) { --o.memory_bytes; }, "memory_bytes: expected at least");
  std::array<std::int32_t, 2> twice{4, 4};
  refused([&](Options& o) { o.ranks = twice.data(); }, "ranks: expected each once, found 4 again");
  expect(reshard_rings_create(&c.options, nullptr), RESHARD_INPUT_ERROR, "rings");
}

TEST_CASE("a run over rings waits as long as its limit, and no run follows it") {
  LoneRank c;
  std::vector<reshard_wait> asked;
  c.options.context = &asked;
  c.options.waiting = [](const reshard_wait* wait) {
    auto& all = *static_cast<std::vector<reshard_wait>*>(wait->context);
    all.push_back(*wait);
    return static_cast<std::int32_t>(all.size() == 3);
  };
  reshard_rings* rings = nullptr;
  REQUIRE(reshard_rings_create(&c.options, &rings) == RESHARD_OK);
  expect(reshard_execute_on_rings(c.program, &c.run, nullptr, 0), RESHARD_INPUT_ERROR, "rings");
  reshard_run with = c.run;
  with.context = &c;
  expect(reshard_execute_on_rings(c.program, &with, rings, 0), RESHARD_INPUT_ERROR,
         "expected NULL with rings");
  expect(reshard_execute_on_rings(c.program, &c.run, rings, 0), RESHARD_BACKEND_ERROR,
         "stopped by the caller");
  REQUIRE(asked.size() == 3);
  for (const reshard_wait& wait : asked) CHECK(wait.rank == 7);
  CHECK(asked[2].waited_ms >= asked[1].waited_ms);
  CHECK(asked[2].waited_ms >= 200);
  expect(reshard_execute_on_rings(c.program, &c.run, rings, 0), RESHARD_BACKEND_ERROR,
         "an earlier one failed");
  reshard_rings_free(rings);
  reshard_rings_free(nullptr);
}

TEST_CASE("ranks of a plan have places in its rings") {
  LoneRank c;
  c.ranks[1] = 5;
  reshard_rings* rings = nullptr;
  REQUIRE(reshard_rings_create(&c.options, &rings) == RESHARD_OK);
  expect(reshard_execute_on_rings(c.program, &c.run, rings, 0), RESHARD_INPUT_ERROR,
         "expected a place for rank 7");
  reshard_rings_free(rings);
}
