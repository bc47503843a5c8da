// SPDX-License-Identifier: BSD-3-Clause
// Limits of memory and an order of requests, asked for through the C API: plans and errors are
// those of the command and of files of requests.
#include <reshard/reshard.h>
#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/capi/job_calls.h"

using namespace reshard::test;
using Catch::Matchers::Contains;

namespace {

// 8 MiB on each of 4 ranks, twice, before and after.
const std::vector<Asked> kLarge{{"up", "4096,4096", "bf16", "S(0)", "S(1)", "4", {}, {}, {}},
                                {"down", "4096,4096", "bf16", "S(1)", "S(0)", "4", {}, {}, {}}};
constexpr const char* kLargeLines =
    R"x({"shape": [4096, 4096], "dtype": "bf16", "from": "S(0)", "to": "S(1)", "mesh": "4"}
{"shape": [4096, 4096], "dtype": "bf16", "from": "S(1)", "to": "S(0)", "mesh": "4"}
)x";

std::string text_of(const reshard_plan* plan) {
  return taken_text([&](auto... out) { return reshard_plan_write(plan, out...); });
}

// The job's plan under the options; checks that it is the command's for the file under `words`.
std::string same_text(const reshard_plan_options& options, const std::vector<const char*>& words) {
  JobFile file(kLargeLines);
  Requests requests(kLarge);
  reshard_plan* plan = nullptr;
  std::int32_t code =
      reshard_plan_create_job(requests.all.data(), requests.count(), nullptr, &options, &plan);
  INFO(reshard_last_error());
  REQUIRE(code == RESHARD_OK);
  PlanHandle owner(plan, reshard_plan_free);
  std::vector<const char*> asked{"plan", "--requests", file.path.c_str(), "--planner", "p2p"};
  asked.insert(asked.end(), words.begin(), words.end());
  asked.insert(asked.end(), {"--emit", "plan"});
  CHECK(text_of(plan) == command(asked));
  return text_of(plan);
}

}  // namespace

TEST_CASE("limits of memory shape a job's plan as the command's options do") {
  std::string unlimited = same_text(by("p2p"), {});
  reshard_plan_options options = by("p2p");
  options.extra_memory_bytes = 6 << 20;
  CHECK(same_text(options, {"--extra-memory", "6MiB"}) != unlimited);
  options = by("p2p");
  options.memory_limit_bytes = 26 << 20;
  options.free_source = 1;
  CHECK_THAT(same_text(options, {"--memory-limit", "26MiB", "--free-source"}),
             Contains("sources freed"));
  reshard_request* request = request_of({{}, "64,64", "f32", "S(0)", "S(1)", "4", {}, {}, {}});
  reshard_plan* plan = nullptr;
  options = by("p2p");
  options.no_extra_memory = 1;
  REQUIRE(reshard_plan_create(request, nullptr, &options, &plan) == RESHARD_OK);
  CHECK(nlohmann::json::parse(report(plan, "json"))["extra_bytes_max"] == 0);
  reshard_plan_free(plan);
  REQUIRE(reshard_plan_create(request, nullptr, nullptr, &plan) == RESHARD_OK);
  CHECK(nlohmann::json::parse(report(plan, "json"))["extra_bytes_max"] > 0);
  reshard_plan_free(plan);
  reshard_request_free(request);
}

TEST_CASE("a limit of memory that cannot be met is refused with one that works") {
  // The sums are folded from copies of three addends of 1024 elements.
  reshard_request* request = request_of({{}, "64,64", "f32", "P(sum)", "S(0)", "4", {}, {}, {}});
  reshard_plan* plan = nullptr;
  reshard_plan_options options = by("p2p");
  options.extra_memory_bytes = 12287;
  expect_input_error(reshard_plan_create(request, nullptr, &options, &plan),
                     "extra memory: expected at least 12288 bytes per rank, which planner p2p "
                     "needs, found 12287");
  options.extra_memory_bytes = 0;
  options.no_extra_memory = 1;
  expect_input_error(reshard_plan_create(request, nullptr, &options, &plan), "found 0");
  options.no_extra_memory = 0;
  options.extra_memory_bytes = 12288;
  CHECK(reshard_plan_create(request, nullptr, &options, &plan) == RESHARD_OK);
  reshard_plan_free(plan);
  plan = nullptr;
  reshard_request_free(request);
  Requests requests(kLarge);
  options = by("p2p");
  options.memory_limit_bytes = 26 << 20;
  expect_input_error(
      reshard_plan_create_job(requests.all.data(), 2, nullptr, &options, &plan),
      "memory limit: expected at least 33566720 bytes per rank, which planner p2p needs, found "
      "27262976");
  CHECK(plan == nullptr);
}

