// SPDX-License-Identifier: BSD-3-Clause
// Transfers of small caches, drawn, and what each rank should have of them by a slow definition:
// token by token, head by head, into arrays that are filled one element at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/models/kv/kv_transfer.h"
#include "tests/support/prng.h"

namespace reshard::test {

// A side as its text says it, and the same as numbers.
struct KvCaseSide {
  std::int64_t dp = 1, pp = 1, cp = 1, tp = 1, dcp = 1, interleave = 0, dp_rank = 0, block = 1;
  std::vector<std::int64_t> stages;  // layers of each
  std::vector<std::int64_t> ranks;
  std::vector<std::int64_t> table;
  std::int64_t pool = 0;
  std::vector<std::string> dims;
  sim::KvSpec::Side spec() const;
};

struct KvCase {
  std::int64_t layers = 1, heads = 1, key_dim = 1, value_dim = 1, tokens = 1;
  bool latent = false;
  KvCaseSide from, to;
  sim::KvSpec spec() const;
};
KvCase draw_kv_case(Prng& prng);

// By rank and buffer, the number of every element as tests/support/drawn_models.h has them: tensors
// one after another, row-major; -1: padding.
using KvNumbers = std::map<std::pair<std::int64_t, std::string>, std::vector<std::int64_t>>;
KvNumbers slow_numbers(const KvCase& of, const KvCaseSide& side);

}  // namespace reshard::test
