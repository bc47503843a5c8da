// SPDX-License-Identifier: BSD-3-Clause
// Look-ups, and operators that write by index. The dim that indices refer to is replicated, or each
// rank looks up what it has (a mask), or only other dims are cut.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"
#include "core/ops/torch_fault.h"

namespace reshard {
namespace {

constexpr auto kSumOp = ReduceOp::Sum;

Rows embedding(const OpSite& site) {
  int indices = site.shape(1).size();
  Rows rows{{Mark::plain_shard(indices), Mark::plain_shard(1), Mark::replicate()},
            {Mark::mask(0), Mark::plain_shard(0), Mark::mask(0)}};
  for (int d = 0; d < indices; ++d)
    rows.push_back({Mark::plain_shard(d), Mark::replicate(), Mark::plain_shard(d)});
  return rows;
}

// PyTorch has one mask per tensor, and a look-up in no rows raises.
std::string_view embedding_fault(const TorchChoice& choice) {
  const auto& output = choice.right.outputs[0];
  auto masks = std::count_if(output->placements.begin(), output->placements.end(),
                             [](const OpPlacement& placement) {
                               return placement.kind == OpPlacement::Kind::MaskPartial;
                             });
  if (masks > 1)
    return "PyTorch 2.15 fails here: two axes shard the rows of the table, but it keeps a single "
           "mask for both";
  if (masks == 1 &&
      has_empty_shard(choice.inputs[0]->meta, *choice.right.wanted[0], 0, choice.sizes))
    return "PyTorch 2.15 hangs here: a rank that holds no rows of the table raises, and the others "
           "wait for it";
  return {};
}

Metas embedding_metas(const OpSite& site) {
  const Shape& weight = site.shape(0);
  if (weight.size() != 2)
    throw InputError(
        fmt::format("embedding: expected a weight of 2 dims, found [{}]", text(weight)));
  Shape out = site.shape(1);
  add_dim(out, weight[1]);
  return {TensorMeta{out, site.meta(0).dtype}};
}

// The counts of indices that scale gradients are over all ranks (PyTorch uses each rank's own).
Rows embedding_backward_rows(const OpSite& site, bool counts) {
  Rows rows{{Mark::plain_shard(1), Mark::plain_shard(site.shape(0).size() - 1), Mark::replicate()}};
  for (int d = 0; d < site.shape(1).size() && !counts; ++d)
    rows.push_back({Mark::partial(kSumOp), Mark::plain_shard(d), Mark::plain_shard(d)});
  rows.push_back({Mark::partial(kSumOp), Mark::partial(kSumOp), Mark::replicate()});
  return rows;
}

Rows embedding_backward(const OpSite& site) {
  return embedding_backward_rows(site, site.attributes.boolean("scale_grad_by_freq", false));
}
Rows embedding_backward_of_torch(const OpSite& site) {
  return embedding_backward_rows(site, false);
}

std::string_view embedding_backward_fault(const TorchChoice& choice) {
  if (!choice.differs()) return {};
  return "PyTorch 2.15 is silently wrong here: with scale_grad_by_freq each rank divides by the "
         "count of an index in its own shard only";
}

Metas embedding_backward_metas(const OpSite& site) {
  const Shape &grad = site.shape(0), &indices = site.shape(1);
  if (grad.size() != indices.size() + 1)
    throw InputError(fmt::format(
        "{}: expected a gradient with one dim more than the indices, found [{}] and [{}]",
        site.op.name, text(grad), text(indices)));
  return {TensorMeta{Shape{site.attributes.integer("num_weights"), grad[grad.size() - 1]},
                     site.meta(0).dtype}};
}

Rows gather(const OpSite& site) {
  int dim = site.dim("dim", 0);
  const Shape &input = site.shape(0), &index = site.shape(1);
  Rows rows;
  if (input.size() > 0 && dim < index.size()) {
    if (index[dim] == 1) rows.push_back({Mark::mask(dim), Mark::plain_shard(dim), Mark::mask(dim)});
    rows.push_back({Mark::plain_shard(dim), Mark::replicate(), Mark::plain_shard(dim)});
  }
  // If an index is shorter in another dim, it applies to the first elements there; with a cut,
  // those would be the first elements of every shard.
  if (input.size() == index.size())
    for (int d = 0; d < input.size(); ++d)
      if (d != dim && input[d] == index[d])
        rows.push_back({Mark::shard(d), Mark::shard(d), Mark::shard(d)});
  return rows;
}

Metas gather_metas(const OpSite& site) {
  (void)site.attributes.integer("dim");
  return {TensorMeta{site.shape(1), site.meta(0).dtype}};
}

// Cuts dims that have the same size in all tensors, except the one that is written along.
Rows scatter(const OpSite& site) {
  int dim = site.dim("dim", 0);
  std::vector<const TensorMeta*> inputs = site.inputs();
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d) {
    bool same =
        d != dim && std::all_of(inputs.begin(), inputs.end(), [&](const TensorMeta* other) {
          return other->shape.size() == site.shape(0).size() && other->shape[d] == site.shape(0)[d];
        });
    if (same) rows.emplace_back(inputs.size() + 1, Mark::shard(d));
  }
  return rows;
}

Metas written_metas(const OpSite& site) { return like_first(site); }

Rows index_select(const OpSite& site) {
  int dim = site.dim("dim", 0);
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d)
    if (d != dim) rows.push_back({Mark::shard(d), Mark::shard(d), Mark::replicate()});
  rows.push_back({Mark::shard(dim), Mark::replicate(), Mark::shard(0)});
  for (ReduceOp op : kPartials)
    rows.push_back({Mark::partial(op), Mark::partial(op), Mark::replicate()});
  return rows;
}

