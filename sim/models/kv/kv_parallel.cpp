// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/kv/kv_parallel.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/limits.h"
#include "sim/models/layer_stages.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kWhat =
    "sizes such as 'tp=4 pp=2', of tp, pp, dp, cp, dcp, and interleave=TOKENS, layers=RULE";
constexpr std::string_view kRules = "layers=vllm, sglang, trtllm or the layers of each stage";

// "30,31"
std::vector<std::int64_t> layer_list(std::string_view text, std::string_view field) {
  Cursor cursor(text, field);
  std::vector<std::int64_t> out;
  do out.push_back(cursor.integer("the layers of a stage", 1, 4096));
  while (cursor.accept(","));
  cursor.expect_end();
  return out;
}

std::string_view until_blank(std::string_view text) { return text.substr(0, text.find(' ')); }

void read_entry(Cursor& cursor, KvParallel& out, std::vector<std::string>& seen) {
  const std::pair<std::string_view, std::int64_t KvParallel::*> kSizes[] = {
      {"tp", &KvParallel::tp}, {"pp", &KvParallel::pp},   {"dp", &KvParallel::dp},
      {"cp", &KvParallel::cp}, {"dcp", &KvParallel::dcp}, {"interleave", &KvParallel::interleave}};
  std::string name(cursor.word());
  if (std::find(seen.begin(), seen.end(), name) != seen.end())
    throw InputError(
        fmt::format("{}: expected each size once, found {} twice", cursor.field(), name));
  seen.push_back(name);
  if (name == "layers") {
    cursor.expect("=");
    out.layers = std::string(until_blank(cursor.rest()));
    if (out.layers.empty()) cursor.fail(kRules.substr(kRules.find('=') + 1));
    cursor.expect(out.layers);
    return;
  }
  for (auto [known, member] : kSizes) {
    if (name != known) continue;
    cursor.expect("=");
    out.*member = cursor.integer(name, 1, kMaxRanks);
    return;
  }
  throw InputError(fmt::format("{}: expected {}, found {}", cursor.field(), kWhat,
                               reshard::quoted(name + std::string(cursor.rest()))));
}

void check_ranks(const KvParallel& parallel, std::string_view field) {
  std::int64_t ranks = 1;
  for (std::int64_t size : {parallel.dp, parallel.pp, parallel.cp, parallel.tp})
    if ((ranks *= size) > kMaxRanks)
      throw InputError(fmt::format("{}: expected at most {} ranks, found more", field, kMaxRanks));
}

void check_heads(const KvParallel& parallel, const KvModel& model, std::string_view field) {
  std::int64_t tp = parallel.tp, heads = model.heads, same = std::max<std::int64_t>(tp / heads, 1);
  if (heads % tp != 0 && tp % heads != 0)
    throw InputError(fmt::format(
        "{}: tp: expected a divisor or a multiple of the {} KV heads, found {}", field, heads, tp));
  if (same % parallel.dcp != 0)
    throw InputError(
        fmt::format("{}: dcp: expected a divisor of the {} ranks of tp that have the same "
                    "heads, found {}",
                    field, same, parallel.dcp));
}

void check_dealing(const KvParallel& parallel, std::string_view field) {
  bool dealt = parallel.token_groups() > 1;
  if (dealt && parallel.interleave == 0)
    throw InputError(
        fmt::format("{}: interleave: expected how many tokens in turn a rank of cp or "
                    "dcp gets (in vLLM 1 unless set), found none",
                    field));
  if (!dealt && parallel.interleave != 0)
    throw InputError(
        fmt::format("{}: interleave: expected it with cp or dcp, found it alone", field));
}

}  // namespace

KvParallel parse_kv_parallel(std::string_view text, std::string_view field, const KvModel& model) {
  KvParallel out;
  std::vector<std::string> seen;
  Cursor cursor(text, field);
  cursor.skip_spaces();
  if (cursor.at_end()) cursor.fail(kWhat);
  while (!cursor.at_end()) {
    read_entry(cursor, out, seen);
    if (!cursor.at_end() && cursor.peek() != ' ') cursor.fail("a blank between sizes");
    cursor.skip_spaces();
  }
  check_ranks(out, field);
  check_heads(out, model, field);
  check_dealing(out, field);
  stage_starts(out, model.layers, field);
  return out;
}

std::string text(const KvParallel& parallel) {
  std::string out = fmt::format("tp={}", parallel.tp);
  for (auto [name, size] : {std::pair{"dcp", parallel.dcp},
                            {"cp", parallel.cp},
                            {"pp", parallel.pp},
                            {"dp", parallel.dp}})
    if (size > 1) out += fmt::format(" {}={}", name, size);
  if (parallel.interleave > 0) out += fmt::format(" interleave={}", parallel.interleave);
  if (!parallel.layers.empty()) out += " layers=" + parallel.layers;
  return out;
}

std::vector<std::int64_t> stage_starts(const KvParallel& parallel, std::int64_t layers,
                                       std::string_view field) {
  std::int64_t stages = parallel.pp, more = layers % stages;
  const std::string& rule = parallel.layers;
  if (stages > layers)
    throw InputError(
        fmt::format("{}: pp: expected at most one stage for each of the {} layers, found {}", field,
                    layers, stages));
  if (more != 0 && rule.empty())
    throw InputError(fmt::format("{}: pp: expected a divisor of the {} layers, or {}, found {}",
                                 field, layers, kRules, stages));
  const int all = static_cast<int>(layers), n = static_cast<int>(stages);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), layers / stages);
  auto take = [&](const std::vector<int>& by_rule) {
    counts.assign(by_rule.begin(), by_rule.end());
  };
  if (rule == "vllm") {
    take(vllm_stages(all, n));
  } else if (rule == "sglang") {
    take(sglang_stages(all, n));
  } else if (rule == "trtllm") {
    take(tensorrt_llm_stages(all, n));
  } else if (!rule.empty()) {
    if (rule.front() < '0' || rule.front() > '9')
      throw InputError(
          fmt::format("{}: layers: expected {}, found {}", field, kRules, reshard::quoted(rule)));
    counts = layer_list(rule, fmt::format("{}: layers", field));
    std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    if (counts.size() != static_cast<std::size_t>(stages) || sum != layers)
      throw InputError(
          fmt::format("{}: layers: expected {} stages with {} layers in total, found {} "
                      "with {}",
                      field, stages, layers, counts.size(), sum));
  }
  std::vector<std::int64_t> out{0};
  for (std::int64_t count : counts) out.push_back(out.back() + count);
  return out;
}

KvShare share_of(const KvParallel& parallel, std::int64_t heads, std::int64_t cp_rank,
                 std::int64_t tp_rank) {
  std::int64_t group = cp_rank * parallel.dcp + tp_rank % parallel.dcp;
  if (heads >= parallel.tp) {
    std::int64_t own = heads / parallel.tp;
    return {tp_rank * own, (tp_rank + 1) * own, group};
  }
  std::int64_t head = tp_rank / (parallel.tp / heads);
  return {head, head + 1, group};
}

std::int64_t copies_of(const KvParallel& parallel, std::int64_t heads) {
  return std::max<std::int64_t>(parallel.tp / heads, 1) / parallel.dcp;
}

}  // namespace reshard::sim
