// SPDX-License-Identifier: BSD-3-Clause
// The C API for NCCL on real GPUs: one thread per rank, each with a communicator, a stream and
// buffers that reshard only borrows. Like a framework, the program uses the shared CUDA runtime.
// Skipped if there is no GPU.
//
//     capi_on_nccl [RANKS]     without RANKS one per GPU, else dealt out to the GPUs; ranks that
//                              share a GPU need NCCL 2.30
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <reshard/reshard_nccl.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kSkipped = 77;
std::atomic<int> failures{0};

void expect(bool holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "run_on_nccl.cpp:%d: %s (last errors: %s; %s)\n", line, what,
               reshard_nccl_last_error(), reshard_last_error());
}
#define EXPECT(CONDITION) expect((CONDITION), #CONDITION, __LINE__)

// What the program itself asks of NCCL.
struct Nccl {
  int version = 0;
  decltype(::ncclGetUniqueId)* get_unique_id = nullptr;
  decltype(::ncclCommInitRank)* init_rank = nullptr;
  decltype(::ncclCommDestroy)* destroy = nullptr;
  bool open() {
    const char* named = std::getenv("RESHARD_NCCL_LIBRARY");
    void* library = ::dlopen(named == nullptr ? "libnccl.so.2" : named, RTLD_NOW | RTLD_LOCAL);
#ifdef RESHARD_NCCL_FILE
    if (library == nullptr && named == nullptr)
      library = ::dlopen(RESHARD_NCCL_FILE, RTLD_NOW | RTLD_LOCAL);
#endif
    if (library == nullptr) return false;
    auto* get_version =
        reinterpret_cast<decltype(::ncclGetVersion)*>(::dlsym(library, "ncclGetVersion"));
    if (get_version == nullptr || get_version(&version) != ncclSuccess) return false;
    get_unique_id = reinterpret_cast<decltype(get_unique_id)>(::dlsym(library, "ncclGetUniqueId"));
    init_rank = reinterpret_cast<decltype(init_rank)>(::dlsym(library, "ncclCommInitRank"));
    destroy = reinterpret_cast<decltype(destroy)>(::dlsym(library, "ncclCommDestroy"));
    return get_unique_id != nullptr && init_rank != nullptr && destroy != nullptr;
  }
};

reshard_plan* plan_of(int ranks, const char* from, const char* to) {
  std::string mesh = std::to_string(ranks),
              shape = std::to_string(2 * ranks) + "," + std::to_string(2 * ranks);
  auto texts = reshard_initialised<reshard_request_texts>();
  texts.mesh = mesh.c_str();
  texts.shape = shape.c_str();
  texts.dtype = "i32";
  texts.from = from;
  texts.to = to;
  reshard_request* request = nullptr;
  reshard_plan* plan = nullptr;
  EXPECT(reshard_request_create(&texts, &request) == RESHARD_OK &&
         reshard_plan_create(request, nullptr, nullptr, &plan) == RESHARD_OK);
  reshard_request_free(request);
  return plan;
}

struct RankOfJob {
  int ranks, rank;
  cudaStream_t stream;
  std::barrier<>* all;

  // Frees wait for the whole GPU, and on a shared one so for the other ranks: nobody may be in the
  // middle of anything.
  template <class Free>
  void apart(Free&& free) const {
    all->arrive_and_wait();
    free();
    all->arrive_and_wait();
  }

