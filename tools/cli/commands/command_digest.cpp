// SPDX-License-Identifier: BSD-3-Clause
// `reshard digest`: digests of what ranks should have after a transfer, and where those of what
// they have differ.
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/check/check_file.h"
#include "sim/digest/digest_file.h"
#include "sim/trace/line_reader.h"
#include "sim/weights/weights.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {
namespace {

struct DigestOptions {
  std::string layouts, weights, side, expected, before;
  std::vector<std::string> wrote;
  std::int64_t rows = 0;
  OutputOptions output;
};

sim::ModelLayouts layouts_in(const std::string& path) {
  sim::ModelLayouts out;
  sim::with_file(path, "layouts", [&](std::istream& in, const std::string& name) {
    sim::LineReader lines(in, name);
    out = sim::read_sides(lines, name);
  });
  return out;
}

void run_digest(const DigestOptions& options) {
  sim::ModelLayouts layouts = layouts_in(options.layouts);
  auto sides = sim::parse_sides(options.side.empty() ? "to" : options.side, "--side");
  sim::Weights weights(options.weights);
  sim::Digests digests = sim::digests_of_weights(layouts, weights, sides, options.rows);
  print(sim::write_digest_file(sim::file_of(digests, layouts)));
}

}  // namespace

void add_digest_command(CLI::App& app) {
  auto options = std::make_shared<DigestOptions>();
  CLI::App& command =
      add_command(app, "digest", "print digests of what ranks should hold, or where they differ",
                  "Example:\n  reshard digest",
                  [options] { run_digest(*options); });
  OptionGroup group(command, "Digests");
  group.add_required("--layout", "FILE", options->layouts, "layouts of a model (docs/check.md)");
  group.add("--weights", "DIR", options->weights,
            "the model's tensors: a folder with model.safetensors or its index, or a file");
  group.add("--side", "SIDE", options->side, "from, to or both (default to)");
  group.add_count("--rows", "N", options->rows, std::int64_t{1}, kMaxBytes, "rows of a block");
}

}  // namespace reshard::tools
