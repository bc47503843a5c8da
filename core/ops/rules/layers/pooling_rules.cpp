// SPDX-License-Identifier: BSD-3-Clause
// Pooling and resampling: windows span the last dims, which are not cut; batches and channels are
// independent. Linear operators keep sums and averages.
#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/ops/attributes.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"

namespace reshard {
namespace {

using Numbers = std::vector<std::int64_t>;

bool has_part(const OpSite& site, std::string_view part) {
  return site.op.name.find(part) != std::string::npos;
}

// The number of dims that windows span: 2 for "avg_pool2d".
int window_dims(const OpSite& site) {
  for (int dims : {1, 2, 3})
    if (has_part(site, fmt::format("{}d", dims))) return dims;
  throw CheckFailure("a pooling operator without its dims");
}

Numbers per_window_dim(const OpSite& site, std::string_view name, const Numbers& absent) {
  return number_per_dim(site.attributes, name, to_index(window_dims(site)), absent, true);
}

// The number of dims before the window dims: the channels, and a batch before them if there is one.
int outer_dims(const OpSite& site) {
  int outer = site.shape(0).size() - window_dims(site);
  if (outer < 1)
    throw InputError(fmt::format("{}: expected a tensor of {} dims or more, found [{}]",
                                 site.op.name, window_dims(site) + 1, text(site.shape(0))));
  return outer;
}

void cut_all(const OpSite& site, int dim, Rows& rows) {
  rows.emplace_back(site.outputs.size() + site.inputs().size(), Mark::shard(dim));
}

constexpr std::initializer_list<ReduceOp> kLinear{ReduceOp::Sum, ReduceOp::Avg};

// Without a batch, dim 0 is the channels, which are independent too.
Rows pool(const OpSite& site) {
  Rows rows;
  cut_all(site, 0, rows);
  if (has_part(site, "avg")) keep_partials(kLinear, 2, rows);
  if (outer_dims(site) >= 2) cut_all(site, 1, rows);
  return rows;
}

std::int64_t pooled_size(const OpSite& site, std::int64_t size, std::int64_t kernel,
                         std::int64_t stride, std::int64_t padding, std::int64_t dilation) {
  if (kernel < 1 || stride < 1 || dilation < 1 || padding < 0 || padding > kernel / 2)
    throw InputError(
        fmt::format("{}: expected a kernel, stride and dilation of at least 1 and a "
                    "padding of at most half the kernel",
                    site.op.name));
  std::int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
  if (room < 0) throw InputError(fmt::format("{}: the windows do not fit the input", site.op.name));
  bool up = site.attributes.boolean("ceil_mode", false);
  std::int64_t out = (up ? ceil_div(room, stride) : room / stride) + 1;
  // No window starts in the padding at the end.
  return up && (out - 1) * stride >= size + padding ? out - 1 : out;
}

Metas pool_metas(const OpSite& site) {
  TensorMeta out = site.meta(0);
  int outer = outer_dims(site);
  if (has_part(site, "adaptive")) {
    Numbers sizes = per_window_dim(site, "output_size", {});
    for (int d = outer; d < out.shape.size(); ++d) out.shape[d] = sizes[to_index(d - outer)];
  } else {
    Numbers kernel = per_window_dim(site, "kernel_size", {}),
            stride = per_window_dim(site, "stride", kernel),
            padding = per_window_dim(site, "padding", {0}),
            dilation = per_window_dim(site, "dilation", {1});
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      std::int64_t& size = out.shape[outer + static_cast<int>(i)];
      size = pooled_size(site, size, kernel[i], stride[i], padding[i], dilation[i]);
    }
  }
  Metas metas{out};
  if (has_part(site, "max")) metas.emplace_back(TensorMeta{out.shape, DType::I64});
  return metas;
}

// The gradient goes to where the maximum was, which all ranks must know.
Rows max_pool_backward(const OpSite& site) {
  Rows rows;
  cut_all(site, 0, rows);
  if (outer_dims(site) >= 2) cut_all(site, 1, rows);
  for (ReduceOp op : kLinear)
    rows.push_back({Mark::partial(op), Mark::partial(op), Mark::replicate(), Mark::replicate()});
  return rows;
}

// The second tensor is the one that was pooled.
Metas like_second(const OpSite& site) { return {site.meta(1)}; }

Rows batches_and_channels(const OpSite& site) {
  Rows rows;
  for (int dim : {0, 1}) cut_all(site, dim, rows);
  return rows;
}

Metas unpool_metas(const OpSite& site) {
  TensorMeta out = site.meta(0);
  Numbers sizes = per_window_dim(site, "output_size", {});
  for (int d = outer_dims(site), i = 0; d < out.shape.size(); ++d, ++i)
    out.shape[d] = sizes[to_index(i)];
  return {out};
}

Rows resample(const OpSite& site) {
  Rows rows = batches_and_channels(site);
  keep_partials(kLinear, 2, rows);
  return rows;
}

Metas resample_metas(const OpSite& site) {
  TensorMeta out = site.meta(0);
  if (out.shape.size() != window_dims(site) + 2)
    throw InputError(fmt::format("{}: expected a tensor of {} dims, found [{}]", site.op.name,
                                 window_dims(site) + 2, text(out.shape)));
  bool backward = has_part(site, "backward");
  Numbers sizes = site.attributes.integers(backward ? "input_size" : "output_size");
  if (backward && sizes.size() == to_index(out.shape.size()))
    sizes.erase(sizes.begin(), sizes.begin() + 2);
  if (sizes.size() != to_index(window_dims(site)))
    throw InputError(
        fmt::format("{}: expected a size for each of {} dims", site.op.name, window_dims(site)));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1) throw InputError("attr output_size: expected sizes of at least 1");
    out.shape[static_cast<int>(i) + 2] = sizes[i];
  }
  return {out};
}

