// SPDX-License-Identifier: BSD-3-Clause
// Jobs through the C API: many requests planned together, from handles or from a file, asked about
// by every function that plans of one tensor have; and what is refused. That jobs of every planner
// are moved is in test_capi_conformance.cpp.
#include <reshard/reshard.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/capi/job_calls.h"

using namespace reshard::test;
using Catch::Matchers::Contains;

namespace {

// Other shapes, dtypes, numbers of dims and meshes; two are equal but for their names.
const std::vector<Asked> kJob{
    {"embedding", "8,4", "i32", "S(0)", "S(1)", "4", nullptr, nullptr, nullptr},
    {"layer.0", "6,10", "i32", "S(0)R", "RS(1)", "2x2", nullptr, nullptr, nullptr},
    {"layer.1", "6,10", "i32", "S(0)R", "RS(1)", "2x2", nullptr, nullptr, nullptr},
    {nullptr, "7", "i64", "P(sum)", "S(0)", "3", nullptr, nullptr, nullptr},
    {"head", "5,3,2", "u8", "R", "S(1)", "2", "0-1", "3", "2-4"},
    {"scale", "", "bf16", "R", "R", "2", nullptr, "5", nullptr}};

constexpr const char* kLines = R"x({"reshard_trace": 1, "topology": "dgx-a100",)x"
                               R"x( "meshes": {"to": {"mesh": "tp=4", "ranks": "2-5"}}}
{"name": "wq", "shape": [16, 8], "dtype": "bf16", "from": "S(0)", "to": "S(1)", "mesh": "4"}
{"name": "wk", "shape": [16, 8], "dtype": "bf16", "from": "S(0)", "to": "S(1)", "mesh": "4",)x"
                               R"x( "to_mesh": "to"}
{"shape": [9], "dtype": "f32", "from": "P(sum)", "to": "R", "mesh": "4"}
)x";

}  // namespace

TEST_CASE("a job from handles is the job of a file, and prints what the command prints") {
  JobFile file(kLines);
  reshard_plan* read = nullptr;
  REQUIRE(reshard_plan_create_job_from_file(file.path.c_str(), nullptr, nullptr, &read) ==
          RESHARD_OK);
  PlanHandle of_file(read, reshard_plan_free);
  Requests requests({{"wq", "16,8", "bf16", "S(0)", "S(1)", "4", {}, {}, {}},
                     {"wk", "16,8", "bf16", "S(0)", "S(1)", "4", {}, "tp=4", "2-5"},
                     {nullptr, "9", "f32", "P(sum)", "R", "4", {}, {}, {}}});
  reshard_topology* topology = nullptr;
  REQUIRE(reshard_topology_create("dgx-a100", &topology) == RESHARD_OK);
  reshard_plan* made = nullptr;
  REQUIRE(reshard_plan_create_job(requests.all.data(), 3, topology, nullptr, &made) == RESHARD_OK);
  PlanHandle of_handles(made, reshard_plan_free);
  reshard_topology_free(topology);
  CHECK(digest(read) == digest(made));
  const char* path = file.path.c_str();
  for (const reshard_plan* plan : {read, made}) {
    CHECK(report(plan, "table") == command({"plan", "--requests", path}));
    CHECK(report(plan, "explanation") == command({"plan", "--requests", path, "--explain"}));
    CHECK(report(plan, "json") == command({"plan", "--requests", path, "--json"}));
    CHECK(report(plan, "simulation") == command({"simulate", "--requests", path, "--json"}));
    CHECK(report(plan, "simulation-proof") ==
          command({"simulate", "--requests", path, "--json", "--data", "proof"}));
    CHECK(report(plan, "perfetto") ==
          command({"simulate", "--requests", path, "--data", "proof", "--perfetto", "-"}));
    CHECK_THAT(report(plan, "table"), Contains("dgx-a100") && Contains("wk: tensor 1, bf16[16,8]"));
    CHECK_THAT(report(plan, "html"), Contains("wk: tensor 1, bf16[16,8]"));
  }
  reshard_times times = RESHARD_INIT(reshard_times), of_named = times;
  REQUIRE(reshard_topology_create("dgx-a100", &topology) == RESHARD_OK);
  REQUIRE(reshard_plan_get_times(made, topology, &times) == RESHARD_OK);
  REQUIRE(reshard_plan_get_times(read, nullptr, &of_named) == RESHARD_OK);
  CHECK(std::memcmp(&times, &of_named, sizeof times) == 0);
  reshard_topology_free(topology);
  nlohmann::json json = nlohmann::json::parse(report(made, "json"));
  CHECK(times.time_ps == json["time_ps"]);
  CHECK(times.bound_ps == json["bound"]["time_ps"]);
  CHECK(times.bound_ps == std::max({times.cut_ps, times.volume_ps, times.latency_ps, times.price_ps,
                                    times.holder_ps}));
  CHECK(times.time_ps >= times.bound_ps);
}

