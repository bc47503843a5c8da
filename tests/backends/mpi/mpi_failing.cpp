// SPDX-License-Identifier: BSD-3-Clause
// A program that fails on purpose, for check_failures.py: it gets the mpi backend from the
// registry, as `reshard` does, so that the module is loaded with dlopen and its exceptions cross
// that boundary. Prints what it caught, by type, and exits with the code of that type.
//
//   mpi_failing world            how many processes there are; nothing fails
//   mpi_failing not_started      a plan that names a rank that mpirun did not start
//   mpi_failing throws           the last process finds its data missing, says so and ends all
//   mpi_failing absent           the last process stays away from a run; the others wait for 2 s
//   mpi_failing leaves           the last process returns from main without a word
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "backends/registry/backend.h"
#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"

using namespace reshard;

namespace {

Plan exchange_of(int ranks) {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({ranks}));
  Plan plan = plan_p2p(Request(parse_layout("64,64", "f32", mesh, "S(0)"),
                               parse_layout("64,64", "f32", mesh, "S(1)")),
                       {});
  prove(plan);
  return plan;
}

int run(Executor& executor, const std::string& how) {
  Processes& processes = executor.processes();
  bool last = processes.index() == processes.count() - 1;
  if (how == "world") {
    if (processes.is_root()) std::printf("%d processes\n", processes.count());
    return 0;
  }
  Plan plan = exchange_of(processes.count() + (how == "not_started" ? 6 : 0));
  auto prepared = executor.prepare(plan);
  if (how == "leaves" && last) return 0;
  prepared->fill([&](Rank, std::span<std::byte> bytes) {
    if (how == "throws" && last) throw InputError("no data on this process");
    std::memset(bytes.data(), 1, bytes.size());
  });
  if (how == "absent" && last) sleep(60);
  prepared->run();
  return 0;
}

int said(const char* type, const std::exception& error, int code, Executor* executor) {
  std::fprintf(stderr, "%s: %s\n", type, error.what());
  // What every process says by itself needs no abort; what one process says does.
  if (executor != nullptr && code != 0) executor->processes().abort(code);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::string how = argc > 1 ? argv[1] : "world";
  std::unique_ptr<Executor> executor;
  try {
    backends::BackendOptions options;
    options.time_limit_s = 2;
    executor = backends::find_backend("mpi").make(options);
    return run(*executor, how);
  } catch (const InputError& error) {
    return said("InputError", error, 2, how == "not_started" ? nullptr : executor.get());
  } catch (const CheckFailure& error) {
    return said("CheckFailure", error, 3, executor.get());
  } catch (const BackendError& error) {
    return said("BackendError", error, 4, executor.get());
  }
}
