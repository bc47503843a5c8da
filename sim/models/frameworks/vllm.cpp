// SPDX-License-Identifier: BSD-3-Clause
// vLLM: each engine has ranks dp, pp, tp, with tp fastest (distributed/parallel_state.py). With
// expert parallelism the dp x tp ranks of a stage divide the experts among themselves; without it
// they cut each expert (layers/fused_moe/config.py).
#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/models/frameworks/serving.h"
#include "sim/models/layer_stages.h"

namespace reshard::sim {
namespace {

struct VllmSizes {
  std::int64_t replicas, dp, pp, tp;
};

VllmSizes vllm_sizes(Parallelism& options) {
  VllmSizes out{options.number("replicas", 1), options.number("dp", 1), options.number("pp", 1),
                options.number("tp", 1)};
  std::int64_t all = out.replicas;
  for (std::int64_t n : {out.dp, out.pp, out.tp})
    if ((all *= n) > std::int64_t{1} << 20)
      throw InputError(fmt::format("{}: expected at most 2^20 ranks", options.field()));
  return out;
}

}  // namespace

std::int64_t vllm_ranks(const Model&, Parallelism& options) {
  VllmSizes sizes = vllm_sizes(options);
  return sizes.replicas * sizes.dp * sizes.pp * sizes.tp;
}

void write_vllm(const Side& side) {
  Parallelism& options = side.options;
  const VllmSizes sizes = vllm_sizes(options);
  const std::int64_t n = sizes.dp * sizes.tp;
  const bool has_ep = options.flag("ep");
  const bool in_turn = options.choice("experts", {"linear", "round-robin"}) == "round-robin";
  if (has_ep && side.model.experts == 0) options.fail("ep", "a model with experts");
  if (in_turn && !has_ep) options.fail("experts", "ep next to it");
  if (in_turn && side.model.expert_groups < 2)
    options.fail("experts", "linear for a model whose n_group is not above 1, as vLLM has it then");
  Serving serving{.attention_tp = sizes.tp,
                  .dense_tp = sizes.tp,
                  .ep = has_ep ? n : 1,
                  .expert_tp = has_ep ? 1 : n};
  if (!has_ep && options.has("redundant")) options.fail("redundant", "ep next to it");
  // models/deepseek_v2.py
  if (side.model.has(Role::KeyValueUp) && side.model.has(Role::SharedGate) && has_ep &&
      sizes.tp > 1 && sizes.dp > 1) {
    serving.shared_is_whole = true;
    side.notes.push_back(
        "an all-to-all backend is assumed that splits tokens over tp (use_sequence_parallel_moe): "
        "shared experts are whole on every rank then");
  }
  if (side.model.family == "gpt_oss")
    serving.renames = {{".self_attn.", ".attn."}, {"model.embed_tokens.", "model.embedding."}};
  serving.expert_map = expert_map_of(side, serving.ep, in_turn, false);
  const std::int64_t rows = side.model.embedding.weights.front().shape[0];
  require_divides(side, "tp", sizes.tp, (rows + 63) / 64 * 64, "padded rows of the vocabulary");
  const int pp = static_cast<int>(sizes.pp);
  int next = 0;
  std::vector<int> counts = layer_counts(side, pp, vllm_stages);
  for (int stage = 0; stage < pp; ++stage) {
    ServingStage out{.has_embedding = stage == 0, .has_head = stage + 1 == pp};
    for (int i = 0; i < counts[static_cast<std::size_t>(stage)]; ++i) out.layers.push_back(next++);
    std::vector<Rank> ranks;
    for (std::int64_t replica = 0; replica < sizes.replicas; ++replica)
      for (std::int64_t dp = 0; dp < sizes.dp; ++dp)
        for (std::int64_t tp = 0; tp < sizes.tp; ++tp)
          ranks.push_back(side.ranks[static_cast<std::size_t>(
              ((replica * sizes.dp + dp) * sizes.pp + stage) * sizes.tp + tp)]);
    out.attention = out.dense =
        mesh_lines({{"dp", sizes.replicas * sizes.dp}, {"tp", sizes.tp}}, ranks);
    set_experts(out, sizes.replicas, serving, ranks);
    serving.stages.push_back(std::move(out));
  }
  write_serving(side, serving);
}

}  // namespace reshard::sim
