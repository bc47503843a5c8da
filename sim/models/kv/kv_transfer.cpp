// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/kv/kv_transfer.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/printable.h"
#include "core/layout/mesh.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 32, kMostBlock = std::int64_t{1} << 20;

// The options of a side as messages call them.
struct Names {
  const char *parallel, *ranks, *dp_rank, *form, *block, *table;
};
constexpr Names kFrom{"--from", "--ranks", "--dp-rank", "--form", "--block", "--from-blocks"};
constexpr Names kTo{"--to", "--to-ranks", "--to-dp-rank", "--to-form", "--to-block", "--to-blocks"};

void check_range(const char* field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high)
    throw InputError(
        fmt::format("{}: expected an integer from {} to {}, found {}", field, low, high, value));
}

// `first` is the first rank if none are given.
std::vector<Rank> ranks_of(const KvSpec::Side& spec, const Names& names, std::int64_t count,
                           std::int64_t first) {
  std::vector<Rank> out;
  if (!spec.ranks.empty()) {
    out = parse_ranks(spec.ranks, names.ranks);
    if (out.size() != static_cast<std::size_t>(count))
      throw InputError(fmt::format("{}: expected {} ranks, as {} has, found {}", names.ranks, count,
                                   names.parallel, out.size()));
    std::vector<Rank> sorted = out;
    std::sort(sorted.begin(), sorted.end());
    auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end())
      throw InputError(fmt::format("{}: expected each rank once, found rank {} twice", names.ranks,
                                   to_int(*twice)));
    return out;
  }
  if (first + count > kMaxRanks)
    throw InputError(fmt::format("{}: expected ranks below {}, found {} to {}", names.ranks,
                                 kMaxRanks, first, first + count - 1));
  for (std::int64_t rank = first; rank < first + count; ++rank)
    out.push_back(Rank{static_cast<std::int32_t>(rank)});
  return out;
}

KvDealing dealing_of(const KvParallel& parallel, std::int64_t block, std::int64_t tokens,
                     const Names& names) {
  KvDealing out{block, parallel.token_groups(), parallel.interleave};
  if (out.groups > 1 && block % out.interleave != 0)
    throw InputError(
        fmt::format("{}: interleave: expected a divisor of the {} tokens of a block, "
                    "found {}",
                    names.parallel, block, out.interleave));
  if (std::max(out.blocks_for(tokens), out.most_pieces(tokens)) > kMostKvBlocks)
    throw InputError(
        fmt::format("{}: expected at most {} blocks, or pieces of blocks that are dealt, "
                    "of {} tokens, found more",
                    names.block, kMostKvBlocks, tokens));
  return out;
}

KvSide side_of(const KvSpec& spec, const KvSpec::Side& side, const Names& names,
               const KvModel& model, const std::string& form, std::int64_t block,
               std::int64_t first_rank) {
  check_range(names.block, block, 1, kMostBlock);
  KvSide out;
  out.parallel = parse_kv_parallel(side.parallel, names.parallel, model);
  check_range(names.dp_rank, side.dp_rank, 0, out.parallel.dp - 1);
  out.dp_rank = side.dp_rank;
  out.ranks = ranks_of(side, names, out.parallel.ranks(), first_rank);
  out.form = parse_kv_form(form, names.form, model);
  out.dealing = dealing_of(out.parallel, block, spec.tokens, names);
  std::int64_t blocks = out.dealing.blocks_for(spec.tokens);
  out.has_table = !side.table_file.empty();
  out.table =
      out.has_table ? read_kv_table(side.table, side.table_file, blocks) : first_blocks(blocks);
  return out;
}

std::string_view dim_text(KvDim dim) {
  constexpr std::string_view kTexts[] = {"layers", "kv", "blocks", "heads", "tokens", "dim"};
  return kTexts[static_cast<std::size_t>(dim)];
}