  // Global element (row, column) of the 2n x 2n array is base + row * 2n + column; rank r starts
  // with two rows of it, or with all of it as a summand.
  void run(reshard_nccl* nccl, bool sums) const {
    int width = 2 * ranks, source_count = sums ? width * width : 2 * width,
        destination_count = 2 * width;
    auto shards = reshard_initialised<reshard_nccl_shards>();
    shards.source_bytes = static_cast<std::int64_t>(source_count * sizeof(int));
    shards.destination_bytes = static_cast<std::int64_t>(destination_count * sizeof(int));
    std::size_t source_size = static_cast<std::size_t>(shards.source_bytes),
                found_size = static_cast<std::size_t>(shards.destination_bytes);
    // A copy to pageable memory waits in the driver for this rank's kernels, and may keep other
    // threads from launching those that they wait for.
    int *source = nullptr, *found = nullptr;
    void* device_source = nullptr;
    EXPECT(cudaMallocHost(&source, source_size) == cudaSuccess &&
           cudaMallocHost(&found, found_size) == cudaSuccess &&
           cudaMalloc(&device_source, source_size) == cudaSuccess &&
           cudaMalloc(&shards.destination, found_size) == cudaSuccess);
    shards.source = device_source;
    reshard_plan* plan = plan_of(ranks, sums ? "P" : "S(0)", sums ? "S(0)" : "S(1)");
    reshard_nccl_plan* prepared = nullptr;
    std::int64_t bytes = -1;
    EXPECT(reshard_nccl_get_memory(nccl, plan, &shards, &bytes) == RESHARD_OK && bytes >= 0);
    EXPECT(reshard_nccl_prepare(nccl, plan, &shards, &prepared) == RESHARD_OK);
    reshard_plan_free(plan);
    for (int round = 0; prepared != nullptr && round < 3; ++round) {
      int base = 1000 * round, first = sums ? 0 : 2 * rank * width;
      for (int i = 0; i < source_count; ++i) source[i] = base + first + i;
      EXPECT(cudaMemcpyAsync(device_source, source, source_size, cudaMemcpyHostToDevice, stream) ==
             cudaSuccess);
      EXPECT(reshard_nccl_run(prepared) == RESHARD_OK);
      EXPECT(cudaMemcpyAsync(found, shards.destination, found_size, cudaMemcpyDeviceToHost,
                             stream) == cudaSuccess);
      EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
      bool right = true;
      for (int i = 0; i < destination_count; ++i) {
        int expected =
            sums ? ranks * (base + 2 * rank * width + i) : base + i / 2 * width + 2 * rank + i % 2;
        right = right && found[i] == expected;
      }
      EXPECT(right);
    }
    EXPECT(reshard_nccl_wait(prepared) == RESHARD_OK);
    apart([&] {
      reshard_nccl_plan_free(prepared);
      cudaFreeHost(source);
      cudaFreeHost(found);
      cudaFree(device_source);
      cudaFree(shards.destination);
    });
  }
};

void run_rank(const Nccl& nccl, const ncclUniqueId& id, int ranks, int rank, int gpus,
              std::barrier<>& all) {
  EXPECT(cudaSetDevice(rank % gpus) == cudaSuccess);
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  EXPECT(nccl.init_rank(&comm, ranks, id, rank) == ncclSuccess);
  EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  RankOfJob me{ranks, rank, stream, &all};
  for (std::uint32_t own_collectives : {0u, 1u}) {
    auto options = reshard_initialised<reshard_nccl_options>();
    options.nccl_collectives = own_collectives;
    options.time_limit_s = 60;
    reshard_nccl* handle = nullptr;
    EXPECT(reshard_nccl_create(comm, stream, &options, &handle) == RESHARD_OK);
    for (bool sums : {false, true}) me.run(handle, sums);
    me.apart([&] { reshard_nccl_free(handle); });
  }
  EXPECT(nccl.destroy(comm) == ncclSuccess);
  cudaStreamDestroy(stream);
}

// Each rank has a thread. Where ranks share a GPU, nothing may wait for all of its work once some
// rank's kernel waits for another rank: neither loading a kernel nor connecting on first use. CUDA
// reads its variables when it starts.
void let_ranks_share() {
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  ::setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) let_ranks_share();
  int gpus = 0;
  Nccl nccl;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0 || !nccl.open()) {
    std::printf("skipped: no GPU, or no libnccl.so.2\n");
    return kSkipped;
  }
  int ranks = argc > 1 ? std::atoi(argv[1]) : gpus;
  if (ranks > gpus && nccl.version < 23000) {
    std::printf("skipped: %d ranks on %d GPUs need NCCL 2.30 or newer\n", ranks, gpus);
    return kSkipped;
  }
  if (ranks > gpus) {
    // As `reshard validate` does: all ranks' kernels must be on the GPU at once.
    ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    ::setenv("NCCL_NVLS_ENABLE", "0", 0);
    ::setenv("NCCL_MAX_CTAS", "4", 0);
  }
  ncclUniqueId id;
  EXPECT(nccl.get_unique_id(&id) == ncclSuccess);
  std::barrier<> all(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { run_rank(nccl, id, ranks, rank, gpus, all); });
  for (std::thread& thread : threads) thread.join();
  std::printf("run_on_nccl: %d ranks on %d GPUs, %s\n", ranks, gpus,
              failures == 0 ? "all as expected" : "NOT as expected");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
