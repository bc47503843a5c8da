// SPDX-License-Identifier: BSD-3-Clause
// Hugging Face's tensor parallelism (transformers, distributed/tensor_parallel.py), and the whole
// model on every rank, with the names of its files.
#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/frameworks/parameters.h"

namespace reshard::sim {

std::int64_t hugging_face_ranks(const Model&, Parallelism& options) {
  if (options.has("tp") && options.has("ep"))
    options.fail("ep", "either tp or ep (base_model_tp_plan, base_model_ep_plan)");
  return options.number("replicas", 1, 1 << 10) * options.number("tp", 1, 1 << 10) *
         options.number("ep", 1, 1 << 10);
}

void write_hugging_face(const Side& side) {
  const std::int64_t replicas = side.options.number("replicas", 1),
                     n = side.options.number("tp", 1) * side.options.number("ep", 1);
  const bool is_ep = side.options.has("ep");
  MeshLines mesh = mesh_lines({{"replica", replicas}, {is_ep ? "ep" : "tp", n}}, side.ranks);
  side.notes.push_back("the embedding is whole, as base_model_tp_plan does not name it");
  for (const ModelParameter& of : parameters_of(side.model, ExpertForm::InMemory)) {
    std::string placements;
    const int last = of.weight->shape.size() - 1;
    // Cut by torch.chunk, so the last ranks can have less.
    if (of.is_expert && is_ep)
      placements = "RS(0)";
    else if (!is_ep && of.weight->role != Role::Embedding && of.cut == CutBy::Rows)
      placements = of.is_expert ? "RS(1)" : "RS(0)";
    else if (!is_ep && of.cut == CutBy::Columns)
      placements = fmt::format("RS({})", last);
    if (of.is_expert && is_ep) require_divides(side, "ep", n, side.model.experts, "experts");
    side.lines.buffer(of.name, mesh, of.blocks, *of.weight, placements, of.extras);
  }
}

std::int64_t whole_ranks(const Model&, Parallelism& options) { return options.number("ranks", 1); }

void write_whole(const Side& side) {
  MeshLines mesh = mesh_lines({{"replica", std::ssize(side.ranks)}}, side.ranks);
  for (const ModelParameter& of : parameters_of(side.model, ExpertForm::InFiles))
    side.lines.buffer(of.name, mesh, of.blocks, *of.weight, "", of.extras);
}

}  // namespace reshard::sim