// Inputs: images, and for each image of the batch where to sample it. Sampling is linear in images.
Rows grid_sample(const OpSite& site) {
  Mark batch = Mark::shard(0);
  if (has_part(site, "backward"))
    return {{site.outputs[0] ? batch : Mark::absent(), batch, batch, batch, batch}};
  Rows rows{{batch, batch, batch}};
  for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg})
    rows.push_back({Mark::partial(op), Mark::partial(op), Mark::replicate()});
  return rows;
}

Metas grid_sample_metas(const OpSite& site) {
  bool backward = has_part(site, "backward");
  const TensorMeta &images = site.meta(backward ? 1 : 0), &grid = site.meta(backward ? 2 : 1);
  int dims = images.shape.size();
  if (dims < 4 || grid.shape.size() != dims || grid.shape[dims - 1] != dims - 2 ||
      grid.shape[0] != images.shape[0])
    throw InputError(fmt::format("{}: expected images and a matching grid, found [{}] and [{}]",
                                 site.op.name, text(images.shape), text(grid.shape)));
  if (backward) {
    bool wanted = site.attributes.booleans("output_mask", {true, true}).at(0);
    return {wanted ? std::optional(images) : std::nullopt, grid};
  }
  TensorMeta out = images;
  for (int d = 2; d < dims; ++d) out.shape[d] = grid.shape[d - 1];
  return {out};
}

constexpr std::string_view kPoolingReads =
    "kernel_size stride padding dilation ceil_mode output_size";
constexpr Rule kPoolingRules[]{
    {"pool", pool, pool_metas, kPoolingReads, true},
    {"max_pool_backward", max_pool_backward, like_second, "", false},
    {"pool_backward", batches_and_channels, like_second, "", false},
    {"unpool", batches_and_channels, unpool_metas, "output_size", false},
    {"grid_sample", grid_sample, grid_sample_metas, "output_mask", false},
    {"resample", resample, resample_metas, "output_size input_size", false},
};

}  // namespace

std::span<const Rule> pooling_rules() { return kPoolingRules; }

}  // namespace reshard
