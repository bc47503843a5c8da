// SPDX-License-Identifier: BSD-3-Clause
// `reshard layout`: which rows each rank holds, of a tensor or of a model. `reshard where`: which
// ranks have elements of a tensor, and where.
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/layout/layout.h"
#include "sim/check/check_file.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/printed_layouts.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {
namespace {

struct LayoutOptions {
  std::string what, file;
  std::string mesh, ranks, shape, placements;  // in place of the file
  std::int64_t rank = -1;
  OutputOptions output;
};

sim::ModelLayouts model_in(const LayoutOptions& options) {
  for (const auto& [value, name] : {std::pair{&options.mesh, "--mesh"},
                                    {&options.ranks, "--ranks"},
                                    {&options.shape, "--shape"},
                                    {&options.placements, "--placements"}})
    refuse_both(!value->empty(), name, "FILE");
  require_inputs({{options.file, "FILE"}});
  return sim::read_sides(options.file);
}

// A tensor with placements or boxes, each rank's shard a buffer.
sim::ModelLayouts model_of(const LayoutOptions& options) {
  for (const auto& [value, name] :
       {std::pair{&options.mesh, "--mesh"}, {&options.placements, "--placements"}})
    if (value->empty())
      throw InputError(fmt::format("{}: required, or give a file of layouts", name));
  auto mesh = std::make_shared<const Mesh>(parse_mesh(options.mesh, options.ranks, "--mesh"));
  Layout layout = parse_layout(options.shape, "f32", mesh, options.placements, "--placements");
  sim::ModelLayouts out{std::make_unique<ModelTensors>(), nullptr, nullptr, nullptr};
  ModelTensorId tensor = out.tensors->add("tensor", layout.shape(), layout.dtype());
  out.source = std::make_unique<Stored>(*out.tensors);
  out.destination = std::make_unique<Stored>(*out.tensors);
  for (std::int32_t position = 0; position < mesh->size(); ++position) {
    Shape shape = layout.local_shape(position);
    StoredBuffer shard{mesh->rank_at(position), "shard", shape, layout.dtype()};
    layout.for_each_part(position, [&](const Box& box, const DimVector& local_lo) {
      StridedView view = view_of(box_at(local_lo, box.extents()), shape);
      shard.parts.push_back({tensor, box, view.offset, view.strides});
    });
    out.source->add(std::move(shard));
  }
  return out;
}

void run_layout(const LayoutOptions& options) {
  sim::ModelLayouts model = options.file.empty() ? model_of(options) : model_in(options);
  std::optional<Rank> rank;
  if (options.rank >= 0) rank = Rank{static_cast<std::int32_t>(options.rank)};
  std::vector<sim::WhereQuery> queries{{std::nullopt, {}, rank}};
  if (!options.what.empty())
    queries = sim::parse_place(options.what, *model.source, *model.destination, rank, "WHAT");
  print_rows(model, queries, options.output, options.file.empty() ? "-" : "from");
}

void add_rank_option(CLI::App& command, LayoutOptions& options) {
  OptionGroup(command, "Selection")
      .add_count("--rank", "RANK", options.rank, std::int64_t{0}, kMaxRanks - 1,
                 "only what this rank has");
}

}  // namespace

void add_layout_command(CLI::App& app) {
  auto options = std::make_shared<LayoutOptions>();
  CLI::App& command =
      add_command(app, "layout", "print which rows each rank holds, and where",
                  "Example:\n  reshard layout --mesh 2x2 --shape 8,6 --placements 'S(0)S(0)'\n"
                  "  reshard layout traces/checks/qkv.copies --rank 2",
                  [options] { run_layout(*options); });
  add_optional_argument(command, "FILE", options->file,
                        "layouts of a model (docs/check.md); '-': standard input");
  OptionGroup tensor(command, "Tensor");
  tensor.add("--mesh", "MESH", options->mesh, "in place of a file: mesh, such as 4x4 or dp=2,tp=8");
  tensor.add("--ranks", "RANKS", options->ranks, "ranks of the mesh (default 0, 1, ..)");
  tensor.add("--shape", "SHAPE", options->shape, "the tensor's shape, such as 8192,4096");
  tensor.add("--placements", "PLACEMENTS", options->placements,
             "placements, one per mesh axis, or boxes of ranks");
  add_rank_option(command, *options);
  add_report_options(command, options->output);
}

void add_where_command(CLI::App& app) {
  auto options = std::make_shared<LayoutOptions>();
  CLI::App& command =
      add_command(app, "where", "print which ranks have elements of a tensor, and where",
                  "Example:\n  reshard where 'k_proj[2,:]' traces/checks/qkv.copies",
                  [options] { run_layout(*options); });
  add_argument(command, "WHAT", options->what,
               "a tensor or a buffer, or elements of it: 'k_proj[2:4,:]'");
  add_argument(command, "FILE", options->file,
               "layouts of a model (docs/check.md); '-': standard input");
  add_rank_option(command, *options);
  add_report_options(command, options->output);
}

}  // namespace reshard::tools
