// SPDX-License-Identifier: BSD-3-Clause
// `reshard validate`: the command line of validation.h.
#include <CLI/CLI.hpp>
#include <memory>

#include "core/base/errors.h"
#include "tools/agreement.h"
#include "tools/backend_choice.h"
#include "tools/commands.h"
#include "tools/pipeline.h"
#include "tools/validation.h"

namespace reshard::tools {

namespace {

void run_validate(const ValidateOptions& options) {
  BackendInfo backend = backend_info(options.carrier.backend);
  if (!backend.status.usable)
    fail_together(backend.name, std::make_exception_ptr(InputError("--backend " + text(backend))));
  backends::BackendOptions carrier = backend_options(options.carrier);
  // One process without a launcher drives all ranks that the request names, also where they share a
  // GPU.
  if (backend.name == "nccl" && launch_of(backend.name).launcher.empty())
    carrier.world_size = to_int(subject_of(options.request).asked().ranks().back()) + 1;
  std::unique_ptr<Executor> executor = make_executor(backend, carrier);
  validate_on(*executor, backend, options);
}

std::string validate_footer() {
  std::string out =
      "Example:\n  reshard validate --mesh 4 --shape 4096,4096 --from 'S(0)' --to 'S(1)'\n"
      "  mpirun -np 4 reshard validate --mesh 4 --shape 4096,4096 --from 'S(0)' --to 'S(1)' "
      "--backend mpi --perfetto both.json\n"
      "  torchrun --no-python --nproc-per-node 4 reshard validate --mesh 4 --shape 4096,4096 "
      "--from 'S(0)' --to 'S(1)' --backend nccl\n\nBackends here:";
  for (const BackendInfo& backend : backend_infos()) out += "\n  " + text(backend);
  return out;
}

}  // namespace

void add_validate_command(CLI::App& app) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = app.add_subcommand(
      "validate",
      "run the plan on real ranks, compare bytes with the store and time with the prediction");
  add_request_options(*command, options->request);
  add_machine_options(*command, options->machine);
  add_carrier_options(*command, options->carrier);
  command
      ->add_option("--data-budget", options->data_budget,
                   "bytes that the store may take when the root runs the plan in it for comparison "
                   "(default 2GiB)")
      ->type_name("BYTES")
      ->group("Data");
  add_json_option(*command, options->output);
  add_perfetto_option(*command, options->output);
  command
      ->add_option(
          "--measurements", options->measurements,
          "write what was measured (traces/measurements-format.md; '-': to standard output)")
      ->type_name("FILE")
      ->check(check_file_name)
      ->group("Output");
  command->footer(std::function<std::string()>(validate_footer));
  command->callback([options] { run_validate(*options); });
}

}  // namespace reshard::tools
