// SPDX-License-Identifier: BSD-3-Clause
// The command line and reports of plans from C: what they print, their failures, and that nothing
// else is written.
#include <reshard/reshard.h>
#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
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

TEST_CASE("what is too deep or too large is refused, and the process goes on") {
  std::string path = "/tmp/reshard_capi_deep_" + std::to_string(getpid()) + ".json";
  auto refused = [&](std::vector<const char*> words, const std::string& text, const char* what) {
    std::ofstream(path) << text;
    for (const char*& word : words)
      if (std::string(word) == "FILE") word = path.c_str();
    Ran found = run(words);
    CHECK(found.code == RESHARD_INPUT_ERROR);
    CHECK_THAT(found.error, Contains(what));
  };
  constexpr const char* kDeep = "levels of nesting, found more";
  for (const char* open : {"[", "{\"a\":", "{\"schema\":\"reshard.plan/1\",\"a\":["}) {
    std::string deep;
    for (int i = 0; i < 200'000; ++i) deep += open;
    // What does not begin as what a command reads does is refused unread.
    bool is_report = std::string(open).find("schema") != std::string::npos;
    refused({"compare", "FILE", "FILE"}, deep, is_report ? kDeep : "expected");
    refused({"calibrate", "--topology", "dgx-h100", "--compare", "FILE"}, deep,
            is_report ? kDeep : "expected");
    refused({"calibrate", "--topology", "dgx-h100", "--compare", "FILE"},
            "{\"version\":1,\"results\":[{\"out_of_place\":null}],\"args\":" + deep, kDeep);
    refused({"calibrate", "--topology", "dgx-h100", "--compare", "FILE"},
            "{\"reshard_overlap\":" + deep, kDeep);
    refused({"replay", "FILE"}, "{\"reshard_trace\":" + deep, kDeep);
    std::string attribute = "dim=" + deep;
    refused({"ops", "sum.dim_IntList", "--mesh", "2", "--in", "R", "--shape", "4", "--attr",
             attribute.c_str()},
            "", kDeep);
  }
  std::remove(path.c_str());
}

TEST_CASE("errors are reported in UTF-8, whatever was given") {
  std::string odd = "a\xff\n\x1b[31m" + std::string(60'000, 'x');
  for (const std::vector<const char*>& words : {std::vector<const char*>{"replay", odd.c_str()},
                                                {"plan", "--plan", odd.c_str()},
                                                {odd.c_str()},
                                                {"topo", "show", odd.c_str()},
                                                {"plan", "--mesh", odd.c_str()}}) {
    Ran found = run(words);
    CHECK(found.code == RESHARD_INPUT_ERROR);
    CHECK(found.error.size() < 1'500);
    CHECK(nlohmann::json(found.error).dump().find("\\u00") == std::string::npos);
  }
}

TEST_CASE("threads write one file: it is always one of theirs, whole, and nothing stands beside") {
  std::string folder = "/tmp/reshard_capi_files_" + std::to_string(getpid()),
              path = folder + "/out.json";
  REQUIRE(mkdir(folder.c_str(), 0700) == 0);
  auto write = [&](const char* shape) {
    return run({"simulate", "--mesh", "2", "--shape", shape, "--from", "S(0)", "--to", "R",
                "--perfetto", path.c_str()});
  };
  auto text = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const char* shapes[] = {"8", "16,16", "64,4,4", "2,2"};
  std::vector<std::string> whole;
  for (const char* shape : shapes) {
    REQUIRE(write(shape).code == RESHARD_OK);
    whole.push_back(text());
  }
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 15; ++i) {
        wrong[t] += write(shapes[t]).code == RESHARD_OK ? 0 : 1;
        wrong[t] += std::count(whole.begin(), whole.end(), text()) == 1 ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
  std::remove(path.c_str());
  CHECK(rmdir(folder.c_str()) == 0);  // empty
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

namespace {

Ran report_of(const reshard_plan* plan, const char* form) {
  char* text = nullptr;
  std::int64_t bytes = 0;
  Ran out{reshard_plan_report(plan, form, &text, &bytes), {}, {}};
  if (text != nullptr) out.text.assign(text, static_cast<std::size_t>(bytes));
  if (out.code != RESHARD_OK) out.error = reshard_last_error();
  reshard_text_free(text);
  return out;
}

// On the caller's topology, by `auto`.
reshard_plan* planned(const char* machine) {
  reshard_request_texts texts = RESHARD_INIT(reshard_request_texts);
  texts.mesh = "2x4";
  texts.shape = "64,96";
  texts.from = "S(0)S(1)";
  texts.to = "S(1)R";
  reshard_request* request = nullptr;
  reshard_topology* topology = nullptr;
  reshard_plan* plan = nullptr;
  REQUIRE(reshard_request_create(&texts, &request) == RESHARD_OK);
  REQUIRE(reshard_topology_create(machine, &topology) == RESHARD_OK);
  REQUIRE(reshard_plan_create(request, topology, nullptr, &plan) == RESHARD_OK);
  reshard_topology_free(topology);
  reshard_request_free(request);
  return plan;
}

}  // namespace

TEST_CASE("reports of a plan are what the program prints, in any order and again") {
  struct Form {
    const char *name, *command;
    std::vector<const char*> options;
  };
  const Form forms[] = {{"table", "plan", {}},
                        {"explanation", "plan", {"--explain"}},
                        {"json", "plan", {"--json"}},
                        {"html", "plan", {"--html", "-"}},
                        {"perfetto", "simulate", {"--perfetto", "-"}},
                        {"simulation", "simulate", {"--json"}},
                        {"simulation-proof", "simulate", {"--data", "proof", "--json"}}};
  for (const char* machine : {"dgx-h100", "l40s-8", "pcie-8x3090"}) {
    reshard_plan* plan = planned(machine);
    for (int i = 0; i < 14; ++i) {
      const Form& form = forms[i * 3 % 7];
      CAPTURE(machine, form.name);
      std::vector<const char*> words{form.command, "--mesh",     "2x4",      "--shape",
                                     "64,96",      "--from",     "S(0)S(1)", "--to",
                                     "S(1)R",      "--topology", machine};
      words.insert(words.end(), form.options.begin(), form.options.end());
      Ran printed = run(words), report = report_of(plan, form.name);
      REQUIRE(printed.code == RESHARD_OK);
      REQUIRE(report.code == RESHARD_OK);
      CHECK(report.text == printed.text);
    }
    reshard_plan_free(plan);
  }
}

TEST_CASE("a plan that was read is reported on the default topology") {
  reshard_plan *plan = planned("l40s-8"), *read = nullptr;
  char* text = nullptr;
  std::int64_t bytes = 0;
  REQUIRE(reshard_plan_write(plan, &text, &bytes) == RESHARD_OK);
  REQUIRE(reshard_plan_parse(text, bytes, &read) == RESHARD_OK);
  CHECK(nlohmann::json::parse(report_of(plan, "json").text)["topology"] == "l40s-8:1");
  nlohmann::json report = nlohmann::json::parse(report_of(read, "json").text);
  CHECK(report["topology"] == "dgx-h100:1");
  reshard_times times = RESHARD_INIT(reshard_times);
  REQUIRE(reshard_plan_get_times(read, nullptr, &times) == RESHARD_OK);
  CHECK(report["time_ps"] == times.time_ps);
  // Times on another topology leave the reports as they are.
  reshard_topology* other = nullptr;
  REQUIRE(reshard_topology_create("pcie-8x3090", &other) == RESHARD_OK);
  REQUIRE(reshard_plan_get_times(read, other, &times) == RESHARD_OK);
  CHECK(report["time_ps"] != times.time_ps);
  CHECK(nlohmann::json::parse(report_of(read, "json").text) == report);
  reshard_topology_free(other);
  reshard_text_free(text);
  reshard_plan_free(read);
  reshard_plan_free(plan);
}

TEST_CASE("reports may be asked for by several threads at once") {
  reshard_plan* plan = planned("dgx-h100");
  std::string expected = report_of(plan, "json").text;
  std::vector<std::string> found(8);
  std::vector<std::thread> threads;
  for (std::string& text : found)
    threads.emplace_back([&text, plan] {
      report_of(plan, "html");
      text = report_of(plan, "json").text;
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : found) CHECK(text == expected);
  reshard_plan_free(plan);
}

TEST_CASE("reports of no plan or of no form") {
  reshard_plan* plan = planned("dgx-h100");
  char* text = nullptr;
  std::int64_t bytes = 0;
  CHECK(reshard_plan_report(nullptr, "json", &text, &bytes) == RESHARD_INPUT_ERROR);
  CHECK(reshard_plan_report(plan, nullptr, &text, &bytes) == RESHARD_INPUT_ERROR);
  CHECK(reshard_plan_report(plan, "json", nullptr, &bytes) == RESHARD_INPUT_ERROR);
  CHECK(reshard_plan_report(plan, "json", &text, nullptr) == RESHARD_INPUT_ERROR);
  CHECK(report_of(plan, "xml").error ==
        "form: expected one of table, explanation, json, html, perfetto, simulation, "
        "simulation-proof, found 'xml'");
  reshard_plan_free(plan);
}
