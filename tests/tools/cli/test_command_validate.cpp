// SPDX-License-Identifier: BSD-3-Clause
// The whole of `validate` on executors that corrupt their results: the report comes first, then the
// fault, and every process ends with exit code 1.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/split_store.h"
#include "tests/support/threaded_processes.h"
#include "tools/cli/validate/agreement.h"
#include "tools/cli/validate/validate.h"

using namespace reshard;
using namespace reshard::tools;

namespace {

const backends::BackendRow kSplit{"split", "for tests", {}, nullptr, nullptr};
const BackendInfo kBackend{kSplit, {true, "split stores", ""}};

ValidateOptions options_64() {
  ValidateOptions options;
  options.request.mesh = std::string("4");
  options.request.shape = "6,4";
  options.request.shape_given = true;
  options.request.dtype = "i16";
  options.request.from = "S(0)";
  options.request.to = "S(1)";
  options.machine.planner = "p2p";
  options.output.json = true;
  options.carrier.counts = {0, 3};
  return options;
}

// What standard output was given while the work ran.
std::string printed_by(const std::function<void()>& work) {
  std::fflush(stdout);
  int kept = dup(STDOUT_FILENO);
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  dup2(fileno(file), STDOUT_FILENO);
  work();
  std::fflush(stdout);
  dup2(kept, STDOUT_FILENO);
  close(kept);
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

struct Ended {
  std::vector<int> exit_codes;  // by process
  std::vector<std::string> reported;
  std::string printed;
};

Ended validated(int processes, const test::Corruption& corruption,
                const ValidateOptions& options = options_64(), int failing = -1) {
  test::ThreadedGroup group(processes);
  Ended out;
  out.exit_codes.resize(static_cast<std::size_t>(processes));
  out.printed = printed_by([&] {
    test::run_processes(group, [&](test::ThreadedProcesses& mine) {
      test::SplitStore executor(mine, corruption, mine.index() == failing);
      try {
        validate_on(executor, kBackend, options);
      } catch (const Stopped& stopped) {
        out.exit_codes[static_cast<std::size_t>(mine.index())] = stopped.exit_code;
        if (mine.is_root()) out.reported = stopped.reported;
      } catch (...) {
        Failure failure = failure_of(std::current_exception());
        out.exit_codes[static_cast<std::size_t>(mine.index())] = failure.exit_code;
        if (mine.is_root()) out.reported = failure.reasons;
      }
    });
  });
  return out;
}

}  // namespace

TEST_CASE("values that hold end every process with 0, and the root alone reports") {
  for (int processes : {1, 3}) {
    Ended ended = validated(processes, {});
    CHECK(ended.exit_codes == std::vector<int>(static_cast<std::size_t>(processes), 0));
    CHECK(ended.reported.empty());
    nlohmann::json report = nlohmann::json::parse(ended.printed);
    CHECK((report["values"]["hold"] == true && report["values"]["store_ran"] == true &&
           report["backend"]["processes"] == processes));
    CHECK(report["steps"].size() == 2);
  }
}

TEST_CASE("a wrong element ends every process with 1, after the whole report") {
  for (int processes : {1, 2, 3}) {
    Ended ended = validated(processes, {{Rank{2}, {3}}});
    CHECK(ended.exit_codes == std::vector<int>(static_cast<std::size_t>(processes), 1));
    REQUIRE(ended.reported.size() == 2);
    CHECK(ended.reported[0].rfind(
              "values of i16[6,4] S(0) on 4 -> S(1): rank 2 holds a wrong value at "
              "global index [3,2]: expected 0x",
              0) == 0);
    nlohmann::json report = nlohmann::json::parse(ended.printed);
    CHECK((report["values"]["hold"] == false && report["values"]["wrong"] == 1));
    CHECK((report["values"]["first_difference"]["rank"] == 2 &&
           report["values"]["first_difference"]["index"] == nlohmann::json::parse("[3, 2]")));
  }
}

TEST_CASE(
    "above the data budget wrong elements are found without the store, and right ones keep their "
    "digest in one process") {
  ValidateOptions options = options_64();
  options.data_budget = std::string("1");
  Ended wrong = validated(2, {{Rank{1}, {0}}}, options);
  CHECK((wrong.exit_codes == std::vector<int>{1, 1} && wrong.reported.size() == 1));
  nlohmann::json one = nlohmann::json::parse(validated(1, {}, options).printed),
                 two = nlohmann::json::parse(validated(2, {}, options).printed);
  CHECK(one["values"]["store_ran"] == false);
  CHECK(one["values"]["digest"] ==
        nlohmann::json::parse(validated(1, {}).printed)["values"]["digest"]);
  CHECK(two["values"]["digest"].is_null());
  CHECK(two["values"]["digest_of_digests"] == one["values"]["digest_of_digests"]);
}

TEST_CASE("a process whose preparation breaks ends all, and nothing is printed") {
  Ended ended = validated(3, {}, options_64(), 1);
  CHECK(ended.printed.empty());
  for (int code : ended.exit_codes) CHECK(code != 0);
}

TEST_CASE("files are written though values are wrong, and not at all where the run fails") {
  ValidateOptions options = options_64();
  options.measurements = (std::filesystem::temp_directory_path() /
                          ("test_tools_" + std::to_string(getpid()) + ".jsonl"))
                             .string();
  CHECK(validated(2, {{Rank{0}, {0}}}, options).exit_codes == std::vector<int>{1, 1});
  std::ifstream written(options.measurements);
  std::string line;
  CHECK((std::getline(written, line) && line.find("\"backend\":\"split\"") != std::string::npos));
  std::remove(options.measurements.c_str());
  validated(2, {}, options, 0);
  CHECK_FALSE(std::ifstream(options.measurements).good());
}
