// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/models/kv/kv_case.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reshard::test {
namespace {

std::vector<std::int64_t> divisors(std::int64_t of) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= of; ++d)
    if (of % d == 0) out.push_back(d);
  return out;
}

void draw_stages(Prng& prng, std::int64_t layers, KvCaseSide& side) {
  side.pp = prng.between(1, std::min<std::int64_t>(layers, 3));
  side.stages.assign(static_cast<std::size_t>(side.pp), 1);
  for (std::int64_t more = layers - side.pp; more > 0; --more)
    ++side.stages[static_cast<std::size_t>(prng.below(side.pp))];
}

void draw_ranks(Prng& prng, KvCaseSide& side) {
  side.dp = prng.one_in(4) ? 2 : 1;
  side.dp_rank = prng.below(side.dp);
  std::vector<std::int64_t> ranks(300);
  std::iota(ranks.begin(), ranks.end(), std::int64_t{0});
  if (prng.one_in(2)) prng.shuffle(ranks);
  side.ranks.assign(ranks.begin(), ranks.begin() + side.dp * side.pp * side.cp * side.tp);
}

KvCaseSide draw_side(Prng& prng, const KvCase& of) {
  KvCaseSide side;
  draw_stages(prng, of.layers, side);
  std::int64_t heads = of.latent ? 1 : of.heads, same = 1;
  if (prng.one_in(2)) {
    side.tp = prng.pick(divisors(heads));
  } else {
    same = prng.between(1, 4);
    side.tp = heads * same;
  }
  if (prng.one_in(3)) side.dcp = prng.pick(divisors(same));
  if (prng.one_in(5)) side.cp = 2;
  side.block = prng.between(1, 8);
  if (side.cp * side.dcp > 1) side.interleave = prng.pick(divisors(side.block));
  draw_ranks(prng, side);
  std::int64_t per_entry = side.block * side.cp * side.dcp;
  std::int64_t entries = (of.tokens + per_entry - 1) / per_entry;
  side.pool = entries + prng.below(4);
  side.table.resize(static_cast<std::size_t>(side.pool));
  std::iota(side.table.begin(), side.table.end(), std::int64_t{0});
  if (prng.one_in(2)) prng.shuffle(side.table);
  side.table.resize(static_cast<std::size_t>(entries));
  side.dims = {"blocks", "tokens", "dim"};
  if (!of.latent) side.dims.push_back("heads");
  if (!of.latent && of.key_dim == of.value_dim && prng.one_in(2)) side.dims.push_back("kv");
  if (prng.one_in(3)) side.dims.push_back("layers");
  // The usual orders, or any.
  const std::vector<std::string> kUsual{"layers", "kv", "blocks", "tokens", "heads", "dim"};
  std::sort(side.dims.begin(), side.dims.end(), [&](const std::string& a, const std::string& b) {
    return std::find(kUsual.begin(), kUsual.end(), a) < std::find(kUsual.begin(), kUsual.end(), b);
  });
  if (prng.one_in(2)) prng.shuffle(side.dims);
  return side;
}

// The index in a row-major array of these dims.
std::int64_t index_in(const std::vector<std::string>& dims,
                      const std::map<std::string, std::int64_t>& extents,
                      const std::map<std::string, std::int64_t>& at) {
  std::int64_t out = 0;
  for (const std::string& dim : dims) out = out * extents.at(dim) + at.at(dim);
  return out;
}

// What one rank has.
struct SlowRank {
  const KvCase& of;
  const KvCaseSide& side;
  std::int64_t rank, first_layer, last_layer, group;
  std::vector<std::int64_t> heads;
  KvNumbers& out;

  bool has_dim(const char* dim) const {
    return std::find(side.dims.begin(), side.dims.end(), dim) != side.dims.end();
  }

  // Deals the tokens one by one.
  void fill() {
    std::int64_t kept = 0;
    for (std::int64_t token = 0; token < of.tokens; ++token) {
      std::int64_t turn = side.interleave == 0 ? 0 : token / side.interleave;
      if (turn % (side.cp * side.dcp) != group) continue;
      std::int64_t block = side.table[static_cast<std::size_t>(kept / side.block)];
      fill_token(token, block, kept % side.block);
      ++kept;
    }
  }

  void fill_token(std::int64_t token, std::int64_t block, std::int64_t place) {
    for (std::int64_t layer = first_layer; layer < last_layer; ++layer)
      for (std::int64_t kind = 0; kind < (of.latent ? 1 : 2); ++kind)
        for (std::size_t head = 0; head < heads.size(); ++head)
          for (std::int64_t c = 0; c < (kind == 0 ? of.key_dim : of.value_dim); ++c)
            fill_element(layer, kind, token, static_cast<std::int64_t>(head), c, block, place);
  }

