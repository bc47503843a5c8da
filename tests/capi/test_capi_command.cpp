// SPDX-License-Identifier: BSD-3-Clause
// The command line from C: what it prints, its failures, and that nothing else is written.
#include <reshard/reshard.h>
#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

using Catch::Matchers::Contains;

namespace {

struct Ran {
  std::int32_t code;
  std::string text, error;
};

Ran run(const std::vector<const char*>& arguments) {
  char* text = nullptr;
  std::int64_t bytes = 0;
  Ran out{
      reshard_command(arguments.data(), static_cast<std::int32_t>(arguments.size()), &text, &bytes),
      {},
      {}};
  if (text != nullptr) out.text.assign(text, static_cast<std::size_t>(bytes));
  if (out.code != RESHARD_OK) out.error = reshard_last_error();
  reshard_text_free(text);
  return out;
}

std::vector<const char*> plan_of(const char* to, const char* format) {
  return {"plan",  "--mesh", "2x2", "--shape",   "8,8", "--from",
          "S(0)R", "--to",   to,    "--planner", "p2p", format};
}

}  // namespace

TEST_CASE("commands give what the program prints") {
  Ran plan = run(plan_of("RS(1)", "--json"));
  REQUIRE(plan.code == RESHARD_OK);
  nlohmann::json json = nlohmann::json::parse(plan.text);
  CHECK(json["schema"] == "reshard.plan/1");
  CHECK(json["planner"] == "p2p");
  // Files that stand for standard output, too.
  Ran timeline = run({"simulate", "--mesh", "2", "--shape", "8", "--from", "S(0)", "--to", "R",
                      "--perfetto", "-"});
  REQUIRE(timeline.code == RESHARD_OK);
  CHECK(nlohmann::json::parse(timeline.text).contains("traceEvents"));
  CHECK_THAT(run({"sweep", "--help"}).text, Contains("Usage: reshard sweep"));
  CHECK_THAT(run({"topo", "list"}).text, Contains("dgx-h100"));
}

TEST_CASE("commands fail with the program's codes and sentences, and give no text") {
  Ran wrong = run(plan_of("RS(7)", "--json"));
  CHECK(wrong.code == RESHARD_INPUT_ERROR);
  CHECK_THAT(wrong.error, Contains("--to"));
  CHECK(wrong.text.empty());
  CHECK_THAT(run({"plan", "--mash", "2"}).error, Contains("'--mash'"));
  // What needs other processes is not here.
  CHECK_THAT(run({"validate"}).error, Contains("found 'validate'"));
  char* text = nullptr;
  std::int64_t bytes = 0;
  const char* none[] = {nullptr};
  CHECK(reshard_command(none, 1, &text, &bytes) == RESHARD_INPUT_ERROR);
  CHECK(reshard_command(none, 0, &text, &bytes) == RESHARD_INPUT_ERROR);
  CHECK(reshard_command(nullptr, 1, &text, &bytes) == RESHARD_INPUT_ERROR);
  CHECK(text == nullptr);
}

TEST_CASE("a check that does not hold gives its report as well") {
  // Sends nobody receives.
  std::string path = "/tmp/reshard_capi_unmatched_" + std::to_string(getpid()) + ".jsonl";
  std::ofstream(path) << "{\"reshard_trace\": 1}\n{\"op\": \"send\", \"rank\": 0, \"peer\": 1, "
                         "\"bytes\": 8}\n";
  Ran hangs = run({"replay", path.c_str()});
  std::remove(path.c_str());
  CHECK(hangs.code == RESHARD_FINDINGS);
  CHECK_THAT(hangs.error, Contains("has no recv"));
}

TEST_CASE("threads run commands side by side") {
  std::string expected = run(plan_of("RS(1)", "--json")).text;
  std::vector<std::thread> threads;
  std::vector<std::string> found(4);
  for (std::string& text : found)
    threads.emplace_back([&text] { text = run(plan_of("RS(1)", "--json")).text; });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : found) CHECK(text == expected);
}
