// SPDX-License-Identifier: BSD-3-Clause
// The table of backends, one row each.
#include "backends/registry/backend.h"
#if RESHARD_HAS_CUDA
#include "backends/cuda/backend.h"
#endif
#if RESHARD_HAS_NCCL
#include "backends/nccl/backend.h"
#endif
#if RESHARD_HAS_MPI
#include "backends/registry/mpi_plugin.h"
#endif
#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard::backends {
namespace {

// The `make` of a backend that was left out when reshard was built.
[[maybe_unused]] std::unique_ptr<Executor> refuse(const char* why) { throw InputError(why); }

#define RESHARD_ABSENT(what, how) \
  [] { return BackendStatus{false, what, how}; }, [](const BackendOptions&) { return refuse(what); }

constexpr BackendFacts kMpi{.launched_by = launch::Among::MpiStarts}, kCuda{.uses_gpus = true},
    kNccl{.launched_by = launch::Among::All,
          .meets_at_rendezvous = true,
          .may_drive_all_ranks = true,
          .uses_gpus = true,
          .has_communicators = true,
          .crosses_links = true};

constexpr BackendRow kBackends[] = {
#if RESHARD_HAS_MPI
    {"mpi", "one process per rank, started by mpirun; bytes in host memory", kMpi, probe_mpi,
     make_mpi},
#else
    {"mpi", "one process per rank, started by mpirun; bytes in host memory", kMpi,
     RESHARD_ABSENT("reshard was built without MPI",
                    "apt install libopenmpi-dev openmpi-bin, then build reshard again")},
#endif
#if RESHARD_HAS_CUDA
    {"cuda", "every rank's shard in one GPU's memory", kCuda, cuda::probe, cuda::make},
#else
    {"cuda", "every rank's shard in one GPU's memory", kCuda,
     RESHARD_ABSENT("reshard was built without the CUDA Toolkit",
                    "install NVIDIA's cuda-toolkit, then build reshard again")},
#endif
#if RESHARD_HAS_NCCL
    {"nccl", "one rank per GPU, carried by NCCL", kNccl, nccl::probe, nccl::make},
#else
    {"nccl", "one rank per GPU, carried by NCCL", kNccl,
     RESHARD_ABSENT("reshard was built without NCCL",
                    "install NVIDIA's libnccl-dev, then build reshard again")},
#endif
};

#undef RESHARD_ABSENT

}  // namespace

std::span<const BackendRow> backends() { return kBackends; }

const BackendRow& find_backend(std::string_view name) {
  std::string names;
  for (const BackendRow& row : kBackends) {
    if (row.name == name) return row;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  throw InputError("backend: expected one of " + names + ", found " + quoted(name));
}

}  // namespace reshard::backends
