// SPDX-License-Identifier: BSD-3-Clause
// Scaled dot product attention: batches and heads are independent, sequences are not. The kernels
// differ in what else they give and take.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"

namespace reshard {
namespace {

// An output of a kernel: like the queries, their log-sum-exp, a state that all ranks share, none.
enum class Made : std::uint8_t { Out, LogSumExp, Shared, None };

struct Kernel {
  std::string_view name;
  std::vector<Made> outputs;
};

const Kernel& kernel_of(const OpSite& site) {
  using enum Made;
  static const std::vector<Kernel> kernels{
      {"_scaled_dot_product_flash_attention_for_cpu", {Out, LogSumExp}},
      {"_scaled_dot_product_flash_attention",
       {Out, LogSumExp, None, None, None, None, Shared, None, Shared}},
      {"_scaled_dot_product_efficient_attention", {Out, LogSumExp, None, None}},
      {"_scaled_dot_product_cudnn_attention",
       {Out, LogSumExp, None, None, None, None, None, None, None}},
      {"scaled_dot_product_attention", {Out}},
      {"_scaled_dot_product_attention_math", {Out, None}}};
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

// The kernel of CPUs has no rule in PyTorch, which takes it apart and then cuts batches, and
// queries of whole keys, but no heads.
bool is_of_cpu(const OpSite& site) { return site.op.name.ends_with("_for_cpu"); }

Rows attention(const OpSite& site) {
  Rows rows;
  if (is_of_cpu(site)) {
    rows.push_back({Mark::shard(2), Mark::shard(2), Mark::shard(2)});
    rows.back().resize(site.outputs.size() + site.inputs().size(), Mark::replicate());
  }
  for (int dim : {1, 0}) {
    if (dim == 1 && is_of_cpu(site)) continue;
    Row row;
    for (Made made : kernel_of(site).outputs) {
      bool is_mask = made == Made::Shared && row.size() == 8 && asks_for_mask(site);
      bool shared = (made == Made::Shared && !is_mask) ||
                    (made == Made::LogSumExp && !makes_log_sum_exp(site));
      row.push_back(made == Made::None ? Mark::absent()
                    : shared           ? Mark::replicate()
                                       : Mark::shard(dim));
    }
    row.insert(row.end(), site.inputs().size(), Mark::shard(dim));
    rows.push_back(std::move(row));
  }
  return rows;
}

// What was dropped, where it is asked for: keys in the kernel's blocks, which are as large as its
// heads are narrow.
Shape debug_mask(const OpSite& site) {
  if (!asks_for_mask(site)) return Shape{0};
  const Shape& query = site.shape(0);
  std::int64_t keys = site.shape(1)[2], block = query[3] > 64 ? 128 : 256;
  keys = keys <= 128 ? 128 : keys <= 256 ? 256 : ceil_div(keys, block) * block;
  return Shape{query[0], query[1], query[2], keys};
}

Metas attention_metas(const OpSite& site) {
  const TensorMeta &query = site.meta(0), &value = site.meta(2);
  if (query.shape.size() != 4 || value.shape.size() != 4 || site.shape(1).size() != 4)
    throw InputError(fmt::format("{}: expected queries, keys and values of 4 dims", site.op.name));
  TensorMeta out = query;
  out.shape[3] = value.shape[3];
  TensorMeta sums{Shape{query.shape[0], query.shape[1], query.shape[2]}, DType::F32};
  // This kernel writes blocks of 32 rows.
  if (site.op.name.starts_with("_scaled_dot_product_efficient"))
    sums.shape[2] = makes_log_sum_exp(site) ? ceil_div(sums.shape[2], 32) * 32 : 0;
  if (site.op.name.starts_with("_scaled_dot_product_cudnn")) sums.shape.push_back(1);
  Metas metas;
  bool state = true;
  for (Made made : kernel_of(site).outputs) {
    if (made == Made::Out) metas.emplace_back(out);
    if (made == Made::LogSumExp) metas.emplace_back(sums);
    if (made == Made::None) metas.emplace_back(std::nullopt);
    if (made != Made::Shared) continue;
    metas.emplace_back(state ? TensorMeta{Shape{2}, DType::I64}
                             : TensorMeta{debug_mask(site), query.dtype});
    state = false;
  }
  return metas;
}

// Inputs that are cut with the queries; seeds and offsets are whole.
bool is_cut(std::string_view name) {
  return !name.starts_with("philox") && !name.starts_with("cum_seq");
}

Rows attention_backward(const OpSite& site) {
  Rows rows;
  for (int dim : {1, 0}) {
    Row row;
    for (const std::optional<TensorMeta>& output : site.outputs)
      row.push_back(output ? Mark::shard(dim) : Mark::absent());
    for (std::size_t i = 0; i < site.arguments.size(); ++i)
      if (site.has(static_cast<int>(i)))
        row.push_back(is_cut(site.op.tensors[i].name) ? Mark::shard(dim) : Mark::replicate());
    rows.push_back(std::move(row));
  }
  return rows;
}

Metas attention_backward_metas(const OpSite& site) {
  Metas out{site.meta(1), site.meta(2), site.meta(3)};
  bool efficient = site.op.name.starts_with("_scaled_dot_product_efficient");
  if (efficient) out.push_back(site.has(4) ? std::optional(site.meta(4)) : std::nullopt);
  return out;
}

constexpr Rule kRules[]{
    {"attention", attention, attention_metas, "compute_log_sumexp return_debug_mask"},
    {"attention_backward", attention_backward, attention_backward_metas},
};

}  // namespace

std::span<const Rule> attention_rules() { return kRules; }

}  // namespace reshard
