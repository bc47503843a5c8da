// SPDX-License-Identifier: BSD-3-Clause
// Linear algebra on matrices (the last two dims). The dims before those are a batch; only it is
// cut.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"
#include "core/ops/torch_fault.h"

namespace reshard {
namespace {

// The outputs of an operator, by the catalogue's word for it, for a batch of m by n matrices.
enum class Made : std::uint8_t { Like, LikeLast, Lu, Batch, Pivots, Info };

struct Kind {
  std::vector<Made> outputs;
  // The input that it is linear in, addend by addend, if the others are replicated; -1: none.
  int linear_in = -1;
  bool averages = false;
};

const Kind& kind_of(const OpSite& site) {
  using enum Made;
  static const std::map<std::string_view, Kind> kinds{{"like", {{Like}}},
                                                      {"factor", {{Like, Info}}},
                                                      {"lu", {{Like, Pivots, Info}}},
                                                      {"det", {{Batch, Lu, Pivots}}},
                                                      {"slogdet", {{Batch, Batch, Lu, Pivots}}},
                                                      {"solve", {{LikeLast, Lu, Pivots, Info}, 1}},
                                                      {"triangular", {{LikeLast}, 1, true}},
                                                      {"cholesky", {{Like}, 0}},
                                                      {"solve_lu", {{LikeLast}, 2}}};
  return kinds.at(site.op.partials);
}

int rank_of(const OpSite& site) {
  int rank = site.shape(0).size();
  if (rank < 2)
    throw InputError(
        fmt::format("{}: expected matrices, found [{}]", site.op.name, text(site.shape(0))));
  return rank;
}

Rows linalg_rows(const OpSite& site, bool of_torch) {
  const Kind& kind = kind_of(site);
  std::size_t inputs = site.inputs().size();
  Rows rows;
  for (int d = 0; d + 2 < rank_of(site); ++d)
    rows.emplace_back(site.outputs.size() + inputs, Mark::shard(d));
  if (kind.linear_in < 0) return rows;
  for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg}) {
    if (op == ReduceOp::Avg && !kind.averages) continue;
    Row row(site.outputs.size() + inputs, Mark::replicate());
    row[0] = row[site.outputs.size() + to_index(kind.linear_in)] = Mark::partial(op);
    rows.push_back(std::move(row));
  }
  // The right sides can have a batch dim that the triangles do not have. (PyTorch accepts any.)
  if (site.op.partials != "triangular") return rows;
  for (int d = 0; d + 2 < site.shape(1).size(); ++d) {
    int at = d - (site.shape(1).size() - site.shape(0).size());
    if (of_torch || at < 0 || site.shape(0)[at] == 1)
      rows.push_back({Mark::shard(d), Mark::replicate(), Mark::shard(d)});
  }
  return rows;
}

Rows linalg(const OpSite& site) { return linalg_rows(site, false); }
Rows linalg_rows_of_torch(const OpSite& site) { return linalg_rows(site, true); }

std::string_view linalg_fault(const TorchChoice& choice) {
  if (!choice.differs()) return {};
  return "PyTorch 2.15 fails here: it shards the batches of the right-hand sides but not those of "
         "the triangular matrices";
}

Metas linalg_metas(const OpSite& site) {
  const TensorMeta& first = site.meta(0);
  int rank = rank_of(site);
  std::int64_t least = std::min(first.shape[rank - 2], first.shape[rank - 1]);
  Shape batch, pivots;
  for (int d = 0; d + 2 < rank; ++d) batch.push_back(first.shape[d]);
  pivots = batch;
  pivots.push_back(least);
  Metas out;
  for (Made made : kind_of(site).outputs) {
    if (made == Made::Like || made == Made::Lu) out.emplace_back(first);
    if (made == Made::LikeLast) {
      int last = static_cast<int>(site.inputs().size()) - 1;
      Shape shape = site.shape(last);
      // A batch of triangles is combined with right sides that have no batch.
      if (site.op.partials == "triangular" && shape.size() < rank) {
        Shape with_batch = batch;
        for (int d = shape.size() - 2; d < shape.size(); ++d) with_batch.push_back(shape[d]);
        shape = with_batch;
      }
      out.emplace_back(TensorMeta{shape, first.dtype});
    }
    if (made == Made::Batch) out.emplace_back(TensorMeta{batch, first.dtype});
    if (made == Made::Pivots) out.emplace_back(TensorMeta{pivots, DType::I32});
    if (made == Made::Info) out.emplace_back(TensorMeta{batch, DType::I32});
  }
  return out;
}

// Decompositions for which PyTorch's only rule is that everything is replicated.
Rows decompose(const OpSite& site) {
  (void)rank_of(site);
  return {};
}

Shape with_last(Shape shape, std::int64_t rows, std::int64_t columns) {
  shape[shape.size() - 2] = rows;
  shape[shape.size() - 1] = columns;
  return shape;
}

Metas decompose_metas(const OpSite& site) {
  const TensorMeta& input = site.meta(0);
  int rank = rank_of(site);
  std::int64_t m = input.shape[rank - 2], n = input.shape[rank - 1], least = std::min(m, n);
  Shape values;
  for (int d = 0; d + 2 < rank; ++d) values.push_back(input.shape[d]);
  values.push_back(least);
  auto of = [&](const Shape& shape) { return TensorMeta{shape, input.dtype}; };
  if (site.op.name.starts_with("_linalg_eigh")) return {of(values), of(input.shape)};
  if (site.op.name.starts_with("linalg_qr")) {
    std::string mode = site.attributes.text("mode", "reduced");
    std::int64_t inner = mode == "complete" ? m : least;
    Shape q = mode == "r" ? Shape{0} : with_last(input.shape, m, inner);
    return {of(q), of(with_last(input.shape, mode == "r" ? least : inner, n))};
  }
  bool full = site.attributes.boolean("full_matrices", false);
  if (!site.attributes.boolean("compute_uv", true)) return {of({0}), of(values), of({0})};
  return {of(with_last(input.shape, m, full ? m : least)), of(values),
          of(with_last(input.shape, full ? n : least, n))};
}

// The cross product of vectors along one dim.
Rows cross(const OpSite& site) {
  Rows rows;
  shard_equally(site, {site.dim("dim", -1)}, 3, rows);
  return rows;
}

Metas cross_metas(const OpSite& site) {
  TensorMeta out{broadcast_shapes(site.inputs()), site.meta(0).dtype};
  if (out.shape != site.shape(0) || out.shape[site.dim("dim", -1)] != 3)
    throw InputError("linalg_cross: expected tensors of the same shape and a dim of length 3");
  return {out};
}

constexpr Rule kLinalgRules[]{
    {"linalg", linalg, linalg_metas, "", true, nullptr, linalg_rows_of_torch, nullptr,
     linalg_fault},
    {"decompose", decompose, decompose_metas, "mode full_matrices compute_uv", false},
    {"cross", cross, cross_metas, "dim", true},
};

}  // namespace

std::span<const Rule> linalg_rules() { return kLinalgRules; }

}  // namespace reshard
