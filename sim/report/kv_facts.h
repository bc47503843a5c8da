// SPDX-License-Identifier: BSD-3-Clause
// What a report says of a KV cache that its plan moves, before everything else.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reshard::sim {

struct KvFacts {
  struct Side {
    std::string parallel;       // "tp=4 pp=2"
    std::string ranks;          // that have the cache: "0-7"
    std::int64_t copies;        // ranks that have an element
    std::string form;           // "kv,blocks,tokens,heads,dim"
    std::int64_t block_tokens;  // on a rank
    std::int64_t blocks, pool;  // of the request, of a rank
  };
  std::string cache;  // "llama: 80 layers, 8 KV heads of 128 channels, bf16"
  std::int64_t tokens = 0, token_bytes = 0, bytes = 0;
  Side from, to;
  std::vector<std::string> assumed;
};

// Lines "name   value" of tables and pages.
std::vector<std::pair<std::string, std::string>> kv_lines(const KvFacts& kv);

}  // namespace reshard::sim
