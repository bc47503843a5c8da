// SPDX-License-Identifier: BSD-3-Clause
#include "tools/carrier_options.h"
#include "tools/agreement.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/backend_choice.h"

namespace reshard::tools {

void add_carrier_options(CLI::App& command, CarrierOptions& options) {
  const char* group = "Backend";
  std::string names;
  for (const std::string& name : backend_names()) names += (names.empty() ? "" : "|") + name;
  command.add_option("--backend", options.backend, names + " (default local)")
      ->type_name("NAME")
      ->check(CLI::IsMember(backend_names()))
      ->group(group);
  command.add_option("--iterations", options.counts.iterations, "timed runs (default 9)")
      ->type_name("COUNT")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000}))
      ->group(group);
  command.add_option("--warmup", options.counts.warm_up, "runs before them (default 2)")
      ->type_name("COUNT")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{100'000}))
      ->group(group);
  command
      .add_option("--time-limit", options.time_limit_s,
                  "seconds that any single wait for other ranks or a device may take (default 300)")
      ->type_name("SECONDS")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{86'400}))
      ->group(group);
  command
      .add_option(
          "--rendezvous", options.rendezvous,
          "where nccl's processes meet: HOST:PORT or file:PATH (default: as the launcher says)")
      ->type_name("PLACE")
      ->group(group);
  command.add_option("--device", options.device, "GPU of this process (default: the local rank's)")
      ->type_name("NUMBER")
      ->check(CLI::Range(0, 1'000))
      ->group(group);
  command
      .add_flag("--declared-order", options.declared_order,
                "fold in the plan's order even where the library's own collective would be faster")
      ->group(group);
}

backends::BackendOptions backend_options(const CarrierOptions& options) {
  backends::BackendOptions out;
  out.time_limit_s = options.time_limit_s;
  out.rendezvous = options.rendezvous;
  out.device = options.device;
  out.declared_order = options.declared_order;
  if (launch_of(options.backend).rank == 0)
    out.warn = [](const std::string& what) {
      std::fprintf(stderr, "reshard: warning: %s\n", what.c_str());
    };
  return out;
}

}  // namespace reshard::tools