TEST_CASE("the order of a file's requests is kept") {
  auto text = [](const char* order) {
    return std::string(R"x({"id": 1, "shape": [64], "dtype": "f32", "from": "S(0)", "to": "R",)x") +
           R"x( "mesh": "4"}
{"shape": [64], "dtype": "f32", "from": "R", "to": "S(0)", "mesh": "4")x" +
           order + R"x(, "to_mesh": "2"}
)x";
  };
  std::vector<std::string> texts;
  for (const char* order : {"", R"x(, "after": 1)x"}) {
    JobFile file(text(order));
    reshard_plan* plan = nullptr;
    REQUIRE(reshard_plan_create_job_from_file(file.path.c_str(), nullptr, nullptr, &plan) ==
            RESHARD_OK);
    texts.push_back(taken_text([&](auto... out) { return reshard_plan_write(plan, out...); }));
    CHECK(texts.back() == command({"plan", "--requests", file.path.c_str(), "--emit", "plan"}));
    CHECK(report(plan, "table") == command({"plan", "--requests", file.path.c_str()}));
    reshard_plan_free(plan);
  }
  CHECK(texts[0] != texts[1]);
}

TEST_CASE("a job's tensors and buffers are asked for one by one") {
  PlanHandle plan = plan_of(kJob, "auto");
  reshard_plan_facts facts = RESHARD_INIT(reshard_plan_facts);
  REQUIRE(reshard_plan_get_facts(plan.get(), &facts) == RESHARD_OK);
  CHECK((facts.tensor_count == 6 && facts.rank_count == 5 && facts.dims == 3));
  CHECK(facts.element_bytes == 0);
  CHECK_THAT(reshard_plan_request(plan.get()), Contains("and 2 more"));
  CHECK(reshard_plan_prove(plan.get()) == RESHARD_OK);
  std::vector<std::int64_t> held(5);
  for (std::int32_t t = 0; t < facts.tensor_count; ++t) {
    const Asked& asked = kJob[static_cast<std::size_t>(t)];
    reshard_tensor tensor = RESHARD_INIT(reshard_tensor);
    REQUIRE(reshard_plan_get_tensor(plan.get(), t, &tensor) == RESHARD_OK);
    CHECK(tensor.name == std::string(asked.name == nullptr ? "" : asked.name));
    CHECK(tensor.dtype == std::string(asked.dtype));
    std::string shape;
    for (int d = 0; d < tensor.dims; ++d)
      shape += (d == 0 ? "" : ",") + std::to_string(tensor.shape[d]);
    CHECK(shape == asked.shape);
    CHECK_THAT(tensor.request, Catch::Matchers::StartsWith(asked.dtype + ("[" + shape + "] ")));
    for (std::int32_t b : {2 * t, 2 * t + 1})
      for (std::int32_t rank = 0; rank < 5; ++rank) {
        reshard_buffer buffer = RESHARD_INIT(reshard_buffer);
        REQUIRE(reshard_plan_get_buffer(plan.get(), rank, b, &buffer) == RESHARD_OK);
        if (buffer.exists == 0) continue;
        CHECK((buffer.tensor == t && buffer.element_bytes == tensor.element_bytes));
        for (int d = 0; d < 3 - tensor.dims; ++d) CHECK(buffer.shape[d] == 1);
        held[static_cast<std::size_t>(rank)] += buffer.bytes;
      }
  }
  for (std::int32_t rank = 0; rank < 5; ++rank) {
    reshard_rank_bytes bytes = RESHARD_INIT(reshard_rank_bytes);
    REQUIRE(reshard_plan_get_rank_bytes(plan.get(), rank, &bytes) == RESHARD_OK);
    CHECK(bytes.source_bytes + bytes.destination_bytes == held[static_cast<std::size_t>(rank)]);
  }
  // Its text is the same plan, and another job is not; names are for reports alone.
  std::string text =
      taken_text([&](auto... out) { return reshard_plan_write(plan.get(), out...); });
  reshard_plan* again = nullptr;
  REQUIRE(reshard_plan_parse(text.data(), static_cast<std::int64_t>(text.size()), &again) ==
          RESHARD_OK);
  CHECK(digest(again) == digest(plan.get()));
  reshard_tensor unnamed = RESHARD_INIT(reshard_tensor);
  REQUIRE(reshard_plan_get_tensor(again, 1, &unnamed) == RESHARD_OK);
  CHECK(unnamed.name == std::string());
  reshard_plan_free(again);
  std::vector<Asked> other = kJob;
  other.back().to_mesh = "4";
  CHECK(digest(plan_of(other, "auto").get()) != digest(plan.get()));
  CHECK_THAT(taken_text([&](auto... out) {
               return reshard_plan_compare(plan_of(other, "auto").get(), text.data(),
                                           static_cast<std::int64_t>(text.size()), out...);
             }),
             Contains("where the other one has"));
}

