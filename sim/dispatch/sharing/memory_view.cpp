// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/sharing/memory_view.h"

#include <algorithm>
#include <numeric>

#include "core/base/errors.h"
#include "core/ops/views/view_map.h"

namespace reshard::sim {
namespace {

using Views = std::optional<std::vector<MemoryView>>;
using Outputs = std::vector<std::optional<TensorMeta>>;

int dims_of(const MemoryView& view) { return view.shape.size(); }

int dim_of(const MemoryView& view, std::int64_t dim) {
  return static_cast<int>(dim < 0 ? dim + std::max(dims_of(view), 1) : dim);
}

MemoryView without(const MemoryView& view, int dim) {
  MemoryView out{{}, {}, view.offset, view.item_bytes};
  for (int d = 0; d < dims_of(view); ++d) {
    if (d == dim) continue;
    out.shape.push_back(view.shape[d]);
    out.strides.push_back(view.strides[to_index(d)]);
  }
  return out;
}

// ---- other sizes over the same memory

// Splits runs of neighbouring dims that are contiguous like one dim into the new sizes; none if a
// new dim would span two runs.
std::optional<MemoryView> regrouped(const MemoryView& view, const Shape& sizes) {
  MemoryView out{sizes, std::vector<std::int64_t>(to_index(sizes.size())), view.offset,
                 view.item_bytes};
  if (element_count(sizes) == 0) return out;
  int at = sizes.size() - 1;
  std::int64_t stride = dims_of(view) == 0 ? view.item_bytes : view.strides.back(), run = 1,
               cut = 1;
  for (int d = dims_of(view) - 1; d >= 0; --d) {
    run *= view.shape[d];
    bool ends = d == 0 || (view.shape[d - 1] != 1 && view.strides[to_index(d - 1)] != run * stride);
    if (!ends) continue;
    while (at >= 0 && (cut < run || sizes[at] == 1)) {
      out.strides[to_index(at)] = cut * stride;
      cut *= sizes[at--];
    }
    if (cut != run) return std::nullopt;
    if (d > 0) stride = view.strides[to_index(d - 1)];
    run = cut = 1;
  }
  for (; at >= 0; --at) out.strides[to_index(at)] = view.item_bytes;
  return out;
}

bool is_dense_row_major(const MemoryView& view) {
  std::int64_t stride = view.item_bytes;
  for (int d = dims_of(view); d-- > 0;) {
    if (view.shape[d] != 1 && view.strides[to_index(d)] != stride) return false;
    stride *= view.shape[d];
  }
  return true;
}

bool only_renames(const ViewMap& map) {
  for (int d = 0; d < map.output.size(); ++d)
    if (map.dim(d).kind == ViewDim::Kind::Flatten || map.dim(d).kind == ViewDim::Kind::Split)
      return false;
  return true;
}

Views mapped(std::string_view name, const TensorMeta& meta, const MemoryView& input,
             const OpAttributes& attributes) {
  ViewMap map = view_map(name, meta, attributes);
  if (!only_renames(map)) {
    std::optional<MemoryView> out = regrouped(input, map.output);
    return out ? Views({*out}) : std::nullopt;
  }
  MemoryView out{map.output, {}, input.offset, input.item_bytes};
  for (int d = 0; d < map.output.size(); ++d) {
    const ViewDim& from = map.dim(d);
    bool kept = from.kind == ViewDim::Kind::Input;
    out.strides.push_back(kept ? input.strides[to_index(from.first)] : 0);
  }
  return Views({out});
}

// ---- parts

MemoryView selected(const MemoryView& input, const OpAttributes& attributes) {
  int dim = dim_of(input, attributes.integer("dim", 0));
  std::int64_t index = attributes.integer("index");
  if (index < 0) index += input.shape[dim];
  MemoryView out = without(input, dim);
  out.offset += index * input.strides[to_index(dim)];
  return out;
}

MemoryView sliced(const MemoryView& input, const OpAttributes& attributes, const Shape& shape) {
  MemoryView out = input;
  int dim = dim_of(input, attributes.integer("dim", 0));
  std::int64_t length = input.shape[dim];
  std::int64_t start = attributes.integer("start", 0);
  if (start < 0) start += length;
  start = std::clamp<std::int64_t>(start, 0, length);
  out.shape = shape;
  out.offset += start * input.strides[to_index(dim)];
  out.strides[to_index(dim)] *= attributes.integer("step", 1);
  return out;
}

Views cut_along(const MemoryView& input, const OpAttributes& attributes, bool drops,
                const Outputs& outputs) {
  int dim = dim_of(input, attributes.integer("dim", 0));
  std::vector<MemoryView> out;
  std::int64_t at = 0;
  for (const auto& output : outputs) {
    if (!output) return std::nullopt;
    MemoryView part = drops ? without(input, dim) : input;
    part.offset = input.offset + at * input.strides[to_index(dim)];
    part.shape = output->shape;
    at += drops ? 1 : output->shape[dim];
    out.push_back(std::move(part));
  }
  return out;
}

MemoryView diagonal(const MemoryView& input, const OpAttributes& attributes, const Shape& shape) {
  int dim1 = dim_of(input, attributes.integer("dim1", 0)),
      dim2 = dim_of(input, attributes.integer("dim2", 1));
  std::int64_t by = attributes.integer("offset", 0);
  std::int64_t stride1 = input.strides[to_index(dim1)], stride2 = input.strides[to_index(dim2)];
  MemoryView out = without(without(input, std::max(dim1, dim2)), std::min(dim1, dim2));
  out.offset += by >= 0 ? by * stride2 : -by * stride1;
  out.strides.push_back(stride1 + stride2);
  out.shape = shape;
  return out;
}

// ---- other dtypes over the same memory

MemoryView reread(const MemoryView& input, const TensorMeta& output) {
  MemoryView out = input;
  out.item_bytes = size_bytes(output.dtype);
  if (out.item_bytes != input.item_bytes && dims_of(input) > 0) out.strides.back() = out.item_bytes;
  out.shape = output.shape;
  return out;
}

MemoryView complex_of(const MemoryView& input, const TensorMeta& output) {
  MemoryView out = without(input, dims_of(input) - 1);
  out.item_bytes = size_bytes(output.dtype);
  return out;
}

MemoryView parts_of_complex(const MemoryView& input, const TensorMeta& output, bool imaginary) {
  MemoryView out = input;
  out.item_bytes = size_bytes(output.dtype);
  if (imaginary) out.offset += out.item_bytes;
  if (output.shape.size() > dims_of(input)) out.strides.push_back(out.item_bytes);
  out.shape = output.shape;
  return out;
}

// Operators with a view_map() that copy.
constexpr std::string_view kCopies[]{
    "view_copy", "_reshape_copy", "expand_copy",    "repeat",         "tile",
    "t_copy",    "permute_copy",  "transpose_copy", "unsqueeze_copy", "squeeze_copy"};
constexpr std::string_view kSame[]{"alias",        "detach",     "detach_", "contiguous",
                                   "lift",         "lift_fresh", "data",    "dropout",
                                   "resolve_conj", "resolve_neg"};
constexpr std::string_view kParts[]{"select", "slice",        "narrow",
                                    "split",  "unsafe_split", "split_with_sizes",
                                    "chunk",  "unsafe_chunk", "unsafe_split_with_sizes",
                                    "unbind", "diagonal",     "tensor_split"};
constexpr std::string_view kReread[]{"view_as_complex", "view_as_real", "real", "imag"};

template <std::size_t count>
bool is_one_of(std::string_view name, const std::string_view (&list)[count]) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

std::string_view base_of(std::string_view name) { return name.substr(0, name.find('.')); }

// ---- which bytes

struct Bytes {
  std::int64_t lo, hi;
};
constexpr std::int64_t kMostRuns = 1 << 18;

struct Level {
  std::int64_t stride, count;
};

// Runs of bytes in ascending order, joined; none if there are too many.
std::optional<std::vector<Bytes>> runs_of(const MemoryView& view) {
  std::vector<Bytes> out;
  if (element_count(view.shape) == 0) return out;
  std::vector<Level> levels;
  for (int d = 0; d < dims_of(view); ++d)
    if (view.shape[d] > 1 && view.strides[to_index(d)] != 0)
      levels.push_back({view.strides[to_index(d)], view.shape[d]});
  std::sort(levels.begin(), levels.end(),
            [](const Level& a, const Level& b) { return a.stride < b.stride; });
  std::int64_t length = view.item_bytes;
  std::size_t inner = 0;
  for (; inner < levels.size() && levels[inner].stride <= length; ++inner)
    length += levels[inner].stride * (levels[inner].count - 1);
  std::int64_t count = 1;
  for (std::size_t i = inner; i < levels.size(); ++i) {
    if (levels[i].count > kMostRuns / count) return std::nullopt;
    count *= levels[i].count;
  }
  for (std::int64_t run = 0; run < count; ++run) {
    std::int64_t at = view.offset, rest = run;
    for (std::size_t i = inner; i < levels.size(); ++i) {
      at += rest % levels[i].count * levels[i].stride;
      rest /= levels[i].count;
    }
    out.push_back({at, at + length});
  }
  std::sort(out.begin(), out.end(), [](const Bytes& a, const Bytes& b) { return a.lo < b.lo; });
  return out;
}

Bytes span_of(const MemoryView& view) {
  Bytes out{view.offset, view.offset + view.item_bytes};
  for (int d = 0; d < dims_of(view); ++d) out.hi += view.strides[to_index(d)] * (view.shape[d] - 1);
  return out;
}

}  // namespace

std::int64_t MemoryView::at(const Shape& index) const {
  std::int64_t out = offset;
  for (int d = 0; d < shape.size(); ++d) out += index[d] * strides[to_index(d)];
  return out;
}

MemoryView dense_view(const TensorMeta& meta) {
  MemoryView out{meta.shape, std::vector<std::int64_t>(to_index(meta.shape.size())), 0,
                 size_bytes(meta.dtype)};
  std::int64_t stride = out.item_bytes;
  for (int d = dims_of(out); d-- > 0;) {
    out.strides[to_index(d)] = stride;
    stride *= std::max<std::int64_t>(out.shape[d], 1);
  }
  return out;
}

MemoryView dense_view_like(const TensorMeta& meta, const MemoryView& like) {
  MemoryView out = dense_view(meta);
  if (meta.shape != like.shape) return out;
  std::vector<int> order(to_index(meta.shape.size()));
  std::iota(order.begin(), order.end(), 0);
  auto stride = [&](int d) { return like.strides[to_index(d)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return stride(a) > stride(b); });
  std::int64_t dense = like.item_bytes, own = out.item_bytes;
  std::vector<std::int64_t> strides = out.strides;
  for (std::size_t i = order.size(); i-- > 0;) {
    std::int64_t size = meta.shape[order[i]];
    if (size != 1 && stride(order[i]) != dense) return out;
    strides[to_index(order[i])] = own;
    dense *= std::max<std::int64_t>(size, 1);
    own *= std::max<std::int64_t>(size, 1);
  }
  out.strides = std::move(strides);
  return out;
}

bool may_share_memory(std::string_view name) {
  std::string_view base = base_of(name);
  if (name == "view.dtype" || is_one_of(base, kReread)) return true;
  return (is_view(name) && !is_one_of(base, kCopies)) || is_one_of(base, kSame) ||
         is_one_of(base, kParts);
}

Views views_of(std::string_view name, const TensorMeta& meta, const MemoryView& input,
               const OpAttributes& attributes, const Outputs& outputs) {
  std::string_view base = base_of(name);
  if (!may_share_memory(name) || outputs.empty() || !outputs[0]) return std::nullopt;
  const Shape& shape = outputs[0]->shape;
  if (name == "view.dtype") return Views({reread(input, *outputs[0])});
  if (base == "view_as_complex") return Views({complex_of(input, *outputs[0])});
  if (is_one_of(base, kReread))
    return Views({parts_of_complex(input, *outputs[0], base == "imag")});
  if (base == "contiguous" && !is_dense_row_major(input)) return std::nullopt;
  if (is_one_of(base, kSame)) return Views({input});
  if (base == "select") return Views({selected(input, attributes)});
  if (base == "slice" || base == "narrow") return Views({sliced(input, attributes, shape)});
  if (base == "diagonal") return Views({diagonal(input, attributes, shape)});
  if (is_one_of(base, kParts)) return cut_along(input, attributes, base == "unbind", outputs);
  return mapped(name, meta, input, attributes);
}

bool overlap(const MemoryView& a, const MemoryView& b) {
  if (element_count(a.shape) == 0 || element_count(b.shape) == 0) return false;
  Bytes of_a = span_of(a), of_b = span_of(b);
  if (of_a.hi <= of_b.lo || of_b.hi <= of_a.lo) return false;
  std::optional<std::vector<Bytes>> in_a = runs_of(a), in_b = runs_of(b);
  if (!in_a || !in_b) return true;
  for (std::size_t i = 0, j = 0; i < in_a->size() && j < in_b->size();) {
    if ((*in_a)[i].hi <= (*in_b)[j].lo) {
      ++i;
    } else if ((*in_b)[j].hi <= (*in_a)[i].lo) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

bool covers(const MemoryView& outer, const MemoryView& inner) {
  std::optional<std::vector<Bytes>> in = runs_of(inner), out = runs_of(outer);
  if (!in || !out) return false;
  std::size_t at = 0;
  for (Bytes run : *in) {
    while (run.lo < run.hi) {
      while (at < out->size() && (*out)[at].hi <= run.lo) ++at;
      if (at == out->size() || (*out)[at].lo > run.lo) return false;
      run.lo = (*out)[at].hi;
    }
  }
  return true;
}

}  // namespace reshard::sim
