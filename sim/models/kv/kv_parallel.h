// SPDX-License-Identifier: BSD-3-Clause
// How an engine distributes a cache over its ranks.
//
// Ranks are counted as in vLLM: dp is outermost, then pp, cp and tp, which is fastest.
// - tp cuts the KV heads evenly; if there are more ranks than heads, neighbouring ranks have the
//   same head. Every rank has latent vectors whole.
// - pp cuts the layers into stages.
// - cp deals the tokens to its ranks in turn, `interleave` at a time; dcp does the same with
//   neighbouring ranks of tp, which would otherwise have the same heads (vLLM's decode context
//   parallel). dcp varies faster than cp.
// - dp is a number of independent engines, of which one has the cache.
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
  std::string layers =
      {};  // vLLM's or SGLang's rule of stages, or a list "30,31"; empty: not given

  std::int64_t ranks() const { return dp * pp * cp * tp; }
  // The number of groups that tokens are dealt to.
  std::int64_t token_groups() const { return cp * dcp; }
};

// Reads "tp=4 pp=2 layers=vllm", each word at most once: sizes, interleave, layers. Throws
// InputError naming `field`, also if the heads or layers cannot be distributed in this way.
KvParallel parse_kv_parallel(std::string_view text, std::string_view field, const KvModel& model);
// In the form that parse_kv_parallel reads, without sizes of 1.
std::string text(const KvParallel& parallel);

// The first layer of each stage, followed by the number of all layers.
std::vector<std::int64_t> stage_starts(const KvParallel& parallel, std::int64_t layers,
                                       std::string_view field);

// What a rank of a stage has: heads lo to hi-1, of the tokens of one group.
struct KvShare {
  std::int64_t head_lo, head_hi, token_group;
  friend bool operator==(const KvShare&, const KvShare&) = default;
};
KvShare share_of(const KvParallel& parallel, std::int64_t heads, std::int64_t cp_rank,
                 std::int64_t tp_rank);
// The number of ranks that have each element.
std::int64_t copies_of(const KvParallel& parallel, std::int64_t heads);

}  // namespace reshard::sim
