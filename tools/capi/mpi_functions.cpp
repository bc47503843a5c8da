// SPDX-License-Identifier: BSD-3-Clause
// The C API: plans on a caller's MPI communicator.
#include <memory>
#include <vector>

#include "backends/mpi/executor.h"
#include "tools/capi/guard.h"
#include "tools/capi/reshard_mpi.h"
#include "tools/capi/shards.h"

using namespace reshard;
using namespace reshard::capi;
namespace mpi_backend = reshard::backends::mpi;

struct reshard_mpi {
  mpi_backend::MpiExecutor executor;
};

struct reshard_mpi_plan {
  Plan plan;
  std::unique_ptr<PreparedPlan> prepared;
};

namespace {

constexpr std::int64_t kLongestWaitS = 1'000'000'000;

}  // namespace

extern "C" {

const char* reshard_mpi_last_error(void) { return last_error_text(); }

int32_t reshard_mpi_create(MPI_Comm comm, const reshard_mpi_options* options, reshard_mpi** mpi) {
  return guarded([&] {
    given(mpi, "mpi");
    int initialised = 0, finalised = 0;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (initialised == 0 || finalised != 0)
      throw InputError("comm: expected MPI to be initialised and not finalised");
    if (comm == MPI_COMM_NULL)
      throw InputError("comm: expected a communicator, found MPI_COMM_NULL");
    reshard_mpi_options chosen{};
    if (options != nullptr) chosen = taken(options, "options");
    if (chosen.time_limit_s < 0 || chosen.time_limit_s > kLongestWaitS)
      throw InputError("time_limit_s: expected 0 to " + std::to_string(kLongestWaitS) + ", found " +
                       std::to_string(chosen.time_limit_s));
    if (chosen.no_shared_memory > 1)
      throw InputError("no_shared_memory: expected 0 or 1, found " +
                       std::to_string(chosen.no_shared_memory));
    mpi_backend::WorldOptions world;
    if (chosen.time_limit_s > 0) world.time_limit_s = chosen.time_limit_s;
    world.shared_memory = chosen.no_shared_memory == 0;
    *mpi = new reshard_mpi{mpi_backend::MpiExecutor(comm, world)};
  });
}

void reshard_mpi_free(reshard_mpi* mpi) { delete mpi; }

int32_t reshard_mpi_prepare(reshard_mpi* mpi, const reshard_plan* plan,
                            const reshard_mpi_shards* shards, reshard_mpi_plan** prepared) {
  return guarded([&] {
    mpi_backend::MpiExecutor& executor = given(mpi, "mpi").executor;
    std::unique_ptr<reshard_mpi_plan> handle;
    std::vector<CallerShards> lent;
    try {
      given(plan, "plan");
      given(prepared, "prepared");
      handle = std::make_unique<reshard_mpi_plan>(reshard_mpi_plan{copy_of(plan), nullptr});
      lent = shards_of(shards, handle->plan.tensors.size());
    } catch (const InputError& error) {
      executor.refuse(error.what());
    }
    handle->prepared = executor.prepare(handle->plan, lent);
    *prepared = handle.release();
  });
}

void reshard_mpi_plan_free(reshard_mpi_plan* prepared) { delete prepared; }

int32_t reshard_mpi_run(reshard_mpi_plan* prepared) {
  return guarded([&] { given(prepared, "prepared").prepared->run(); });
}
}
