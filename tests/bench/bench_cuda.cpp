// SPDX-License-Identifier: BSD-3-Clause
// The CUDA backend against the GPU's own copy: the bytes that a plan reads and writes per second,
// relative to those of one cudaMemcpyDeviceToDevice of the same size, both timed by events on the
// device. The two alternate, so that a change of the GPU's clock affects both; the result is the
// ratio of medians. Exit code 77 if there is no GPU.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/executor.h"
#include "backends/device/cuda_device.h"
#include "backends/device/owners.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "tests/support/star.h"

namespace {

using namespace reshard;
using namespace reshard::backends;

constexpr int kRuns = 15, kNoGpu = 77;

struct Case {
  const char* what;
  const char* mesh;
  const char *from, *to;
  const char* planner;
  std::int64_t columns;          // of a bf16 matrix of `bytes`
  std::int64_t reads_per_write;  // 1, or how many addends are folded
  const char* least;             // of the ratio; null: no limit is set
};

constexpr Case kCases[] = {
    {"S(0) -> S(1), 16 ranks", "16", "S(0)", "S(1)", "p2p", 65536, 1, "0.85"},
    {"_S(0,8)S(0) -> S(1)S(0), 2x8 ranks", "2x8", "_S(0,8)S(0)", "S(1)S(0)", "p2p", 65536, 1,
     "0.60"},
    {"S(0) -> S(1), by all_to_all", "16", "S(0)", "S(1)", "rule", 65536, 1, nullptr},
    {"S(0) -> S(1), rows of 2048 B", "16", "S(0)", "S(1)", "p2p", 16384, 1, nullptr},
    {"S(0) -> S(1), rows of 256 B", "16", "S(0)", "S(1)", "p2p", 2048, 1, nullptr},
    {"S(0) -> S(1), rows of 64 B", "16", "S(0)", "S(1)", "p2p", 512, 1, nullptr},
    {"S(0) -> S(1), rows of 16 B", "16", "S(0)", "S(1)", "p2p", 128, 1, nullptr},
    {"S(0) -> S(1), rows of 2 B", "16", "S(0)", "S(1)", "p2p", 16, 1, nullptr},
    {"P(sum) -> S(0), 8 ranks", "8", "P(sum)", "S(0)", "rule", 8192, 8, nullptr},
};

// Of the device's own work between two events.
class Clock {
 public:
  explicit Clock(Device& device) : device_(device), stream_(device), begin_(device), end_(device) {}
  double seconds(const std::function<void(Stream)>& work) {
    device_.record(begin_.get(), stream_.get());
    work(stream_.get());
    device_.record(end_.get(), stream_.get());
    while (!device_.done(end_.get())) {
    }
    return static_cast<double>(device_.elapsed_ps(begin_.get(), end_.get())) * 1e-12;
  }

 private:
  Device& device_;
  StreamOwner stream_;
  EventOwner begin_, end_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Plan planned(const Case& one, std::int64_t bytes) {
  auto mesh = std::make_shared<const Mesh>(parse_mesh(one.mesh));
  std::string shape = std::to_string(bytes / 2 / one.columns) + "," + std::to_string(one.columns);
  Topology topology = test::star(16);
  PlannerInput input;
  input.topology = &topology;
  Plan plan = find_planner(one.planner)
                  .make(Request(parse_layout(shape, "bf16", mesh, one.from),
                                parse_layout(shape, "bf16", mesh, one.to)),
                        input);
  prove(plan);
  return plan;
}

void measure(cuda::CudaExecutor& executor, Device& device, const Case& one, std::int64_t bytes) {
  // A fold reads every addend and writes one; the copy moves as many bytes, half of them reads.
  Plan plan = planned(one, bytes / one.reads_per_write);
  std::int64_t moved = bytes + bytes / one.reads_per_write, copied = moved / 2;
  std::unique_ptr<PreparedPlan> prepared = executor.prepare(plan);
  DeviceMemory from(device, copied), to(device, copied);
  Clock clock(device);
  std::vector<double> plans, copies;
  for (int run = 0; run <= kRuns; ++run) {
    double plan_s = static_cast<double>(prepared->run().end_ps) * 1e-12;
    double copy_s = clock.seconds([&](Stream stream) {
      cudaError_t code =
          cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(copied),
                          cudaMemcpyDeviceToDevice, reinterpret_cast<cudaStream_t>(stream));
      if (code != cudaSuccess)
        throw BackendError("CUDA", "cudaMemcpyAsync", cudaGetErrorName(code), -1);
    });
    if (run == 0) continue;  // warms up
    plans.push_back(plan_s);
    copies.push_back(copy_s);
  }
  double all = static_cast<double>(moved) * 1e-9;
  std::printf("%-36s %8.1f GB/s %8.1f GB/s %7.3f%s%s\n", one.what, all / median(plans),
              all / median(copies), median(copies) / median(plans),
              one.least != nullptr ? "  at least " : "", one.least != nullptr ? one.least : "");
}

int run() {
  CudaMachine machine = look_for_gpus();
  if (machine.gpus.empty()) {
    std::printf("skipped: no GPU to measure: %s\n", machine.why_none.c_str());
    return kNoGpu;
  }
  auto owned = make_cuda_device(0);
  Device& device = *owned;
  cuda::CudaExecutor executor(std::move(owned), {});
  // The plan's two sides and the copy's two.
  std::int64_t bytes = std::int64_t{4} << 30;
  while (5 * bytes > device.free_bytes()) bytes /= 2;
  std::printf("%s; %s of bf16, read and written; median of %d\n\n", device.description().c_str(),
              bytes_text(bytes).c_str(), kRuns);
  std::printf("%-36s %13s %13s %7s\n", "", "plan", "memcpy", "ratio");
  for (const Case& one : kCases) measure(executor, device, one, bytes);
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reshard_bench_cuda: %s\n", error.what());
    return 4;
  }
}
