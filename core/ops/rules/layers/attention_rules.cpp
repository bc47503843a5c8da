// SPDX-License-Identifier: BSD-3-Clause
// Scaled dot product attention. Batches and heads are independent; a query needs all keys, but no
// other query. The kernels differ in their other inputs and outputs.
//
// A row is given by a dim of the scores, [batches ..., heads, queries, keys]. Broadcasting decides
// which dim of each tensor that is, so a mask of [queries, keys] is replicated where heads are cut.
// Where groups of query heads share a KV head, a rank must have whole groups.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/errors.h"
#include "core/ops/head_groups.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"
#include "core/ops/torch_fault.h"

namespace reshard {
namespace {

// An output of a kernel: the result, shaped like the queries; its log-sum-exp; the weights that the
// scores become; a state that all ranks share; nothing.
enum class Made : std::uint8_t { Out, LogSumExp, Weights, Shared, None };

struct Kernel {
  std::string_view name;
  std::vector<Made> outputs;
  bool has_rule = true;     // in PyTorch
  bool broadcasts = false;  // batches broadcast; grouped heads need enable_gqa
};

const Kernel& kernel_of(const OpSite& site) {
  using enum Made;
  static const std::vector<Kernel> kernels{
      {"_scaled_dot_product_flash_attention_for_cpu", {Out, LogSumExp}, false},
      {"_scaled_dot_product_flash_attention",
       {Out, LogSumExp, None, None, None, None, Shared, None, Shared}},
      {"_scaled_dot_product_efficient_attention", {Out, LogSumExp, None, None}},
      {"_scaled_dot_product_cudnn_attention",
       {Out, LogSumExp, None, None, None, None, None, None, None}},
      {"_scaled_dot_product_fused_attention_overrideable",
       {Out, LogSumExp, None, None, None, None, None, None, None},
       false},
      {"scaled_dot_product_attention", {Out}, false, true},
      {"_scaled_dot_product_attention_math", {Out, Weights}, false, true}};
  for (const Kernel& kernel : kernels)
    if (site.op.name.starts_with(kernel.name)) return kernel;
  throw CheckFailure("an attention without a kernel");
}

bool makes_log_sum_exp(const OpSite& site) {
  return site.attributes.boolean("compute_log_sumexp", true);
}

bool asks_for_mask(const OpSite& site) {
  return site.attributes.boolean("return_debug_mask", false);
}

// PyTorch has no rule for the CPU kernel: it decomposes it, and then cuts batches, and queries with
// replicated keys, but not heads.
bool is_of_cpu(const OpSite& site) { return site.op.name.ends_with("_for_cpu"); }

// ---- the scores

// The call's tensors, as indices of its arguments.
struct Places {
  int query, key, value;
  int mask = -1;  // none
};

Places places_of(const OpSite& site) {
  int query = site.op.tensors[0].name == "query" ? 0 : 1;
  Places out{query, query + 1, query + 2};
  for (std::size_t i = 0; i < site.op.tensors.size(); ++i)
    if (site.op.tensors[i].name.starts_with("attn_") && site.has(static_cast<int>(i)))
      out.mask = static_cast<int>(i);
  return out;
}

// Whether there can be fewer KV heads than query heads, each serving a group.
bool is_grouped(const OpSite& site) {
  return !kernel_of(site).broadcasts || site.attributes.boolean("enable_gqa", false);
}

Shape batch_dims(const Shape& shape) {
  Shape out;
  for (int d = 0; d + 2 < shape.size(); ++d) out.push_back(shape[d]);
  return out;
}

// The batch and head dims of the scores.
Shape batch_of(const OpSite& site) {
  Places at = places_of(site);
  Shape batch = batch_dims(site.shape(at.query));
  for (int place : {at.key, at.value}) {
    Shape other = batch_dims(site.shape(place));
    if (is_grouped(site) && other.size() > 0 && batch.size() > 0)
      other[other.size() - 1] = batch[batch.size() - 1];
    TensorMeta a{batch, DType::F32}, b{other, DType::F32};
    batch = broadcast_shapes({&a, &b});
  }
  return batch;
}

// The mark of a tensor with `trailing` dims after its batch dims, where dim `dim` of the scores is
// cut.
Mark mark_on(const Shape& batch, int dim, const Shape& shape, int trailing) {
  int at = dim - (batch.size() - (shape.size() - trailing));
  return at < 0 || (shape[at] == 1 && batch[dim] != 1) ? Mark::replicate() : Mark::shard(at);
}

// ---- rows

// What a row cuts.
struct Cut {
  int dim;                  // of the scores
  bool whole_keys = false;  // for heads: keys and values are replicated
  // Uses the scores' index of the dim for all inputs; if one broadcasts that dim, the row cannot be
  // taken.
  bool by_number = false;
  bool mask_by_number = false;  // also for the mask, whatever its dims are
};

// Inputs that are not part of the scores: states of random generators, lengths of nested tensors.
bool is_aside(std::string_view name) {
  return name.starts_with("philox") || name.starts_with("cum_seq");
}

Mark mark_of_mask(const Shape& batch, const Cut& cut, const Shape& mask) {
  if (cut.mask_by_number || (cut.by_number && mask.size() == batch.size() + 2))
    return Mark::shard(cut.dim);
  if (cut.dim < batch.size()) return mark_on(batch, cut.dim, mask, 2);
  int at = mask.size() - 2;  // the queries
  return at < 0 || mask[at] == 1 ? Mark::replicate() : Mark::shard(at);
}

Mark mark_of_input(const OpSite& site, const Shape& batch, const Cut& cut, int input) {
  Places at = places_of(site);
  bool cuts_queries = cut.dim == batch.size();
  if (is_aside(site.op.tensors[to_index(input)].name)) return Mark::replicate();
  if (input == at.mask) return mark_of_mask(batch, cut, site.shape(input));
  if (input == at.key || input == at.value) {
    if (cuts_queries || cut.whole_keys) return Mark::replicate();
    return cut.by_number ? Mark::shard(cut.dim) : mark_on(batch, cut.dim, site.shape(input), 2);
  }
  return input == at.query && !cuts_queries ? mark_on(batch, cut.dim, site.shape(input), 2)
                                            : Mark::shard(cut.dim);
}

std::vector<Mark> input_marks(const OpSite& site, const Cut& cut) {
  Shape batch = batch_of(site);
  std::vector<Mark> out;
  for (std::size_t i = 0; i < site.arguments.size(); ++i)
    if (site.has(static_cast<int>(i)))
      out.push_back(mark_of_input(site, batch, cut, static_cast<int>(i)));
  return out;
}

Row forward_row(const OpSite& site, const Cut& cut) {
  Row row;
  for (Made made : kernel_of(site).outputs) {
    bool is_mask = made == Made::Shared && row.size() == 8 && asks_for_mask(site);
    bool shared =
        (made == Made::Shared && !is_mask) || (made == Made::LogSumExp && !makes_log_sum_exp(site));
    row.push_back(made == Made::None ? Mark::absent()
                  : shared           ? Mark::replicate()
                                     : Mark::shard(cut.dim));
  }
  std::vector<Mark> inputs = input_marks(site, cut);
  row.insert(row.end(), inputs.begin(), inputs.end());
  return row;
}

// A gradient is placed like its tensor; if that is replicated, each rank has an addend.
Row backward_row(const OpSite& site, const Cut& cut) {
  Shape batch = batch_of(site);
  Places at = places_of(site);
  Row row;
  const int of[]{at.query, at.key, at.value, at.mask};
  for (std::size_t i = 0; i < site.outputs.size(); ++i) {
    if (!site.outputs[i]) {
      row.push_back(Mark::absent());
      continue;
    }
    Mark mark = mark_of_input(site, batch, cut, of[i]);
    row.push_back(mark.kind == Mark::Kind::Shard ? mark : Mark::partial(ReduceOp::Sum));
  }
  std::vector<Mark> inputs = input_marks(site, cut);
  row.insert(row.end(), inputs.begin(), inputs.end());
  return row;
}

Row row_of(const OpSite& site, const Cut& cut) {
  bool backward = places_of(site).query == 1;
  return backward ? backward_row(site, cut) : forward_row(site, cut);
}

// A causal mask counts queries from the first one. The efficient kernel's log-sum-exp is in blocks
// of queries.
bool may_cut_queries(const OpSite& site) {
  return !site.attributes.boolean("is_causal", false) &&
         !kernel_of(site).name.starts_with("_scaled_dot_product_efficient");
}

bool has_fewer_key_heads(const OpSite& site) {
  Places at = places_of(site);
  const Shape &query = site.shape(at.query), &key = site.shape(at.key);
  return is_grouped(site) && heads_dim(query) >= 0 && heads_dim(key) >= 0 &&
         key[heads_dim(key)] < query[heads_dim(query)];
}

Rows rows_with(const OpSite& site, bool may_keep_keys_whole) {
  const int batches = batch_of(site).size();
  const Kernel& kernel = kernel_of(site);
  Rows rows;
  if (is_of_cpu(site) && may_cut_queries(site)) rows.push_back(row_of(site, {batches}));
  for (int dim = batches - 1; dim >= 0; --dim) {
    const bool heads = dim == batches - 1;
    if (heads && batches > 1 && is_of_cpu(site)) continue;
    rows.push_back(row_of(site, {dim, false, kernel.has_rule}));
    if (!heads || !kernel.broadcasts || !may_keep_keys_whole || !has_fewer_key_heads(site))
      continue;
    Row whole_keys = row_of(site, {dim, true});
    if (whole_keys != rows.back()) rows.push_back(std::move(whole_keys));
  }
  return rows;
}

Rows attention(const OpSite& site) { return rows_with(site, true); }

// PyTorch uses the scores' index of the dim for every input. Where it decomposes the operator its
// rows are as ours, except those with replicated keys.
Rows rows_of_torch(const OpSite& site) {
  if (!kernel_of(site).has_rule) return rows_with(site, false);
  Rows rows;
  for (int dim = batch_of(site).size() - 1; dim >= 0; --dim)
    rows.push_back(row_of(site, {dim, false, true, true}));
  return rows;
}

Rows more_rows(const OpSite& site) {
  int batches = batch_of(site).size();
  Rows rows;
  for (int dim = batches - 1; dim >= 0; --dim) rows.push_back(row_of(site, {dim}));
  if (batches > 0 && has_fewer_key_heads(site)) rows.push_back(row_of(site, {batches - 1, true}));
  if (may_cut_queries(site)) rows.push_back(row_of(site, {batches}));
  return rows;
}

// ---- groups of heads

bool pairs_all_heads(const Placing& placing) {
  const OpSite& site = placing.site;
  if (!is_grouped(site) || batch_of(site).size() == 0) return true;
  Places at = places_of(site);
  // The arguments before these are all present, so their indices are also indices of inputs.
  auto to = [&](int input) -> const OpPlacements& { return *placing.to[to_index(input)]; };
  for (int key : {at.key, at.value})
    if (heads_dim(site.shape(at.query)) >= 0 && heads_dim(site.shape(key)) >= 0 &&
        !pairs_heads({site.shape(at.query), to(at.query)}, {site.shape(key), to(key)},
                     placing.sizes))
      return false;
  return true;
}

std::string_view fault(const TorchChoice& choice) {
  const Kernel& kernel = kernel_of(choice.site);
  if (!choice.differs() || !(kernel.has_rule || kernel.broadcasts)) return {};
  std::vector<const OpPlacements*> to;
  for (const auto& placements : choice.torch.wanted) to.push_back(&*placements);
  if (!pairs_all_heads({choice.site, choice.sizes, choice.inputs, to}))
    return "PyTorch 2.15 is silently wrong here, or crashes: it shards query and KV heads across "
           "group boundaries, so queries meet the keys of other groups";
  if (!kernel.has_rule) return {};
  return "PyTorch 2.15 is wrong here: it shards the mask on the dim number of the scores, which "
         "can be another dim of the mask";
}

// ---- shapes

// The mask of what was dropped, if requested: keys are rounded up to the kernel's blocks, which are
// smaller for wide heads.
Shape debug_mask(const OpSite& site) {
  if (!asks_for_mask(site)) return Shape{0};
  const Shape& query = site.shape(0);
  std::int64_t keys = site.shape(1)[2], block = query[3] > 64 ? 128 : 256;
  keys = keys <= 128 ? 128 : keys <= 256 ? 256 : ceil_div(keys, block) * block;
  return Shape{query[0], query[1], query[2], keys};
}

void check_heads(const OpSite& site, const Shape& query, const Shape& key) {
  if (!is_grouped(site) || heads_dim(query) < 0 || heads_dim(key) < 0) return;
  std::int64_t heads = query[heads_dim(query)], key_heads = key[heads_dim(key)];
  if (key_heads != heads && (key_heads == 0 || heads % key_heads != 0))
    throw InputError(fmt::format("{}: {} query heads do not divide into groups over {} KV heads",
                                 site.op.name, heads, key_heads));
}

// The mask must broadcast to the scores, not the reverse.
void check_mask(const OpSite& site, const Shape& scores, const Shape& mask) {
  bool fits = mask.size() <= scores.size();
  for (int d = 1; fits && d <= mask.size(); ++d)
    fits = mask[mask.size() - d] == 1 || mask[mask.size() - d] == scores[scores.size() - d];
  if (!fits)
    throw InputError(fmt::format("{}: a mask of [{}] does not broadcast to scores of [{}]",
                                 site.op.name, text(mask), text(scores)));
}

// The scores of the whole call: queries by keys, per batch and head.
Shape scores_of(const OpSite& site) {
  const Kernel& kernel = kernel_of(site);
  Places at = places_of(site);
  const Shape &query = site.shape(at.query), &key = site.shape(at.key),
              &value = site.shape(at.value);
  for (const Shape* shape : {&query, &key, &value})
    if (kernel.broadcasts ? shape->size() < 2 : shape->size() != 4)
      throw InputError(fmt::format("{}: expected queries, keys and values of {} dims", site.op.name,
                                   kernel.broadcasts ? "2 or more" : "4"));
  for (int place : {at.key, at.value}) {
    check_heads(site, query, site.shape(place));
    bool is_one = kernel.broadcasts || site.shape(place)[0] == query[0];
    if (!is_one)
      throw InputError(fmt::format("{}: expected query, key and value of one batch", site.op.name));
  }
  Shape scores = batch_of(site);
  add_dim(scores, query[query.size() - 2]);
  add_dim(scores, key[key.size() - 2]);
  if (at.mask >= 0) check_mask(site, scores, site.shape(at.mask));
  if (at.mask >= 0 && kernel.broadcasts && site.attributes.boolean("is_causal", false))
    throw InputError(fmt::format("{}: expected a mask or is_causal, found both", site.op.name));
  return scores;
}

Metas attention_metas(const OpSite& site) {
  const Shape scores = scores_of(site);
  const TensorMeta &query = site.meta(0), &value = site.meta(2);
  TensorMeta out{scores, query.dtype}, weights = out;
  out.shape[scores.size() - 1] = value.shape[value.shape.size() - 1];
  TensorMeta sums{batch_of(site), query.dtype == DType::F64 ? DType::F64 : DType::F32};
  sums.shape.push_back(scores[scores.size() - 2]);
  // The efficient kernel writes blocks of 32 rows.
  if (site.op.name.starts_with("_scaled_dot_product_efficient"))
    sums.shape[2] = makes_log_sum_exp(site) ? ceil_div(sums.shape[2], 32) * 32 : 0;
  if (site.op.name.starts_with("_scaled_dot_product_cudnn")) sums.shape.push_back(1);
  Metas metas;
  bool state = true;
  for (Made made : kernel_of(site).outputs) {
    if (made == Made::Out) metas.emplace_back(out);
    if (made == Made::LogSumExp) metas.emplace_back(sums);
    if (made == Made::Weights) metas.emplace_back(weights);
    if (made == Made::None) metas.emplace_back(std::nullopt);
    if (made != Made::Shared) continue;
    metas.emplace_back(state ? TensorMeta{Shape{2}, DType::I64}
                             : TensorMeta{debug_mask(site), query.dtype});
    state = false;
  }
  return metas;
}

Metas attention_backward_metas(const OpSite& site) {
  (void)scores_of(site);
  Metas out{site.meta(1), site.meta(2), site.meta(3)};
  std::string_view name = kernel_of(site).name;
  if (!name.starts_with("_scaled_dot_product_efficient") &&
      !name.starts_with("_scaled_dot_product_fused"))
    return out;
  int mask = places_of(site).mask;
  out.push_back(mask >= 0 ? std::optional(site.meta(mask)) : std::nullopt);
  return out;
}

constexpr Rule kAttentionRules[]{
    {"attention", attention, attention_metas,
     "compute_log_sumexp return_debug_mask is_causal enable_gqa", false, nullptr, rows_of_torch,
     pairs_all_heads, fault, more_rows},
    {"attention_backward", attention, attention_backward_metas, "is_causal", false, nullptr,
     rows_of_torch, pairs_all_heads, fault, more_rows},
};

}  // namespace

std::span<const Rule> attention_rules() { return kAttentionRules; }

}  // namespace reshard
