// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/validate/carriers.h"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "core/base/errors.h"
#include "sim/store/machine_memory.h"
#include "sim/store/store.h"
#include "tools/cli/options.h"
#include "tools/cli/pipeline.h"
#include "tools/cli/validate/agreement.h"

namespace reshard::tools {
namespace {

using backends::BackendFacts;
using backends::BackendRow;

constexpr BackendRow kLocal{
    "local",
    "every rank's bytes in this process: the store itself, timed",
    {},
    [] {
      return backends::BackendStatus{true, "the store, one thread", ""};
    },
    [](const backends::BackendOptions&) -> std::unique_ptr<Executor> {
      return std::make_unique<sim::Store>(sim::StoreOptions{
          .now_ps = steady_ps, .memory_limit_bytes = sim::memory_of_machine_bytes()});
    }};

std::vector<std::string_view> names_with(bool BackendFacts::*fact) {
  std::vector<std::string_view> out;
  for (const BackendRow* row : carriers())
    if (row->facts.*fact) out.push_back(row->name);
  return out;
}

}  // namespace

std::vector<const BackendRow*> carriers() {
  std::vector<const BackendRow*> out{&kLocal};
  for (const BackendRow& row : backends::backends()) out.push_back(&row);
  return out;
}

const BackendRow* find_carrier(std::string_view name) {
  for (const BackendRow* row : carriers())
    if (row->name == name) return row;
  return nullptr;
}

void add_carrier_options(CLI::App& command, CarrierOptions& options) {
  std::vector<std::string> names;
  for (const BackendRow* row : carriers()) names.emplace_back(row->name);
  constexpr std::int64_t kMaxIterations = 100'000, kMaxWaitS = 86'400;
  OptionGroup group(command, "Backend");
  group.add_choice("--backend", "NAME", options.backend, names,
                   fmt::format("{} (default local)", fmt::join(names, "|")));
  group.add_count("--iterations", "COUNT", options.counts.iterations, std::int64_t{1},
                  kMaxIterations, "timed runs (default 9)");
  group.add_count("--warmup", "COUNT", options.counts.warm_up, std::int64_t{0}, kMaxIterations,
                  "untimed runs before them (default 2)");
  group.add_count(
      "--time-limit", "SECONDS", options.time_limit_s, std::int64_t{1}, kMaxWaitS,
      "the most seconds that a single wait for other ranks or a device may take (default 300)");
  group.add(
      "--rendezvous", "PLACE", options.rendezvous,
      fmt::format("where processes of {} meet: HOST:PORT or file:PATH (default: from the launcher)",
                  fmt::join(names_with(&BackendFacts::meets_at_rendezvous), ", ")));
  group.add_count("--device", "NUMBER", options.device, 0, 1'000,
                  "GPU of this process (default: the local rank's)");
  group.add_flag("--declared-order", options.declared_order,
                 "fold in the plan's order even if the library's own collective would be faster");
  group.add("--communicators", "POLICY", options.communicators,
            fmt::format(
                "communicators of {}: eager (default), cached, pairwise, stream-per-pair or split "
                "(docs/communicators.md)",
                fmt::join(names_with(&BackendFacts::has_communicators), ", ")));
}

backends::BackendOptions backend_options(const CarrierOptions& options) {
  backends::BackendOptions out;
  out.time_limit_s = options.time_limit_s;
  out.rendezvous = options.rendezvous;
  out.device = options.device;
  out.declared_order = options.declared_order;
  if (!options.communicators.empty()) {
    out.communicators = parse_communicators(options.communicators, "--communicators");
    const BackendRow* row = find_carrier(options.backend);
    if (row == nullptr || !row->facts.has_communicators)
      throw InputError(fmt::format("--communicators: expected --backend {} with it, found {}",
                                   fmt::join(names_with(&BackendFacts::has_communicators), " or "),
                                   options.backend));
  }
  if (launch_of(find_carrier(options.backend)).rank == 0)
    out.warn = [](const std::string& what) {
      std::fprintf(stderr, "reshard: warning: %s\n", what.c_str());
    };
  return out;
}

std::vector<BackendInfo> backend_infos() {
  std::vector<BackendInfo> out;
  for (const BackendRow* row : carriers()) out.push_back({*row, row->probe()});
  return out;
}

BackendInfo backend_info(std::string_view name) {
  const BackendRow* row = find_carrier(name);
  if (row == nullptr) row = &backends::find_backend(name);  // which throws
  return {*row, row->probe()};
}

std::string text(const BackendInfo& backend) {
  if (backend.status.usable)
    return fmt::format("{}: usable, {}", backend.row.name, backend.status.what);
  return fmt::format("{}: not usable, {} ({})", backend.row.name, backend.status.what,
                     backend.status.how_to_get);
}

std::unique_ptr<Executor> make_executor(const BackendInfo& backend,
                                        const backends::BackendOptions& options) {
  if (!backend.status.usable) throw InputError("--backend " + text(backend));
  return backend.row.make(options);
}

std::int64_t steady_ps() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
             .count() *
         1000;
}

}  // namespace reshard::tools
