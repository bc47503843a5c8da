// SPDX-License-Identifier: BSD-3-Clause
// `reshard doctor`: what this machine has, what is missing, and how to get it. Everything is looked
// up at run time, without headers of or links to any of it.
#include <cstdlib>
#include <memory>
#include <string_view>

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/planners/planner.h"
#include "sim/report/json.h"
#include "sim/report/table.h"
#include "sim/store/machine_memory.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"
#include "tools/cli/pipeline.h"
#include "tools/cli/validate/carriers.h"

namespace reshard::tools {

namespace {

struct Fact {
  std::string name;  // "CUDA driver"
  bool found;
  std::string value;  // what was found, or what is missing and how to get it
};

// A shared library, loaded when it is asked about. It stays loaded, as unloading drivers is not
// safe.
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
    return {name, false, "found, but it does not respond"};
  if (int code = init(0); code != 0)
    return {name, false,
            fmt::format("for CUDA {}.{}, but no GPU responds (cuInit: {})", number / 1000,
                        number % 1000 / 10, code)};
  if (count(&devices) != 0) return {name, false, "found, but it does not list its GPUs"};
  return {name, true,
          fmt::format("for CUDA {}.{}, {} GPU{}", number / 1000, number % 1000 / 10, devices,
                      devices == 1 ? "" : "s")};
}

Fact cuda_toolkit() {
  std::string_view version = RESHARD_CUDA_TOOLKIT;
  if (version.empty())
    return {"CUDA Toolkit", false,
            "not found when reshard was built, or older than 12.0 (as in Debian 12); everything "
            "here works without it (NVIDIA's package cuda-toolkit)"};
  return {"CUDA Toolkit", true, fmt::format("{} when reshard was built", version)};
}

// The one that the backend uses.
Fact nccl() {
  const char* named = std::getenv("RESHARD_NCCL_LIBRARY");
  SharedLibrary library(named != nullptr ? named : "libnccl.so.2");
  auto* version = library.found() ? library.function<int(int*)>("ncclGetVersion") : nullptr;
  int number = 0;
  if (version == nullptr || version(&number) != 0)
    return {"NCCL", false,
            named != nullptr
                ? fmt::format("RESHARD_NCCL_LIBRARY: no NCCL in {}", quoted(named))
                : "libnccl.so.2 not found (NVIDIA's package libnccl2, or PyPI's nvidia-nccl-cu12)"};
  return {"NCCL", true,
          fmt::format("{}.{}.{}{}", number / 10000, number % 10000 / 100, number % 100,
                      named != nullptr ? fmt::format(", in {}", named) : "")};
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

// The compiler and libraries of this build, then CUDA and NCCL as found now. Backends report their
// own status.
std::vector<Fact> machine_facts() {
  return {compiler(),
          {"processors", true, std::to_string(sysconf(_SC_NPROCESSORS_ONLN))},
          {"memory", true,
           bytes_text(sim::memory_of_machine_bytes()) +
               "; bytes are moved at full size up to a --data-budget of 2 GiB"},
          cuda_driver(),
          cuda_toolkit(),
          nccl()};
}

std::string doctor_table() {
  std::size_t width = screen_width();
  sim::Table machine({"this machine", "", ""});
  for (const Fact& fact : machine_facts())
    machine.add_row({fact.name, fact.found ? "ok" : "--", fact.value});
  sim::Table carriers({"backend", "", "for", "found"});
  for (const BackendInfo& backend : backend_infos()) {
    const backends::BackendStatus& status = backend.status;
    carriers.add_row({backend.name(), status.usable ? "ok" : "--", std::string(backend.row.purpose),
                      status.usable ? status.what : status.what + "; " + status.how_to_get});
  }
  sim::Table strategies({"planner", "for"});
  for (const PlannerRow& row : planners())
    strategies.add_row({std::string(row.name), std::string(row.purpose)});
  return fmt::format("reshard {}\n\n{}\n{}\n{}\n{}", kVersion, machine.text(width),
                     carriers.text(width), strategies.text(width), presets_table());
}

std::string doctor_json() {
  using sim::Json;
  return sim::written(
      {{"schema", "reshard.doctor/1"},
       {"version", kVersion},
       {"machine",
        sim::list_json(machine_facts(),
                       [](const Fact& fact) -> Json {
                         return {{"name", fact.name}, {"found", fact.found}, {"value", fact.value}};
                       })},
       {"backends", sim::list_json(backend_infos(),
                                   [](const BackendInfo& backend) -> Json {
                                     return {{"name", backend.row.name},
                                             {"purpose", backend.row.purpose},
                                             {"usable", backend.status.usable},
                                             {"what", backend.status.what},
                                             {"how_to_get", backend.status.how_to_get}};
                                   })},
       {"planners", sim::list_json(planners(),
                                   [](const PlannerRow& row) -> Json {
                                     return {{"name", row.name}, {"purpose", row.purpose}};
                                   })},
       {"topologies", presets_json()}});
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App& command = add_command(
      app, "doctor", "report what was found on this machine, what is missing and how to get it",
      "Example:\n  reshard doctor",
      [options] { print(options->json ? doctor_json() : doctor_table()); });
  add_json_option(command, *options);
}

}  // namespace reshard::tools
