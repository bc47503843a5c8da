// SPDX-License-Identifier: BSD-3-Clause
// How an engine spreads a cache over its ranks.
//
// Ranks are counted as vLLM does: dp outermost, then pp, cp, tp, which is fastest.
// - tp cuts the KV heads evenly; where there are more ranks than heads, neighbouring ranks have the
//   same head. Latent vectors are whole on every rank.
// - pp cuts the layers into stages.
// - cp deals the tokens to its ranks in turn, `interleave` at a time; so does dcp to neighbouring
//   ranks of tp, which would otherwise have the same heads (vLLM's decode context parallel). Of
//   both, dcp is the faster.
// - dp are independent engines, of which one has the cache.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/kv/kv_model.h"

namespace reshard::sim {

struct KvParallel {
  std::int64_t dp = 1, pp = 1, cp = 1, tp = 1, dcp = 1;
  std::int64_t interleave = 0;  // 0: not given
  std::string layers = {};      // the rule of stages, or their layers: "30,31"; empty: not given

  std::int64_t ranks() const { return dp * pp * cp * tp; }
  // In how many groups the tokens are dealt.
  std::int64_t token_groups() const { return cp * dcp; }
};

// "tp=4 pp=2 layers=vllm", each at most once: sizes, interleave, layers. Throws InputError naming
// `field`, also where heads or layers cannot be spread so.
KvParallel parse_kv_parallel(std::string_view text, std::string_view field, const KvModel& model);
// As parse_kv_parallel reads it, without what is 1.
std::string text(const KvParallel& parallel);

// The first layer of each stage, and the number of all layers after them.
std::vector<std::int64_t> stage_starts(const KvParallel& parallel, std::int64_t layers,
                                       std::string_view field);

// What a rank of a stage has: heads lo to hi-1, and of the tokens those of a group.
struct KvShare {
  std::int64_t head_lo, head_hi, token_group;
  friend bool operator==(const KvShare&, const KvShare&) = default;
};
KvShare share_of(const KvParallel& parallel, std::int64_t heads, std::int64_t cp_rank,
                 std::int64_t tp_rank);
// The ranks that have an element.
std::int64_t copies_of(const KvParallel& parallel, std::int64_t heads);

}  // namespace reshard::sim