TEST_CASE("a job that is wrong is refused, and says which request is missing") {
  Requests requests(kJob);
  reshard_plan* plan = nullptr;
  auto create = [&](std::int32_t count, const char* planner = "auto") {
    reshard_plan_options options = by(planner);
    return reshard_plan_create_job(requests.all.data(), count, nullptr, &options, &plan);
  };
  expect_input_error(create(0), "count: expected 1 or more, found 0");
  expect_input_error(create(-3), "count: expected 1 or more, found -3");
  expect_input_error(reshard_plan_create_job(nullptr, 2, nullptr, nullptr, &plan), "requests");
  expect_input_error(reshard_plan_create_job(requests.all.data(), 2, nullptr, nullptr, nullptr),
                     "plan");
  expect_input_error(create(6, "rule"), "u8[5,3,2] R on 2 (ranks 0-1)");
  expect_input_error(create(6, "fastest"), "fastest");
  reshard_plan_options small = by("auto");
  small.memory_limit_bytes = 100;
  expect_input_error(reshard_plan_create_job(requests.all.data(), 6, nullptr, &small, &plan),
                     "memory limit");
  reshard_topology* four = nullptr;
  REQUIRE(reshard_topology_create("pcie-8x3090", &four) == RESHARD_OK);
  Requests far({kJob[0], {"far", "8", "f32", "R", "R", "2", "7-8", {}, {}}});
  expect_input_error(reshard_plan_create_job(far.all.data(), 2, four, nullptr, &plan), "rank 8");
  reshard_topology_free(four);
  std::vector<reshard_request*> with_hole = requests.all;
  with_hole[3] = nullptr;
  expect_input_error(reshard_plan_create_job(with_hole.data(), 6, nullptr, nullptr, &plan),
                     "requests[3]: expected a pointer, found NULL");
  CHECK(plan == nullptr);

  PlanHandle good = plan_of(kJob, "p2p");
  reshard_tensor tensor = RESHARD_INIT(reshard_tensor);
  expect_input_error(reshard_plan_get_tensor(good.get(), 6, &tensor), "tensor");
  expect_input_error(reshard_plan_get_tensor(good.get(), -1, &tensor), "tensor");
  expect_input_error(reshard_plan_get_tensor(nullptr, 0, &tensor), "plan");
  expect_input_error(reshard_plan_get_tensor(good.get(), 0, nullptr), "result");
  // Shards that do not fit are of a tensor, by name.
  reshard_program* program = nullptr;
  REQUIRE(reshard_program_create(good.get(), 0, 0, &program) == RESHARD_OK);
  std::vector<reshard_shards> shards(6, RESHARD_INIT(reshard_shards));
  std::array<std::int32_t, 8> memory{};
  shards[0] = {sizeof(reshard_shards), 0, memory.data(), 32, memory.data(), 32};
  reshard_run run = RESHARD_INIT(reshard_run);
  run.tensors = shards.data();
  expect_input_error(reshard_execute(program, &run),
                     "source_bytes of tensor 1 'layer.0': expected 120");
  std::swap(shards[0], shards[3]);
  expect_input_error(reshard_execute(program, &run), "source_bytes of tensor 0 'embedding'");
  reshard_program_free(program);
  // A caller of an earlier version, whose texts of a request have no name.
  reshard_request_texts texts = RESHARD_INIT(reshard_request_texts);
  texts.struct_size = offsetof(reshard_request_texts, name);
  texts.mesh = "2";
  texts.shape = "4";
  texts.from = texts.to = "R";
  texts.name = reinterpret_cast<const char*>(1);  // behind the end of that struct
  reshard_request* old = nullptr;
  REQUIRE(reshard_request_create(&texts, &old) == RESHARD_OK);
  reshard_request_free(old);
  texts.struct_size = sizeof texts;
  texts.name = "a\xff";
  expect_input_error(reshard_request_create(&texts, &old),
                     "name: expected UTF-8 text, found 'a\\xff'");
}

TEST_CASE("a file of requests that is wrong is refused with its place") {
  reshard_plan* plan = nullptr;
  auto create = [&](const char* path) {
    return reshard_plan_create_job_from_file(path, nullptr, nullptr, &plan);
  };
  expect_input_error(create(nullptr), "path: expected a pointer, found NULL");
  expect_input_error(create("/nowhere/job.jsonl"), "/nowhere/job.jsonl: expected a file of");
  expect_input_error(reshard_plan_create_job_from_file("/", nullptr, nullptr, nullptr), "plan");
  JobFile file(std::string(kLines) +
               R"({"shape": [4], "dtype": "f33", "from": "R", "to": "R", "mesh": "4"})");
  expect_input_error(create(file.path.c_str()), file.path + ":5: ");
  JobFile empty("{\"reshard_trace\": 1}\n");
  expect_input_error(create(empty.path.c_str()), "expected a request at least");
  CHECK(plan == nullptr);
}
