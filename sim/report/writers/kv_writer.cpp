// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/report/run_report.h"

namespace reshard::sim {
namespace {

std::string side_text(const KvFacts::Side& side) {
  return fmt::format("{} on ranks {}: {} of {} in a pool of {}, stored as {}; {} of an element",
                     side.parallel, side.ranks, counted(side.blocks, "block"),
                     counted(side.block_tokens, "token"), side.pool, side.form,
                     side.copies == 1 ? "1 copy" : fmt::format("{} copies", side.copies));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> kv_lines(const KvFacts& kv) {
  std::vector<std::pair<std::string, std::string>> out{
      {"cache", kv.cache},
      {"tokens", fmt::format("{} of {} each, {} in total", kv.tokens, bytes_text(kv.token_bytes),
                             bytes_text(kv.bytes))},
      {"from", side_text(kv.from)},
      {"to", side_text(kv.to)}};
  for (const std::string& assumed : kv.assumed) out.emplace_back("assumed", assumed);
  return out;
}

}  // namespace reshard::sim
