// SPDX-License-Identifier: BSD-3-Clause
#include "tools/backend_choice.h"

#include <fmt/format.h>

#include <chrono>

#include "core/base/errors.h"
#include "sim/store/store.h"

namespace reshard::tools {

namespace {

BackendInfo local_info() {
  return {"local",
          "every rank's bytes in this process: the store itself, on the clock",
          {true, "the store, one thread", ""}};
}

BackendInfo info_of(const backends::BackendRow& row) {
  return {std::string(row.name), std::string(row.purpose), row.probe()};
}

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> out{"local"};
  for (const backends::BackendRow& row : backends::backends()) out.emplace_back(row.name);
  return out;
}

std::vector<BackendInfo> backend_infos() {
  std::vector<BackendInfo> out{local_info()};
  for (const backends::BackendRow& row : backends::backends()) out.push_back(info_of(row));
  return out;
}

BackendInfo backend_info(const std::string& name) {
  return name == "local" ? local_info() : info_of(backends::find_backend(name));
}

std::string text(const BackendInfo& backend) {
  if (backend.status.usable)
    return fmt::format("{}: usable, {}", backend.name, backend.status.what);
  return fmt::format("{}: not usable, {} ({})", backend.name, backend.status.what,
                     backend.status.how_to_get);
}

std::unique_ptr<Executor> make_executor(const BackendInfo& backend,
                                        const backends::BackendOptions& options) {
  if (backend.name == "local")
    return std::make_unique<sim::Store>(sim::StoreOptions{.now_ps = steady_ps});
  if (!backend.status.usable) throw InputError("--backend " + text(backend));
  return backends::find_backend(backend.name).make(options);
}

std::int64_t steady_ps() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
             .count() *
         1000;
}

}  // namespace reshard::tools