KvFacts::Side side_facts(const KvSide& side, std::int64_t heads) {
  std::string form;
  for (KvDim dim : side.form.dims)
    form += fmt::format("{}{}", form.empty() ? "" : ",", dim_text(dim));
  std::int64_t own = side.parallel.ranks() / side.parallel.dp;
  auto first = side.ranks.begin() + side.dp_rank * own;
  return {text(side.parallel),
          ranks_text({first, first + own}),
          copies_of(side.parallel, heads),
          std::move(form),
          side.dealing.block,
          static_cast<std::int64_t>(side.table.blocks.size()),
          side.table.pool};
}

std::string cache_text(const KvTransfer& transfer) {
  const KvModel& model = transfer.model;
  std::string out = model.type.empty() ? "" : printable(model.type, 40) + ": ";
  out += fmt::format("{} layer{}, ", model.layers, model.layers == 1 ? "" : "s");
  if (model.is_latent())
    out += fmt::format("a latent vector of {} channels", model.key_dim);
  else if (model.key_dim == model.value_dim)
    out += fmt::format("{} KV head{} of {} channels", model.heads, model.heads == 1 ? "" : "s",
                       model.key_dim);
  else
    out += fmt::format("{} KV head{} of {} and {} channels", model.heads,
                       model.heads == 1 ? "" : "s", model.key_dim, model.value_dim);
  return fmt::format("{}, {}", out, text(transfer.dtype));
}

void note_side(const KvSide& side, const char* name, KvFacts& facts) {
  if (!side.has_table)
    facts.assumed.push_back(
        fmt::format("{}: the request has the first blocks of the pool, in order", name));
  if (side.parallel.dp > 1)
    facts.assumed.push_back(fmt::format("{}: dp rank {} has the request", name, side.dp_rank));
}

}  // namespace

Rank KvSide::rank_at(std::int64_t stage, std::int64_t cp_rank, std::int64_t tp_rank) const {
  std::int64_t at =
      ((dp_rank * parallel.pp + stage) * parallel.cp + cp_rank) * parallel.tp + tp_rank;
  return ranks[static_cast<std::size_t>(at)];
}

std::int64_t KvTransfer::token_bytes() const {
  return model.layers * model.channels() * size_bytes(dtype);
}

KvTransfer read_kv_transfer(const KvSpec& spec) {
  check_range("--tokens", spec.tokens, 1, kMostTokens);
  KvTransfer out;
  out.model = read_kv_model(spec.config, spec.config_file, spec.tokens);
  out.tokens = spec.tokens;
  if (spec.dtype.empty() && !out.model.dtype)
    throw InputError(
        fmt::format("--dtype: expected the cache's dtype such as bf16, as {} does not "
                    "state it, found none",
                    spec.config_file));
  out.dtype = spec.dtype.empty() ? *out.model.dtype : parse_dtype(spec.dtype, "--dtype");
  if (spec.dtype.empty()) out.model.assumed.push_back("the cache has the dtype of the config");
  if (Int128{out.model.layers} * out.model.channels() * size_bytes(out.dtype) * out.tokens >
      kMaxBytes)
    throw InputError("--tokens: expected a cache of at most 2^62 bytes, found more");
  const std::string form = spec.from.form.empty() ? "vllm" : spec.from.form;
  out.from = side_of(spec, spec.from, kFrom, out.model, form, spec.from.block, 0);
  std::int64_t next = to_int(*std::max_element(out.from.ranks.begin(), out.from.ranks.end())) + 1;
  out.to = side_of(spec, spec.to, kTo, out.model, spec.to.form.empty() ? form : spec.to.form,
                   spec.to.block > 0 ? spec.to.block : spec.from.block, next);
  return out;
}

KvFacts kv_facts(const KvTransfer& transfer) {
  KvFacts out{cache_text(transfer),
              transfer.tokens,
              transfer.token_bytes(),
              transfer.tokens * transfer.token_bytes(),
              side_facts(transfer.from, transfer.model.heads),
              side_facts(transfer.to, transfer.model.heads),
              transfer.model.assumed};
  note_side(transfer.from, "from", out);
  note_side(transfer.to, "to", out);
  return out;
}

}  // namespace reshard::sim
