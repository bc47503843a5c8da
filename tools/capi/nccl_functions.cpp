// SPDX-License-Identifier: BSD-3-Clause
// The C API: plans on a caller's NCCL communicator.
#include <memory>
#include <tuple>
#include <vector>

#include "backends/device/cuda_device.h"
#include "backends/nccl/executor.h"
#include "backends/nccl/nccl_library.h"
#include "tools/capi/guard.h"
#include "tools/capi/reshard_nccl.h"
#include "tools/capi/shards.h"

using namespace reshard;
using namespace reshard::capi;
namespace nccl_backend = reshard::backends::nccl;

struct reshard_nccl {
  nccl_backend::NcclExecutor executor;
};

struct reshard_nccl_plan {
  Plan plan;
  std::unique_ptr<nccl_backend::Prepared> prepared;
};

namespace {

constexpr std::int64_t kLongestWaitS = 1'000'000'000;

reshard_nccl_options chosen_of(const reshard_nccl_options* options) {
  reshard_nccl_options chosen{};
  if (options != nullptr) chosen = taken(options, "options");
  require_zero(chosen.reserved, "options.reserved");
  for (auto [value, name] : {std::tuple{chosen.nccl_collectives, "nccl_collectives"},
                             {chosen.abort_on_error, "abort_on_error"}})
    if (value > 1)
      throw InputError(std::string(name) + ": expected 0 or 1, found " + std::to_string(value));
  if (chosen.time_limit_s < 0 || chosen.time_limit_s > kLongestWaitS)
    throw InputError("time_limit_s: expected 0 to " + std::to_string(kLongestWaitS) + ", found " +
                     std::to_string(chosen.time_limit_s));
  return chosen;
}

nccl_backend::Job job_of(struct ncclComm* comm, struct CUstream_st* stream,
                         const reshard_nccl_options& chosen) {
  nccl_backend::CallerCommunicator caller{reinterpret_cast<nccl_backend::NcclComm>(comm),
                                          reinterpret_cast<backends::Stream>(stream),
                                          chosen.abort_on_error == 1};
  std::shared_ptr<nccl_backend::NcclApi> api = nccl_backend::loaded_nccl();
  std::shared_ptr<backends::Device> device =
      backends::make_cuda_device(nccl_backend::facts_of(*api, caller.comm).device);
  nccl_backend::Job job = nccl_backend::job_on(
      std::move(api), std::move(device), caller,
      std::chrono::seconds(chosen.time_limit_s == 0 ? 300 : chosen.time_limit_s));
  job.over_parent = chosen.nccl_collectives == 0;
  return job;
}

}  // namespace

extern "C" {

const char* reshard_nccl_last_error(void) { return last_error_text(); }

int32_t reshard_nccl_create(struct ncclComm* comm, struct CUstream_st* stream,
                            const reshard_nccl_options* options, reshard_nccl** nccl) {
  return guarded([&] {
    given(nccl, "nccl");
    if (comm == nullptr) throw InputError("comm: expected a communicator, found NULL");
    *nccl = new reshard_nccl{nccl_backend::NcclExecutor(job_of(comm, stream, chosen_of(options)))};
  });
}

void reshard_nccl_free(reshard_nccl* nccl) { delete nccl; }

int32_t reshard_nccl_get_memory(reshard_nccl* nccl, const reshard_plan* plan,
                                const reshard_nccl_shards* shards, int64_t* bytes) {
  return guarded([&] {
    nccl_backend::NcclExecutor& executor = given(nccl, "nccl").executor;
    given(plan, "plan");
    given(bytes, "bytes");
    Plan copy = copy_of(plan);
    *bytes = executor.needed_bytes(copy, shards_of(shards, copy.tensors.size()));
  });
}

int32_t reshard_nccl_prepare(reshard_nccl* nccl, const reshard_plan* plan,
                             const reshard_nccl_shards* shards, reshard_nccl_plan** prepared) {
  return guarded([&] {
    nccl_backend::NcclExecutor& executor = given(nccl, "nccl").executor;
    std::unique_ptr<reshard_nccl_plan> handle;
    std::vector<CallerShards> lent;
    try {
      given(plan, "plan");
      given(prepared, "prepared");
      handle = std::make_unique<reshard_nccl_plan>(reshard_nccl_plan{copy_of(plan), nullptr});
      lent = shards_of(shards, handle->plan.tensors.size());
    } catch (const InputError& error) {
      executor.refuse(error.what());
    }
    handle->prepared = executor.prepare(handle->plan, lent);
    *prepared = handle.release();
  });
}

void reshard_nccl_plan_free(reshard_nccl_plan* prepared) { delete prepared; }

int32_t reshard_nccl_run(reshard_nccl_plan* prepared) {
  return guarded([&] { given(prepared, "prepared").prepared->enqueue(); });
}

int32_t reshard_nccl_wait(reshard_nccl_plan* prepared) {
  return guarded([&] { given(prepared, "prepared").prepared->wait(); });
}
}
