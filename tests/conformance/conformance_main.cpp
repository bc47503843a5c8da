// SPDX-License-Identifier: BSD-3-Clause
// The conformance suite for one executor, as a separate program, so that mpirun can start it:
//
//   conformance local
//   mpirun -np 4 conformance mpi --world 4
//   conformance cuda --small-cases
//   conformance cuda-on-host --small-cases      the CUDA backend on a device made of host memory
//   conformance nccl-on-standin --world 4       the NCCL backend on a stand-in for NCCL
//
// Under sanitizers only a part of the cases is run (tests/support/part.h).
//
// Exit codes: 0 all agree, 1 some do not or nothing ran, 4 the backend failed, 77 the backend is
// not usable here (the reason is printed).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "backends/registry/backend.h"
#include "core/base/errors.h"
#include "core/plan/plan.h"
#include "sim/store/store.h"
#include "tests/conformance/conformance.h"
#include "tests/support/part.h"
#if RESHARD_HAS_STANDINS
#include "tests/support/standins/cuda_on_host_device.h"
#include "tests/support/standins/nccl_ranks.h"
#endif

namespace {

using namespace reshard;
using namespace reshard::test;

constexpr int kSkipped = 77;

struct Options {
  std::string executor;
  ConformanceOptions conformance;
  backends::BackendOptions backend;
};

int run(Executor& executor, const Options& options) {
  try {
    ConformanceReport report = check_conformance(executor, options.conformance);
    if (executor.processes().is_root())
      std::printf("conformance of %s, world %d: %s\n", options.executor.c_str(),
                  options.conformance.world, text(report).c_str());
    return report.failed == 0 && report.runs > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conformance of %s, process %d: %s\n", options.executor.c_str(),
                 executor.processes().index(), error.what());
    executor.processes().abort(4);
    return 4;
  }
}

#if RESHARD_HAS_STANDINS
// One thread drives all ranks.
int run_nccl_on_standin(const Options& options) {
  StandinJob job;
  job.world = options.conformance.world;
  job.drive = Drive::OneThread;
  job.declared_order = options.backend.declared_order;
  job.standin.multiprocessors = kMaxStreams * kBlocksOfKernel;
  int code = 4;
  StandinOutcome outcome =
      run_on_standin(job, [&](Executor& executor, std::int32_t) { code = run(executor, options); });
  if (!outcome.clean())
    std::fprintf(stderr, "conformance of %s: %s\n", options.executor.c_str(),
                 outcome.text().c_str());
  return outcome.clean() ? code : 1;
}
#endif

int run(const Options& options) {
  if (options.executor == "local") {
    sim::Store store;
    return run(store, options);
  }
#if RESHARD_HAS_STANDINS
  if (options.executor == "cuda-on-host")
    return run(*cuda_on_host_device(options.conformance.seed), options);
  if (options.executor == "nccl-on-standin") return run_nccl_on_standin(options);
#endif
  const backends::BackendRow& row = backends::find_backend(options.executor);
  backends::BackendStatus status = row.probe();
  if (!status.usable) {
    std::printf("skipped: %s: %s; %s\n", options.executor.c_str(), status.what.c_str(),
                status.how_to_get.c_str());
    return kSkipped;
  }
  backends::BackendOptions backend = options.backend;
  if (options.executor == "nccl")
    backend.world_size =
        options.conformance.world;  // without a launcher one process drives them all
  std::unique_ptr<Executor> executor;
  try {
    executor = row.make(backend);
  } catch (const InputError& error) {
    std::printf("skipped: %s: %s\n", options.executor.c_str(), error.what());
    return kSkipped;
  }
  return run(*executor, options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs seeded requests on one executor and compares every byte with the store.",
               "conformance");
  app.add_option("executor", options.executor,
                 "local, mpi, cuda, nccl, cuda-on-host or nccl-on-standin")
      ->required();
  app.add_option("--world", options.conformance.world, "ranks to use")->check(CLI::Range(1, 40));
  app.add_option("--draws", options.conformance.draws, "drawn requests")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
  app.add_option("--seed", options.conformance.seed, "of the first draw");
  app.add_option("--models-every", options.conformance.models_every,
                 "one in so many draws is of a model in the buffers of its ranks")
      ->check(CLI::PositiveNumber);
  app.add_flag("--small-cases", options.conformance.small_cases,
               "also every small case of the sweep");
  app.add_option("--every", options.conformance.every, "of the small cases only each so many-th")
      ->check(CLI::PositiveNumber);
  app.add_flag("--declared-order", options.backend.declared_order,
               "fold in the order of the plan, not in the library's");
  app.add_option("--time-limit", options.backend.time_limit_s, "seconds for a single wait");
  CLI11_PARSE(app, argc, argv);
  options.conformance.every *= kOneOf;
  options.conformance.draws = (options.conformance.draws + kOneOf - 1) / kOneOf;
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conformance: %s\n", error.what());
    return 2;
  }
}
