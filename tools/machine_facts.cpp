// SPDX-License-Identifier: BSD-3-Clause
#include "tools/machine_facts.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "core/base/units.h"
#include "tools/pipeline.h"

namespace reshard::tools {

namespace {

// A shared library that is looked for when it is asked about. It stays loaded: unloading drivers is
// not safe.
class SharedLibrary {
 public:
  explicit SharedLibrary(const char* name) : handle_(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}
  bool found() const { return handle_ != nullptr; }
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

Fact cuda_driver() {
  const char* name = "CUDA driver";
  SharedLibrary cuda("libcuda.so.1");
  if (!cuda.found())
    return {name, false,
            "not found; it comes with NVIDIA's driver (Debian: apt install nvidia-driver, "
            "component non-free)"};
  auto* init = cuda.function<int(unsigned)>("cuInit");
  auto* version = cuda.function<int(int*)>("cuDriverGetVersion");
  auto* count = cuda.function<int(int*)>("cuDeviceGetCount");
  int number = 0, devices = 0;
  if (init == nullptr || version == nullptr || count == nullptr || version(&number) != 0)
    return {name, false, "found, but it does not answer"};
  if (int code = init(0); code != 0)
    return {name, false,
            fmt::format("for CUDA {}.{}, but no GPU answers (cuInit: {})", number / 1000,
                        number % 1000 / 10, code)};
  if (count(&devices) != 0) return {name, false, "found, but it does not tell its GPUs"};
  return {name, true,
          fmt::format("for CUDA {}.{}, {} GPU{}", number / 1000, number % 1000 / 10, devices,
                      devices == 1 ? "" : "s")};
}

Fact cuda_toolkit() {
  std::string_view version = RESHARD_CUDA_TOOLKIT;
  if (version.empty())
    return {"CUDA Toolkit", false,
            "not found when reshard was built; everything here works without it (Debian: apt "
            "install nvidia-cuda-toolkit)"};
  return {"CUDA Toolkit", true, fmt::format("{} when reshard was built", version)};
}

Fact nccl() {
  SharedLibrary library("libnccl.so.2");
  auto* version = library.found() ? library.function<int(int*)>("ncclGetVersion") : nullptr;
  int number = 0;
  if (version == nullptr || version(&number) != 0)
    return {"NCCL", false,
            "libnccl.so.2 not found (Debian: apt install libnccl2, component contrib)"};
  return {"NCCL", true,
          fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100)};
}

Fact compiler() {
#if defined(__clang__)
  return {"built by", true,
          fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__)};
#else
  return {"built by", true,
          fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)};
#endif
}

}  // namespace

std::vector<Fact> machine_facts() {
  return {compiler(),
          {"processors", true, std::to_string(sysconf(_SC_NPROCESSORS_ONLN))},
          {"memory", true,
           bytes_text(memory_of_machine_bytes()) +
               "; bytes are moved at full size up to a --data-budget of 2 GiB"},
          cuda_driver(),
          cuda_toolkit(),
          nccl()};
}

}  // namespace reshard::tools