Metas index_select_metas(const OpSite& site) {
  TensorMeta out = site.meta(0);
  int dim = site.dim("dim", 0);
  if (out.shape.size() > 0) out.shape[dim] = element_count(site.shape(1));
  return {out};
}

Rows index_fill(const OpSite& site) {
  int dim = site.dim("dim", 0);
  bool tensor = site.op.tensors.size() > 2;  // the value
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d) {
    if (d == dim) continue;
    rows.push_back({Mark::shard(d), Mark::shard(d), Mark::replicate()});
    if (tensor) rows.back().push_back(Mark::replicate());
  }
  for (ReduceOp op : kPartials) {
    if (!tensor && op == kSumOp) continue;  // the value would count once per rank
    rows.push_back({Mark::partial(op), Mark::partial(op), Mark::replicate()});
    if (tensor) rows.back().push_back(Mark::partial(op));
  }
  return rows;
}

// index_reduce. index_copy and index_add also work on addends of a sum.
Rows index_reduce(const OpSite& site) {
  int dim = site.dim("dim", 0);
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d)
    if (d != dim)
      rows.push_back({Mark::shard(d), Mark::shard(d), Mark::replicate(), Mark::shard(d)});
  return rows;
}

Rows index_addends(const OpSite& site) {
  Rows rows = index_reduce(site);
  rows.push_back(
      {Mark::partial(kSumOp), Mark::partial(kSumOp), Mark::replicate(), Mark::partial(kSumOp)});
  return rows;
}

// The bucket of a value: the number of sorted boundaries below it.
Rows bucketize(const OpSite& site) {
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d)
    rows.push_back({Mark::shard(d), Mark::shard(d), Mark::replicate()});
  rows.push_back({Mark::partial(kSumOp), Mark::replicate(), Mark::shard(0)});
  for (ReduceOp op : {ReduceOp::Max, ReduceOp::Min})
    rows.push_back({Mark::partial(op), Mark::partial(op), Mark::replicate()});
  return rows;
}

Metas bucketize_metas(const OpSite& site) {
  DType dtype = site.attributes.boolean("out_int32", false) ? DType::I32 : DType::I64;
  return {TensorMeta{site.shape(0), dtype}};
}

// ---- x[i, j, ..]: a list of index tensors; an absent one selects a whole dim

struct Indexing {
  std::vector<int> dims;                 // dims that are indexed
  std::vector<const TensorMeta*> index;  // the index of each
  Shape common;                          // broadcast shape of the indices
  int at = 0;                            // its first dim in the result
  bool together = true;                  // no unindexed dim between indexed ones
};