TEST_CASE("limits that are none are refused by field") {
  reshard_request* request = request_of({{}, "64,64", "f32", "S(0)", "S(1)", "4", {}, {}, {}});
  reshard_plan* plan = nullptr;
  auto expect_refused = [&](auto&& change, const std::string& what) {
    reshard_plan_options options = by("p2p");
    change(options);
    expect_input_error(reshard_plan_create(request, nullptr, &options, &plan), what);
  };
  using Options = reshard_plan_options;
  expect_refused([](Options& o) { o.memory_limit_bytes = -1; },
                 "memory_limit_bytes: expected 0 or more, found -1");
  expect_refused([](Options& o) { o.extra_memory_bytes = -1; },
                 "extra_memory_bytes: expected 0 or more, found -1");
  expect_refused([](Options& o) { o.extra_memory_bytes = 8, o.no_extra_memory = 1; },
                 "no_extra_memory: expected 0 with extra_memory_bytes, found 1");
  expect_refused([](Options& o) { o.no_extra_memory = 2; },
                 "no_extra_memory: expected 0 or 1, found 2");
  expect_refused([](Options& o) { o.free_source = -1; }, "free_source: expected 0 or 1, found -1");
  CHECK(plan == nullptr);
  // A caller of an earlier version, whose options end before these.
  reshard_plan_options old = by("p2p");
  old.struct_size = offsetof(reshard_plan_options, extra_memory_bytes);
  old.extra_memory_bytes = -1;
  REQUIRE(reshard_plan_create(request, nullptr, &old, &plan) == RESHARD_OK);
  reshard_plan_free(plan);
  reshard_request_free(request);
}

namespace {

// A tensor that is gathered on 4 ranks, or scattered from them over 2, with an id and an order.
Asked gather(const char* id, const std::vector<const char*>& after) {
  return {{}, "64", "f32", "S(0)", "R", "4", {}, {}, {}, id, after};
}
Asked scatter(const std::vector<const char*>& after) {
  return {{}, "64", "f32", "R", "S(0)", "4", {}, "2", {}, {}, after};
}

// Fails; the error.
std::string error_of(const std::vector<Asked>& job) {
  Requests requests(job);
  reshard_plan* plan = nullptr;
  CHECK(reshard_plan_create_job(requests.all.data(), requests.count(), nullptr, nullptr, &plan) ==
        RESHARD_INPUT_ERROR);
  CHECK(plan == nullptr);
  return reshard_last_error();
}

}  // namespace

TEST_CASE("an order of requests makes the plan that a file with it makes") {
  constexpr const char* kGather =
      R"x("shape": [64], "dtype": "f32", "from": "S(0)", "to": "R", "mesh": "4"})x";
  constexpr const char* kScatter =
      R"x("shape": [64], "dtype": "f32", "from": "R", "to": "S(0)", "mesh": "4", "to_mesh": "2"})x";
  JobFile file(std::string(R"x({"after": ["7", "b"], )x") + kScatter + R"x(
{"id": 7, )x" + kGather +
               R"x(
{"id": "b", "after": 7, )x" +
               kGather + "\n");
  reshard_plan* read = nullptr;
  REQUIRE(reshard_plan_create_job_from_file(file.path.c_str(), nullptr, nullptr, &read) ==
          RESHARD_OK);
  PlanHandle of_file(read, reshard_plan_free);
  auto job = [](const std::vector<const char*>& first, const std::vector<const char*>& last) {
    return std::vector<Asked>{scatter(first), gather("7", {}), gather("b", last)};
  };
  CHECK(text_of(plan_of(job({"7", "b"}, {"7"}), "auto").get()) == text_of(read));
  CHECK(nlohmann::json::parse(report(read, "json"))["stages"].size() == 3);
  // What is named twice, or follows from the rest, changes nothing; without an order it is another
  // plan.
  CHECK(text_of(plan_of(job({"b", "b"}, {"7"}), "auto").get()) == text_of(read));
  CHECK(text_of(plan_of(job({}, {}), "auto").get()) != text_of(read));
}

TEST_CASE("orders that are none are refused with request and field") {
  CHECK(error_of({gather("a", {}), gather({}, {"b"})}) ==
        "requests[1].after: expected the id of a request of this job, found 'b', which none has");
  CHECK(error_of({gather("a", {}), gather({}, {}), gather("a", {})}) ==
        "requests[2].id: expected each id once, found 'a' again (first in requests[0])");
  CHECK(error_of({gather("a", {"b"}), gather("b", {"a"})}) ==
        "requests[0].after: expected no cycle, found 'a' after 'b' after 'a'");
  reshard_request* alone = request_of(gather({}, {"z"}));
  reshard_plan* plan = nullptr;
  expect_input_error(reshard_plan_create(alone, nullptr, nullptr, &plan),
                     "requests[0].after: expected the id of a request of this job, found 'z'");
  reshard_request_free(alone);
  reshard_request_texts texts = RESHARD_INIT(reshard_request_texts);
  texts.mesh = "2";
  texts.shape = "4";
  texts.from = texts.to = "R";
  texts.id = "";
  reshard_request* none = nullptr;
  expect_input_error(reshard_request_create(&texts, &none),
                     "id: expected text of at least one character, found ''");
  texts.id = nullptr;
  texts.after_count = -1;
  expect_input_error(reshard_request_create(&texts, &none),
                     "after_count: expected 0 or more, found -1");
  texts.after_count = 1;
  expect_input_error(reshard_request_create(&texts, &none), "after: expected a pointer");
  const char* after[] = {"a", nullptr};
  texts.after = after;
  texts.after_count = 2;
  expect_input_error(reshard_request_create(&texts, &none),
                     "after[1]: expected a pointer, found NULL");
  texts.after_count = 1;
  texts.reserved_after = 1;
  expect_input_error(reshard_request_create(&texts, &none), "texts.reserved_after");
  CHECK((none == nullptr && plan == nullptr));
  // A caller whose texts end before the id.
  texts.struct_size = offsetof(reshard_request_texts, id);
  REQUIRE(reshard_request_create(&texts, &none) == RESHARD_OK);
  REQUIRE(reshard_plan_create(none, nullptr, nullptr, &plan) == RESHARD_OK);
  reshard_plan_free(plan);
  reshard_request_free(none);
}
