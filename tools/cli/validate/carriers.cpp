// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/validate/carriers.h"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "core/base/errors.h"
#include "sim/store/store.h"
#include "tools/cli/options.h"
#include "tools/cli/validate/agreement.h"

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

void add_carrier_options(CLI::App& command, CarrierOptions& options) {
  std::vector<std::string> names{"local"};
  for (const backends::BackendRow& row : backends::backends()) names.emplace_back(row.name);
  constexpr std::int64_t kMaxIterations = 100'000, kMaxWaitS = 86'400;
  OptionGroup group(command, "Backend");
  group.add_choice("--backend", "NAME", options.backend, names,
                   fmt::format("{} (default local)", fmt::join(names, "|")));
  group.add_count("--iterations", "COUNT", options.counts.iterations, std::int64_t{1},
                  kMaxIterations, "timed runs (default 9)");
  group.add_count("--warmup", "COUNT", options.counts.warm_up, std::int64_t{0}, kMaxIterations,
                  "runs before them (default 2)");
  group.add_count(
      "--time-limit", "SECONDS", options.time_limit_s, std::int64_t{1}, kMaxWaitS,
      "seconds that any single wait for other ranks or a device may take (default 300)");
  group.add("--rendezvous", "PLACE", options.rendezvous,
            "where nccl's processes meet: HOST:PORT or file:PATH (default: as the launcher says)");
  group.add_count("--device", "NUMBER", options.device, 0, 1'000,
                  "GPU of this process (default: the local rank's)");
  group.add_flag(
      "--declared-order", options.declared_order,
      "fold in the plan's order even where the library's own collective would be faster");
  group.add("--communicators", "POLICY", options.communicators,
            "of nccl: eager (default), cached, pairwise, stream-per-pair or split "
            "(docs/communicators.md)");
}

backends::BackendOptions backend_options(const CarrierOptions& options) {
  backends::BackendOptions out;
  out.time_limit_s = options.time_limit_s;
  out.rendezvous = options.rendezvous;
  out.device = options.device;
  out.declared_order = options.declared_order;
  if (!options.communicators.empty()) {
    out.communicators = parse_communicators(options.communicators, "--communicators");
    if (options.backend != "nccl")
      throw InputError("--communicators: expected --backend nccl beside it, found " +
                       options.backend);
  }
  if (launch_of(options.backend).rank == 0)
    out.warn = [](const std::string& what) {
      std::fprintf(stderr, "reshard: warning: %s\n", what.c_str());
    };
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
