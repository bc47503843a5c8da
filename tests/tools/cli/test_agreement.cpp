// SPDX-License-Identifier: BSD-3-Clause
// Processes go on together or stop together, and an error is reported once.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "tests/support/threaded_processes.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/validate/agreement.h"

using namespace reshard;
using namespace reshard::tools;

namespace {

// By process: exit code 0 where the phase held, and what the process has to say.
struct Ending {
  int exit_code = 0;
  std::vector<std::string> reported;
};

template <class Work>
std::vector<Ending> endings_of(test::ThreadedGroup& group, Work work) {
  std::vector<Ending> out(static_cast<std::size_t>(group.count()));
  test::run_processes(group, [&](test::ThreadedProcesses& processes) {
    Ending& ending = out[static_cast<std::size_t>(processes.index())];
    try {
      work(processes);
    } catch (const Stopped& stopped) {
      ending = {stopped.exit_code, stopped.reported};
    } catch (const std::exception& error) {
      ending = {-1, {error.what()}};
    }
  });
  return out;
}

std::vector<Ending> phase_of(int count, const std::function<std::string(int)>& phase) {
  test::ThreadedGroup group(count);
  return endings_of(group, [&](test::ThreadedProcesses& processes) {
    together(processes, "the plan's digest", [&] { return phase(processes.index()); });
  });
}

void check_stopped(const std::vector<Ending>& endings, int exit_code,
                   const std::vector<std::string>& reasons) {
  for (std::size_t i = 0; i < endings.size(); ++i) {
    CHECK(endings[i].exit_code == exit_code);
    CHECK(endings[i].reported == (i == 0 ? reasons : std::vector<std::string>{}));
  }
}

}  // namespace

TEST_CASE("a phase that holds everywhere lets all go on") {
  for (const Ending& ending : phase_of(3, [](int) { return "abc"; }))
    CHECK((ending.exit_code == 0 && ending.reported.empty()));
}

TEST_CASE("what is wrong everywhere is said once, by the root, without a rank") {
  check_stopped(
      phase_of(3,
               [](int) -> std::string { throw InputError("--mesh: expected a mesh, found 'x'"); }),
      2, {"--mesh: expected a mesh, found 'x'"});
}

TEST_CASE("what is wrong on one process stops all, and the rank is named") {
  auto one = [](int index) -> std::string {
    if (index == 2) throw BackendError("CUDA", "cudaMalloc", "cudaErrorMemoryAllocation", 2);
    return "abc";
  };
  check_stopped(phase_of(4, one), 4,
                {"rank 2: CUDA: cudaMalloc failed on rank 2: cudaErrorMemoryAllocation"});
  // The root's own trouble, such as an output file, needs no rank.
  auto root = [](int index) -> std::string {
    if (index == 0) throw InputError("--perfetto: cannot write");
    return "abc";
  };
  check_stopped(phase_of(2, root), 2, {"--perfetto: cannot write"});
}

TEST_CASE(
    "processes that say different things are told apart, and the lowest gives the exit code") {
  auto several = [](int index) -> std::string {
    if (index == 0) throw CheckNotHeld{{"first", "second"}};
    if (index < 3) throw InputError("other");
    return "abc";
  };
  check_stopped(phase_of(4, several), 1, {"rank 0: first", "rank 0: second", "ranks 1-2: other"});
}

TEST_CASE("processes that come to different results stop, and both are named") {
  check_stopped(phase_of(3, [](int index) { return index == 1 ? "b" : "a"; }), 2,
                {"the plan's digest: expected the same on all processes, found a on rank 0 and b "
                 "on rank 1; do they have the same reshard, options and input files?"});
}

TEST_CASE("a process that fails while others wait ends all, alone, its exception passes") {
  test::ThreadedGroup group(3);
  std::vector<Ending> endings = endings_of(group, [](test::ThreadedProcesses& processes) {
    waiting_for_others(processes, [&] {
      if (processes.index() == 1) throw CheckFailure("broken");
      processes.gather({});
    });
  });
  CHECK(group.aborts().front() == std::pair(1, 3));
  CHECK((endings[1].exit_code == 3 &&
         endings[1].reported ==
             std::vector<std::string>{"rank 1: internal check failed, please report: broken"}));
  for (const Ending& ending : endings) CHECK(ending.exit_code != 0);

  Processes alone;
  CHECK_THROWS_AS(waiting_for_others(alone, [] { throw InputError("as it is"); }), InputError);
  CHECK_THROWS_AS(together(alone, "result", []() -> std::string { throw InputError("as it is"); }),
                  InputError);
}
