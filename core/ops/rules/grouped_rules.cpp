// SPDX-License-Identifier: BSD-3-Clause
// Grouped products: of a batch of matrices, or of parts of matrices given by offsets. The kernels
// need rows of a multiple of 16 bytes, in shards too.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"

namespace reshard {
namespace {

// Letters: g for groups, which offsets make of the dim that they cut; rows m, columns n, inner k.
struct Form {
  std::string_view left, right, out;
};

Form form_of(const OpSite& site) {
  int left = site.shape(0).size(), right = site.shape(1).size();
  if (left == 2 && right == 3) return {"mk", "gkn", "mn"};
  if (left == 3 && right == 2) return {"gmk", "kn", "mn"};
  if (left == 2 && right == 2) return {"mk", "kn", "gmn"};
  if (left == 3 && right == 3) return {"gmk", "gkn", "gmn"};
  throw InputError(fmt::format("{}: expected matrices of 2 or 3 dims, found [{}] and [{}]",
                               site.op.name, text(site.shape(0)), text(site.shape(1))));
}

// The letter that offsets cut is never sharded; with offsets, columns come before rows.
Rows grouped(const OpSite& site) {
  Form form = form_of(site);
  Rows rows{{Mark::partial(ReduceOp::Sum), Mark::partial(ReduceOp::Sum), Mark::replicate()},
            {Mark::partial(ReduceOp::Sum), Mark::replicate(), Mark::partial(ReduceOp::Sum)}};
  auto add = [&](char letter) {
    Mark out = letter == 'k' ? Mark::partial(ReduceOp::Sum) : cut(form.out, letter);
    rows.push_back({out, cut(form.left, letter), cut(form.right, letter)});
  };
  std::string_view letters = form.left == "mk" && form.right == "gkn"   ? "nk"
                             : form.left == "gmk" && form.right == "kn" ? "km"
                             : form.out == "gmn" && form.left == "mk"   ? "nm"
                                                                        : "nmkg";
  for (char letter : letters) add(letter);
  for (Row& row : rows)
    if (site.has(2)) row.push_back(Mark::replicate());
  return rows;
}

Metas grouped_metas(const OpSite& site) {
  Form form = form_of(site);
  const Shape &left = site.shape(0), &right = site.shape(1);
  bool offsets = form.left.size() == 2 || form.right.size() == 2;
  if (offsets != site.has(2))
    throw InputError(
        fmt::format("{}: expected offsets if and only if a matrix has 2 dims", site.op.name));
  if (site.has(3)) throw InputError(fmt::format("{}: there is no rule for a bias", site.op.name));
  auto size = [&](char letter) {
    std::size_t in_left = form.left.find(letter), in_right = form.right.find(letter);
    if (in_left != std::string_view::npos) return left[static_cast<int>(in_left)];
    if (in_right != std::string_view::npos) return right[static_cast<int>(in_right)];
    return site.shape(2)[0];
  };
  std::size_t k_left = form.left.find('k'), k_right = form.right.find('k');
  if (left[static_cast<int>(k_left)] != right[static_cast<int>(k_right)])
    throw InputError(
        fmt::format("{}: [{}] and [{}] do not fit", site.op.name, text(left), text(right)));
  Shape out;
  for (char letter : form.out) out.push_back(size(letter));
  return {TensorMeta{out, dtype_or(site.attributes, site.meta(0).dtype, "out_dtype")}};
}

// Elements in the first rank's shard; a _StridedShard has a part of each of its pieces.
std::int64_t first_part(std::int64_t length, const OpPlacement& placement, std::int32_t ranks) {
  std::int64_t pieces = placement.split_factor, piece = ceil_div(length, pieces), out = 0;
  for (std::int64_t at = 0; at < length; at += piece)
    out += ceil_div(std::min(piece, length - at), ranks);
  return out;
}

// Checks the first rank's shard.
bool has_aligned_rows(const Placing& placing) {
  for (std::size_t input = 0; input < 2; ++input) {
    const TensorMeta& meta = placing.from[input]->meta;
    int last = meta.shape.size() - 1;
    std::int64_t length = meta.shape[last];
    for (std::size_t axis = 0; axis < placing.sizes.size(); ++axis) {
      const OpPlacement& placement = placing.to[input]->at(axis);
      if (placement.is_shard_like() && placement.dim == last)
        length = first_part(length, placement, placing.sizes[axis]);
    }
    if (length * size_bytes(meta.dtype) % 16 != 0) return false;
  }
  return true;
}

constexpr Rule kGroupedRules[]{
    {"grouped", grouped, grouped_metas, "out_dtype", false, has_aligned_rows},
};

}  // namespace

std::span<const Rule> grouped_rules() { return kGroupedRules; }

}  // namespace reshard
