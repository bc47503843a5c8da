// SPDX-License-Identifier: BSD-3-Clause
// The transfer of the KV cache of one request from the ranks that computed it (prefill) to those
// that continue (decode). It is a redistribution like that of weights, with a tensor of keys and a
// tensor of values for each layer.
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
  std::vector<Rank> ranks;  // in the order dp, pp, cp, tp
  std::int64_t dp_rank = 0;
  KvForm form;
  KvTable table;
  bool has_table = false;  // whether the user gave it
  KvDealing dealing{1};    // how tokens are dealt to groups of ranks

  Rank rank_at(std::int64_t stage, std::int64_t cp_rank, std::int64_t tp_rank) const;
};

struct KvTransfer {
  KvModel model;
  DType dtype;
  std::int64_t tokens;
  KvSide from, to;
  // The bytes of a token, counting each element once.
  std::int64_t token_bytes() const;
};

// A transfer as the user describes it. Messages name the options of `reshard kv`.
struct KvSpec {
  std::string config_file, config;  // the file's name and its text
  std::string dtype;                // empty: that of the config
  std::int64_t tokens = 0;
  struct Side {
    std::string parallel, ranks = {}, form = {};  // an empty form is "vllm"
    std::int64_t block = 0, dp_rank = 0;
    std::string table_file = {}, table = {};  // no file: the first blocks
  };
  Side from, to;  // defaults for `to`: the ranks after those of `from`; its block and form
};
// Throws InputError for what is contradictory or unknown.
KvTransfer read_kv_transfer(const KvSpec& spec);

// A file of layouts (docs/check.md) of both sides: tensors layers.N.k and layers.N.v of shape
// [tokens, KV heads, channels], or layers.N.latent of [tokens, channels], with parts in the blocks
// of the ranks' buffers. Throws InputError if there are more parts than such files can have.
std::string kv_layouts(const KvTransfer& transfer);

KvFacts kv_facts(const KvTransfer& transfer);

}  // namespace reshard::sim