Indexing indexing_of(const OpSite& site) {
  Indexing out;
  const std::vector<const TensorMeta*>& list = site.arguments.at(1).tensors;
  if (static_cast<int>(list.size()) > site.shape(0).size())
    throw InputError(
        fmt::format("{}: {} indices for [{}]", site.op.name, list.size(), text(site.shape(0))));
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i]) continue;
    if (list[i]->dtype == DType::Bool || list[i]->dtype == DType::U8)
      throw InputError(
          fmt::format("{}: the number of elements that a mask selects depends on its values; index "
                      "with integers",
                      site.op.name));
    out.dims.push_back(static_cast<int>(i));
    out.index.push_back(list[i]);
  }
  if (out.dims.empty())
    throw InputError(fmt::format("{}: expected at least one index", site.op.name));
  out.common = broadcast_shapes(out.index);
  out.together = out.dims.back() - out.dims.front() + 1 == static_cast<int>(out.dims.size());
  out.at = out.together ? out.dims.front() : 0;
  return out;
}

// The dim of the result that the unindexed dim `dim` of the source becomes.
int result_dim(const Indexing& indexing, int dim) {
  int before = reduced_dim(dim, indexing.dims, false);
  return before < indexing.at ? before : before + indexing.common.size();
}

Shape result_shape(const OpSite& site, const Indexing& indexing) {
  Shape rest = reduced_shape(site.shape(0), indexing.dims, false), out;
  for (int d = 0; d <= rest.size(); ++d) {
    if (d == indexing.at)
      for (std::int64_t size : indexing.common) add_dim(out, size);
    if (d < rest.size()) add_dim(out, rest[d]);
  }
  return out;
}

Rows index(const OpSite& site) {
  Indexing indexing = indexing_of(site);
  std::size_t count = indexing.index.size();
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d) {
    if (contains(indexing.dims, d)) continue;
    rows.push_back({Mark::shard(result_dim(indexing, d)), Mark::shard(d)});
    rows.back().insert(rows.back().end(), count, Mark::replicate());
  }
  for (int d = 0; d < indexing.common.size(); ++d) {
    if (indexing.common[d] == 1) continue;
    Row row{Mark::shard(d + indexing.at), Mark::replicate()};
    for (const TensorMeta* tensor : indexing.index) {
      int at = broadcast_dim(indexing.common, tensor->shape, d);
      row.push_back(at >= 0 ? Mark::shard(at) : Mark::replicate());
    }
    rows.push_back(std::move(row));
  }
  for (ReduceOp op : {kSumOp, ReduceOp::Avg}) {
    rows.push_back({Mark::partial(op), Mark::partial(op)});
    rows.back().insert(rows.back().end(), count, Mark::replicate());
  }
  return rows;
}

Metas index_metas(const OpSite& site) {
  return {TensorMeta{result_shape(site, indexing_of(site)), site.meta(0).dtype}};
}

Rows index_put(const OpSite& site) {
  Indexing indexing = indexing_of(site);
  const Shape& values = site.shape(2);
  Shape result = result_shape(site, indexing);
  std::size_t count = indexing.index.size();
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d) {
    if (contains(indexing.dims, d)) continue;
    int at = result_dim(indexing, d) - (result.size() - values.size());
    rows.push_back({Mark::shard(d), Mark::shard(d)});
    rows.back().insert(rows.back().end(), count, Mark::replicate());
    rows.back().push_back(at < 0 || values[at] == 1 ? Mark::replicate() : Mark::shard(at));
  }
  rows.push_back({Mark::partial(kSumOp), Mark::partial(kSumOp)});
  rows.back().insert(rows.back().end(), count, Mark::replicate());
  rows.back().push_back(Mark::partial(kSumOp));
  return rows;
}

Metas index_put_metas(const OpSite& site) {
  (void)indexing_of(site);
  return like_first(site);
}

constexpr Rule kLookupRules[]{
    {"embedding", embedding, embedding_metas, "", false, nullptr, nullptr, nullptr,
     embedding_fault},
    {"embedding_backward", embedding_backward, embedding_backward_metas,
     "num_weights scale_grad_by_freq", false, nullptr, embedding_backward_of_torch, nullptr,
     embedding_backward_fault},
    {"gather", gather, gather_metas, "dim"},
    {"scatter", scatter, written_metas, "dim"},
    {"index_select", index_select, index_select_metas, "dim"},
    {"index_fill", index_fill, written_metas, "dim"},
    {"index_reduce", index_reduce, written_metas, "dim"},
    {"index_copy", index_addends, written_metas, "dim"},
    {"index_add", index_addends, written_metas, "dim"},
    {"bucketize", bucketize, bucketize_metas, "out_int32"},
    {"index", index, index_metas},
    {"index_put", index_put, index_put_metas},
};

}  // namespace

std::span<const Rule> lookup_rules() { return kLookupRules; }

}  // namespace reshard
