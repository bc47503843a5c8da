// SPDX-License-Identifier: BSD-3-Clause
#include "backends/device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <cmath>
#include <exception>

#include <fmt/core.h>

#include "backends/device/kernels/cuda_kernels.h"
#include "core/base/errors.h"
#include "core/base/ids.h"
#include "core/base/units.h"

namespace reshard::backends {
namespace {

void check(cudaError_t code, const std::string& call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // clears the error, else the next call would report it again
  throw BackendError("CUDA", call,
                     fmt::format("{} ({})", cudaGetErrorName(code), cudaGetErrorString(code)), -1);
}

cudaStream_t stream_of(Stream stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(Event event) { return reinterpret_cast<cudaEvent_t>(event); }

// 13020 is "13.2".
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string gpu_text(const cudaDeviceProp& properties) {
  return fmt::format("{}, {}", properties.name,
                     bytes_text(static_cast<std::int64_t>(properties.totalGlobalMem)));
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {
    select();
    check(cudaFree(nullptr),
          "cudaFree(0)");  // creates the context, so that a failure to do so shows here
    cudaDeviceProp properties{};
    int runtime = 0;
    check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    description_ = fmt::format("{}, CUDA {}", gpu_text(properties), version_text(runtime));
    multiprocessors_ = properties.multiProcessorCount;
  }

  std::string description() const override { return description_; }
  int multiprocessors() const override { return multiprocessors_; }
  void select() override { check(cudaSetDevice(index_), fmt::format("cudaSetDevice({})", index_)); }

  std::byte* allocate(std::int64_t bytes) override {
    select();
    void* memory = nullptr;
    check(cudaMalloc(&memory, to_index(bytes)), fmt::format("cudaMalloc({})", bytes));
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) noexcept override {
    cudaSetDevice(index_);
    cudaFree(memory);
  }
  std::int64_t free_bytes() override {
    select();
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<std::int64_t>(free);
  }

  Stream create_stream() override {
    select();
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return reinterpret_cast<Stream>(stream);
  }
  void destroy(Stream stream) noexcept override {
    cudaSetDevice(index_);
    cudaStreamDestroy(stream_of(stream));
  }
  Event create_event() override {
    select();
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "cudaEventCreate");
    return reinterpret_cast<Event>(event);
  }
  void destroy(Event event) noexcept override {
    cudaSetDevice(index_);
    cudaEventDestroy(event_of(event));
  }
  void record(Event event, Stream stream) override {
    select();
    check(cudaEventRecord(event_of(event), stream_of(stream)), "cudaEventRecord");
  }
  void wait(Stream stream, Event event) override {
    select();
    check(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0), "cudaStreamWaitEvent");
  }
  bool done(Event event) override {
    select();
    cudaError_t code = cudaEventQuery(event_of(event));
    if (code == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(code, "cudaEventQuery");
    return true;
  }
  std::int64_t elapsed_ps(Event from, Event to) override {
    select();
    float ms = 0;
    check(cudaEventElapsedTime(&ms, event_of(from), event_of(to)), "cudaEventElapsedTime");
    return std::llround(static_cast<double>(ms) * 1e9);
  }

  void upload(std::byte* to, std::span<const std::byte> from_host, Stream stream) override {
    copy_bytes(to, from_host.data(), from_host.size(), cudaMemcpyHostToDevice, stream);
  }
  void download(std::span<std::byte> to_host, const std::byte* from, Stream stream) override {
    copy_bytes(to_host.data(), from, to_host.size(), cudaMemcpyDeviceToHost, stream);
  }
  void set_bytes(std::byte* to, std::int64_t bytes, std::uint8_t value, Stream stream) override {
    select();
    check(cudaMemsetAsync(to, value, to_index(bytes), stream_of(stream)),
          fmt::format("cudaMemsetAsync of {} bytes", bytes));
  }

  void copy(const CopyLaunch& launch, Stream stream) override {
    this->launch("copy kernel", [&] { cuda_kernels::copy(launch, stream_of(stream)); });
  }
  void fold(const FoldLaunch& launch, Stream stream) override {
    this->launch("fold kernel", [&] { cuda_kernels::fold(launch, stream_of(stream)); });
  }

 private:
  void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, cudaMemcpyKind kind,
                  Stream stream) {
    select();
    check(cudaMemcpyAsync(to, from, bytes, kind, stream_of(stream)),
          fmt::format("cudaMemcpyAsync of {} bytes", bytes));
  }

  // Thrust throws an exception with the reason why a launch failed.
  template <class Launch>
  void launch(const char* what, Launch&& launch) {
    select();
    try {
      launch();
    } catch (const std::exception& error) {
      cudaGetLastError();
      throw BackendError("CUDA", what, error.what(), -1);
    }
    check(cudaGetLastError(), what);
  }

  int index_;
  std::string description_;
  int multiprocessors_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(int index) { return std::make_unique<CudaDevice>(index); }

CudaMachine look_for_gpus() noexcept {
  CudaMachine out;
  try {
    int count = 0, runtime = 0, driver = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess) {
      cudaGetLastError();
      out.why_none = cudaGetErrorString(code);
      return out;
    }
    for (int i = 0; i < count; ++i) {
      cudaDeviceProp properties{};
      check(cudaGetDeviceProperties(&properties, i), "cudaGetDeviceProperties");
      out.gpus.push_back(gpu_text(properties));
      std::string& id = out.ids.emplace_back();
      for (char byte : properties.uuid.bytes)
        id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    out.versions =
        fmt::format("CUDA runtime {}, driver for {}", version_text(runtime), version_text(driver));
    if (count == 0) out.why_none = "no GPU";
  } catch (const std::exception& error) {
    out.gpus.clear();
    out.ids.clear();
    out.why_none = error.what();
  }
  return out;
}

}  // namespace reshard::backends
