// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/kv/kv_blocks.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/limits.h"
#include "sim/inputs/json_reader.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kMostPool = std::int64_t{1} << 40;
constexpr JsonLimits kLimits{kMaxJsonNesting, kMostKvBlocks + 64, 64};

void check_distinct(const KvTable& table, const std::string& file) {
  std::vector<std::int64_t> sorted = table.blocks;
  std::sort(sorted.begin(), sorted.end());
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    throw InputError(
        fmt::format("{}: blocks: expected each block once, found {} twice", file, *twice));
}

}  // namespace

KvTable first_blocks(std::int64_t count) {
  KvTable out{std::vector<std::int64_t>(static_cast<std::size_t>(count)), count};
  std::iota(out.blocks.begin(), out.blocks.end(), std::int64_t{0});
  return out;
}

KvTable read_kv_table(const std::string& text, const std::string& file, std::int64_t count) {
  auto root = read_json<TraceJson>(text, file, kLimits);
  KvTable out;
  TraceJson list = root;
  if (root.is_object()) {
    TraceFields fields(root, file);
    list = fields.required("blocks", "a list of blocks such as [3, 7, 1]");
    out.pool = fields.integer("pool", 1, kMostPool, 0);
    fields.refuse_others("a table of blocks");
  }
  if (!list.is_array())
    throw InputError(fmt::format(
        "{}: blocks: expected a list of blocks such as [3, 7, 1], found {}", file, shown(list)));
  if (list.size() != static_cast<std::size_t>(count))
    throw InputError(fmt::format("{}: blocks: expected {}, as many as the tokens need, found {}",
                                 file, count, list.size()));
  std::int64_t most = (out.pool > 0 ? out.pool : kMostPool) - 1;
  for (const TraceJson& entry : list) {
    auto block = integer_in(entry, 0, most);
    if (!block)
      throw InputError(fmt::format("{}: blocks: expected integers from 0 to {}, found {}", file,
                                   most, shown(entry)));
    out.blocks.push_back(*block);
  }
  check_distinct(out, file);
  if (out.pool == 0) out.pool = *std::max_element(out.blocks.begin(), out.blocks.end()) + 1;
  return out;
}

std::int64_t KvDealing::blocks_for(std::int64_t tokens) const {
  return ceil_div(tokens, block * groups);
}

std::int64_t KvDealing::most_pieces(std::int64_t tokens) const {
  std::int64_t each = groups == 1 ? block : interleave;
  return ceil_div(tokens, each * groups);
}

std::vector<KvPiece> pieces_of(const KvTable& table, const KvDealing& dealing, std::int64_t tokens,
                               std::int64_t group) {
  std::int64_t each = dealing.groups == 1 ? dealing.block : dealing.interleave;
  std::vector<KvPiece> out;
  for (std::size_t entry = 0; entry < table.blocks.size(); ++entry) {
    std::int64_t first = static_cast<std::int64_t>(entry) * dealing.block * dealing.groups;
    for (std::int64_t at = 0; at < dealing.block; at += each) {
      std::int64_t lo = first + at * dealing.groups + group * each;
      if (lo >= tokens) break;
      out.push_back({lo, std::min(lo + each, tokens), table.blocks[entry], at});
    }
  }
  return out;
}

}  // namespace reshard::sim
