// SPDX-License-Identifier: BSD-3-Clause
// SGLang: each stage has tp ranks. The data parallelism of attention and the groups of experts
// divide these ranks instead of multiplying them (srt/distributed/parallel_state.py). The tensor
// parallelism of experts varies fastest.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/models/frameworks/serving.h"
#include "sim/models/layer_stages.h"

namespace reshard::sim {
namespace {

struct SglangSizes {
  std::int64_t replicas, pp, tp, dp, ep, moe_dp;
};

SglangSizes sglang_sizes(Parallelism& options) {
  SglangSizes out{options.number("replicas", 1), options.number("pp", 1),
                  options.number("tp", 1),       options.number("dp", 1),
                  options.number("ep", 1),       options.number("moe-dp", 1)};
  std::int64_t all = out.replicas;
  for (std::int64_t n : {out.pp, out.tp})
    if ((all *= n) > std::int64_t{1} << 20)
      throw InputError(fmt::format("{}: expected at most 2^20 ranks", options.field()));
  if (out.tp % out.dp != 0) options.fail("dp", fmt::format("a number that divides tp {}", out.tp));
  if (out.ep > out.tp || out.tp % (out.ep * out.moe_dp) != 0)
    options.fail("ep", fmt::format("ep x moe-dp that divides tp {}", out.tp));
  return out;
}

// What SGLang decides by options that the words do not have.
void add_notes(const Side& side, const SglangSizes& sizes) {
  if (!side.model.has(Role::SharedGate)) return;
  const std::string& family = side.model.family;
  if ((family == "deepseek_v3" && side.model.experts == 256) ||
      (family == "glm4_moe" && sizes.ep == 1))
    side.notes.push_back(
        "--disable-shared-experts-fusion is assumed: without it SGLang keeps the shared expert of "
        "such a model as one more expert of w13 and w2");
  if (sizes.ep > 1)
    side.notes.push_back(
        "no all-to-all backend such as DeepEP is assumed: with one, shared experts are whole on "
        "every rank");
}

}  // namespace

std::int64_t sglang_ranks(const Model&, Parallelism& options) {
  SglangSizes sizes = sglang_sizes(options);
  return sizes.replicas * sizes.pp * sizes.tp;
}

void write_sglang(const Side& side) {
  Parallelism& options = side.options;
  const SglangSizes sizes = sglang_sizes(options);
  if (sizes.ep > 1 && side.model.experts == 0) options.fail("ep", "a model with experts");
  Serving serving{.attention_tp = sizes.tp / sizes.dp,
                  .dense_tp = sizes.tp,
                  .ep = sizes.ep,
                  .expert_tp = sizes.tp / sizes.ep / sizes.moe_dp};
  serving.expert_map = expert_map_of(side, serving.ep, false, true);
  add_notes(side, sizes);
  // By default the head is cut by all ranks of a stage, even where attention is data-parallel.
  serving.head_is_dense = !options.flag("dp-lm-head");
  if (options.has("dp-lm-head") && sizes.dp == 1) options.fail("dp-lm-head", "dp above 1");
  auto multiple = [&](std::int64_t n) {
    const std::int64_t rows = side.model.embedding.weights.front().shape[0];
    return (rows + 63) / 64 * 64 % n == 0 ? 64 : 64 * n;
  };
  serving.vocabulary_multiple = multiple(serving.attention_tp);
  serving.head_multiple = multiple(serving.head_is_dense ? sizes.tp : serving.attention_tp);
  serving.latents = "fused_qkv_a_proj_with_mqa";
  serving.expert_bias = "weight_bias";
  serving.tied_head = "lm_head.weight";
  // Its code takes the embedding for the head, which only the first stage has.
  constexpr std::array<std::string_view, 6> kOneStage = {"llama", "mistral", "phi3",
                                                         "gemma", "gemma2",  "gemma3_text"};
  if (side.model.is_tied && sizes.pp > 1 &&
      std::find(kOneStage.begin(), kOneStage.end(), side.model.family) != kOneStage.end())
    options.fail("pp", fmt::format("1 for {} with tied embeddings, whose last stage would have no "
                                   "head in SGLang",
                                   side.model.family));
  const int pp = static_cast<int>(sizes.pp);
  int next = 0;
  std::vector<int> counts = layer_counts(side, pp, sglang_stages);
  for (int stage = 0; stage < pp; ++stage) {
    ServingStage out{.has_embedding = stage == 0, .has_head = stage + 1 == pp};
    for (int i = 0; i < counts[static_cast<std::size_t>(stage)]; ++i) out.layers.push_back(next++);
    std::vector<Rank> ranks;
    for (std::int64_t replica = 0; replica < sizes.replicas; ++replica)
      for (std::int64_t tp = 0; tp < sizes.tp; ++tp)
        ranks.push_back(
            side.ranks[static_cast<std::size_t>((replica * sizes.pp + stage) * sizes.tp + tp)]);
    out.attention =
        mesh_lines({{"dp", sizes.replicas * sizes.dp}, {"tp", serving.attention_tp}}, ranks);
    out.dense = mesh_lines({{"replica", sizes.replicas}, {"tp", sizes.tp}}, ranks);
    set_experts(out, sizes.replicas * sizes.moe_dp, serving, ranks);
    serving.stages.push_back(std::move(out));
  }
  write_serving(side, serving);
}

}  // namespace reshard::sim