  void fill_element(std::int64_t layer, std::int64_t kind, std::int64_t token, std::int64_t head,
                    std::int64_t c, std::int64_t block, std::int64_t place) {
    std::int64_t dim = kind == 0 ? of.key_dim : of.value_dim;
    std::map<std::string, std::int64_t> extents{{"layers", last_layer - first_layer},
                                                {"kv", 2},
                                                {"blocks", side.pool},
                                                {"tokens", side.block},
                                                {"heads", static_cast<std::int64_t>(heads.size())},
                                                {"dim", dim}};
    std::map<std::string, std::int64_t> at{{"layers", layer - first_layer},
                                           {"kv", kind},
                                           {"blocks", block},
                                           {"tokens", place},
                                           {"heads", head},
                                           {"dim", c}};
    std::string name = has_dim("kv") ? "kv" : of.latent ? "latent" : kind == 0 ? "k" : "v";
    if (!has_dim("layers")) name = fmt::format("layers.{}.{}", layer, name);
    std::int64_t size = 1;
    for (const std::string& each : side.dims) size *= extents.at(each);
    auto& numbers = out[{rank, name}];
    numbers.resize(static_cast<std::size_t>(size), -1);
    numbers[static_cast<std::size_t>(index_in(side.dims, extents, at))] =
        number(layer, kind, token, heads[static_cast<std::size_t>(head)], c);
  }

  std::int64_t number(std::int64_t layer, std::int64_t kind, std::int64_t token, std::int64_t head,
                      std::int64_t c) const {
    std::int64_t all = of.latent ? 1 : of.heads, keys = of.tokens * all * of.key_dim,
                 values = of.latent ? 0 : of.tokens * all * of.value_dim;
    return layer * (keys + values) + kind * keys +
           (token * all + head) * (kind == 0 ? of.key_dim : of.value_dim) + c;
  }
};

}  // namespace

sim::KvSpec::Side KvCaseSide::spec() const {
  sim::KvSpec::Side out;
  out.parallel = fmt::format("tp={} pp={} dp={} cp={} dcp={} layers={}", tp, pp, dp, cp, dcp,
                             fmt::join(stages, ","));
  if (interleave > 0) out.parallel += fmt::format(" interleave={}", interleave);
  out.ranks = fmt::format("{}", fmt::join(ranks, ","));
  out.form = fmt::format("{}", fmt::join(dims, ","));
  out.block = block;
  out.dp_rank = dp_rank;
  out.table_file = "table.json";
  out.table = fmt::format(R"({{"blocks": [{}], "pool": {}}})", fmt::join(table, ", "), pool);
  return out;
}

sim::KvSpec KvCase::spec() const {
  std::string fields =
      fmt::format(R"("num_hidden_layers": {}, "num_attention_heads": {}, "torch_dtype": "float16")",
                  layers, heads * 3);
  fields += latent ? fmt::format(R"(, "kv_lora_rank": {}, "qk_rope_head_dim": 1)", key_dim - 1)
                   : fmt::format(R"(, "num_key_value_heads": {}, "head_dim": {}, "v_head_dim": {})",
                                 heads, key_dim, value_dim);
  sim::KvSpec out;
  out.config_file = "config.json";
  out.config = "{" + fields + "}";
  out.tokens = tokens;
  out.from = from.spec();
  out.to = to.spec();
  return out;
}

KvCase draw_kv_case(Prng& prng) {
  KvCase out;
  out.layers = prng.between(1, 4);
  out.latent = prng.one_in(4);
  out.heads = prng.pick<std::int64_t>({1, 2, 3, 4, 6});
  out.key_dim = prng.between(out.latent ? 2 : 1, 3);
  out.value_dim = prng.one_in(4) ? prng.between(1, 3) : out.key_dim;
  out.tokens = prng.between(1, 40);
  out.from = draw_side(prng, out);
  out.to = draw_side(prng, out);
  return out;
}

KvNumbers slow_numbers(const KvCase& of, const KvCaseSide& side) {
  KvNumbers out;
  std::size_t position = 0;
  for (std::int64_t dp = 0; dp < side.dp; ++dp)
    for (std::int64_t stage = 0, first = 0; stage < side.pp; ++stage) {
      std::int64_t last = first + side.stages[static_cast<std::size_t>(stage)];
      for (std::int64_t cp = 0; cp < side.cp; ++cp)
        for (std::int64_t tp = 0; tp < side.tp; ++tp) {
          SlowRank rank{of,    side, side.ranks[position++],
                        first, last, cp * side.dcp + tp % side.dcp,
                        {},    out};
          // Each head in as many copies as there are ranks too many, then an equal share.
          std::int64_t all = of.latent ? 1 : of.heads;
          std::vector<std::int64_t> repeated;
          for (std::int64_t head = 0; head < all; ++head)
            for (std::int64_t copy = 0; copy < std::max<std::int64_t>(1, side.tp / all); ++copy)
              repeated.push_back(head);
          std::int64_t own = static_cast<std::int64_t>(repeated.size()) / side.tp;
          for (std::int64_t i = tp * own; i < (tp + 1) * own; ++i)
            rank.heads.push_back(repeated[static_cast<std::size_t>(i)]);
          if (dp == side.dp_rank) rank.fill();
        }
      first = last;
    }
  return out;
}

}  // namespace reshard::test
