// SPDX-License-Identifier: BSD-3-Clause
// The KV cache of one request, from the ranks that made it (prefill) to those that go on (decode):
// a redistribution like that of weights, of one tensor of keys and one of values for each layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "sim/models/kv/kv_blocks.h"
#include "sim/models/kv/kv_form.h"
#include "sim/models/kv/kv_model.h"
#include "sim/models/kv/kv_parallel.h"
#include "sim/report/run_report.h"

namespace reshard::sim {

struct KvSide {
  KvParallel parallel;
  std::vector<Rank> ranks;  // by dp, pp, cp, tp
  std::int64_t dp_rank = 0;
  KvForm form;
  KvTable table;
  bool has_table = false;  // that was given
  KvDealing dealing{1};    // of tokens to groups of ranks

  Rank rank_at(std::int64_t stage, std::int64_t cp_rank, std::int64_t tp_rank) const;
};

struct KvTransfer {
  KvModel model;
  DType dtype;
  std::int64_t tokens;
  KvSide from, to;
  // Of all that the cache has once.
  std::int64_t token_bytes() const;
};

// What describes a transfer, as the user writes it; fields of messages are the options of
// `reshard kv`.
struct KvSpec {
  std::string config_file, config;  // its name and its text
  std::string dtype;                // empty: the config's
  std::int64_t tokens = 0;
  struct Side {
    std::string parallel, ranks = {}, form = {};  // form: empty for "vllm"
    std::int64_t block = 0, dp_rank = 0;
    std::string table_file = {}, table = {};  // no file: the first blocks
  };
  Side from, to;  // `to` without ranks: those after the ranks of `from`; without block, form: its
};
// Throws InputError for what cannot be so, and what is not known.
KvTransfer read_kv_transfer(const KvSpec& spec);

// A file of layouts (docs/check.md) of both sides: tensors layers.N.k and layers.N.v of shape
// [tokens, KV heads, channels], or layers.N.latent of [tokens, channels], and parts in the blocks
// of the ranks' buffers. Throws InputError for more parts than such files can have.
std::string kv_layouts(const KvTransfer& transfer);

KvFacts kv_facts(const KvTransfer& transfer);

}  // namespace reshard::sim
