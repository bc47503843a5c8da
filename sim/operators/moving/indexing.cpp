// SPDX-License-Identifier: BSD-3-Clause
// Operators with index tensors for the elements that are read or written. Each first computes the
// offsets of its elements.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "sim/operators/dtype_limits.h"
#include "sim/operators/moving/shapes.h"
#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"
#include "sim/operators/rearranged.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;
using Offsets = std::vector<std::int64_t>;

Offsets indices(const LocalCall& call, const Array& index, std::int64_t extent,
                bool may_be_negative) {
  if (is_real(index.dtype) || index.dtype == DType::Bool)
    call.refuse(fmt::format("expected an index of integers, found {}", text(index.dtype)));
  Offsets out = values<std::int64_t>(index);
  for (std::int64_t& i : out) {
    if (i < (may_be_negative ? -extent : 0) || i >= extent)
      call.refuse(fmt::format("expected indices below {}, found {}", extent, i));
    if (i < 0) i += extent;
  }
  return out;
}

Array taken(const Array& from, const Shape& shape, const Offsets& offsets) {
  Array out = Array::zeros(from.dtype, shape);
  visit_both(from, out, [&](const auto& elements, auto& to) {
    for (std::size_t i = 0; i < offsets.size(); ++i) to[i] = elements[to_index(offsets[i])];
  });
  return out;
}

// Folds element i of `part` into `whole` at offsets[i]. Both must have the same dtype.
template <class Fold>
Array folded_into(const Array& whole, const Array& part, const Offsets& offsets, Fold fold) {
  return visit_computing(whole.dtype, [&](auto t) {
    using T = decltype(t);
    std::vector<T> out = values<T>(whole), more = values<T>(part);
    for (std::size_t i = 0; i < offsets.size(); ++i)
      out[to_index(offsets[i])] = fold(out[to_index(offsets[i])], more[i]);
    return Array::of(whole.dtype, whole.shape, std::move(out));
  });
}
Array put_into(const Array& whole, const Array& part, const Offsets& offsets, bool adds) {
  if (adds) return folded_into(whole, part, offsets, [](auto a, auto b) { return plus(a, b); });
  return folded_into(whole, part, offsets, [](auto, auto b) { return b; });
}

// Offsets into `shape` for each element of `index`; its values are indices along `dim`.
Offsets offsets_along(const LocalCall& call, const Shape& shape, const Array& index, int dim) {
  if (index.count() == 0) return {};
  bool is_scalar = shape.size() == 0;
  call.expect(std::max(index.shape.size(), 1) == std::max(shape.size(), 1),
              "expected an index of as many dims as the tensor has");
  Offsets places = indices(call, index, is_scalar ? 1 : shape[dim], false);
  if (is_scalar) return places;
  Shape of = index.shape.size() ? index.shape : Shape{1};
  DimVector strides = dense_strides(shape), others = strides;
  for (int d = 0; d < of.size(); ++d)
    call.expect(d == dim || of[d] <= shape[d],
                "expected an index that is no longer than the tensor");
  others[dim] = 0;
  std::size_t i = 0;
  for_each_run(of, others, 0, [&](std::int64_t start, std::int64_t step, std::int64_t count) {
    for (std::int64_t k = 0; k < count; ++k, ++i)
      places[i] = places[i] * strides[dim] + start + k * step;
  });
  return places;
}

ArrayResults gather(const LocalCall& call) {
  const Array &in = call.tensor(0), &index = call.tensor(1);
  int dim = call.dim("dim", 0, in.shape.size());
  return results(taken(in, index.shape, offsets_along(call, in.shape, index, dim)));
}

// The values to scatter, in the shape of the index: from a tensor at least as large, or a scalar.
Array scattered(const LocalCall& call, const Array& self, const Array& index) {
  std::size_t position = 2;
  Term term = term_of(call, "value", position);
  if (term.array) {
    const Array& src = *term.array;
    call.expect(src.shape.size() == index.shape.size(),
                "expected an index of as many dims as the source has");
    for (int d = 0; d < index.shape.size(); ++d)
      call.expect(index.shape[d] <= src.shape[d], "expected an index no longer than the source");
    return cast(viewed(src, index.shape, dense_strides(src.shape)), self.dtype);
  }
  std::size_t count = to_index(index.count());
  if (term.scalar_kind == DType::F64)
    return Array::of(self.dtype, index.shape, std::vector<double>(count, term.number));
  return Array::of(self.dtype, index.shape, std::vector<std::int64_t>(count, term.integer));
}

template <bool kAdds>
ArrayResults scatter(const LocalCall& call) {
  const Array &self = call.tensor(0), &index = call.tensor(1);
  int dim = call.dim("dim", 0, self.shape.size());
  Offsets offsets = offsets_along(call, self.shape, index, dim);
  Array part = scattered(call, self, index);
  std::string reduce = call.attributes.text("reduce", kAdds ? "add" : "");
  call.expect(reduce.empty() || reduce == "add" || reduce == "multiply",
              "expected the reduce \"add\" or \"multiply\" or none");
  if (reduce == "multiply")
    return results(folded_into(self, part, offsets, [](auto a, auto b) { return times(a, b); }));
  return results(put_into(self, part, offsets, reduce == "add"));
}

double floor_or_true_quotient(double a, double b) { return a / b; }
std::int64_t floor_or_true_quotient(std::int64_t a, std::int64_t b) { return floor_division(a, b); }

// Offsets of all elements at the given indices along a dim. Sets `part` to their shape.
Offsets slice_offsets(const LocalCall& call, const Shape& shape, const Array& index, int dim,
                      Shape& part) {
  call.expect(index.shape.size() <= 1, "expected an index of 1 dim");
  bool is_scalar = shape.size() == 0;
  Offsets places = indices(call, index, is_scalar ? 1 : shape[dim], false);
  part = shape;
  if (is_scalar) return places;
  part[dim] = std::ssize(places);
  DimVector strides = dense_strides(shape), at(shape.size(), 0);
  Offsets out;
  if (computable_count(part) == 0) return out;
  do {
    std::int64_t offset = 0;
    for (int d = 0; d < shape.size(); ++d)
      offset += (d == dim ? places[to_index(at[d])] : at[d]) * strides[d];
    out.push_back(offset);
  } while (next_index(at, [&](int d) { return part[d]; }));
  return out;
}

ArrayResults index_select(const LocalCall& call) {
  const Array &in = call.tensor(0), &index = call.tensor(1);
  Shape shape;
  Offsets offsets =
      slice_offsets(call, in.shape, index, call.dim("dim", 0, in.shape.size()), shape);
  return results(taken(in, shape, offsets));
}

ArrayResults index_fill(const LocalCall& call) {
  const Array &in = call.tensor(0), &index = call.tensor(1);
  Shape shape;
  Offsets offsets =
      slice_offsets(call, in.shape, index, call.dim("dim", 0, in.shape.size()), shape);
  std::size_t position = 2;
  Term value = term_of(call, "value", position);
  std::vector<double> number{value.array ? values<double>(*value.array)[0]
                             : value.scalar_kind == DType::F64
                                 ? value.number
                                 : static_cast<double>(value.integer)};
  Array part = broadcast_to(call, Array::of(in.dtype, Shape{}, number), {std::ssize(offsets)});
  return results(put_into(in, part, offsets, false));
}

// The source tensor of an indexed write, and the offset of each of its elements in the first
// tensor.
struct IndexedSource {
  Array part;
  Offsets offsets;
};
IndexedSource indexed_source(const LocalCall& call) {
  const Array &in = call.tensor(0), &index = call.tensor(1);
  Shape shape;
  Offsets offsets =
      slice_offsets(call, in.shape, index, call.dim("dim", 0, in.shape.size()), shape);
  Array part = cast(call.tensor(2), in.dtype);
  call.expect(part.count() == element_count(shape), "expected a source of the indexed shape");
  return {std::move(part), std::move(offsets)};
}

template <bool kAdds>
ArrayResults index_write(const LocalCall& call) {
  const Array& in = call.tensor(0);
  const IndexedSource source = indexed_source(call);
  const Array& part = source.part;
  const Offsets& offsets = source.offsets;
  double alpha = call.number("alpha", 1);
  return results(visit_computing(in.dtype, [&](auto t) {
    auto scale = number_as<decltype(t)>(alpha);
    return folded_into(in, part, offsets, [scale](auto a, auto b) {
      return kAdds ? plus(a, times(static_cast<decltype(b)>(scale), b)) : b;
    });
  }));
}

// Reduces all values that go to one element; with include_self also its previous value.
ArrayResults index_reduce(const LocalCall& call) {
  const Array& in = call.tensor(0);
  const IndexedSource source = indexed_source(call);
  const Array& part = source.part;
  const Offsets& offsets = source.offsets;
  std::string reduce = call.attributes.text("reduce", "");
  call.expect(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
              "expected reduce prod, mean, amax or amin");
  bool include = call.attributes.boolean("include_self", true);
  return results(visit_computing(in.dtype, [&](auto t) {
    using T = decltype(t);
    std::vector<T> out = values<T>(in), more = values<T>(part);
    std::vector<std::int64_t> count(out.size(), include ? 1 : 0);
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      T& to = out[to_index(offsets[i])];
      bool first = count[to_index(offsets[i])]++ == 0;
      to = first              ? more[i]
           : reduce == "prod" ? times(to, more[i])
           : reduce == "mean" ? plus(to, more[i])
           : reduce == "amax" ? larger(to, more[i])
                              : smaller(to, more[i]);
    }
    for (std::size_t i = 0; reduce == "mean" && i < out.size(); ++i)
      if (count[i] > 1) out[i] = floor_or_true_quotient(out[i], static_cast<T>(count[i]));
    return Array::of(in.dtype, in.shape, std::move(out));
  }));
}

// Advanced indexing such as x[i, :, j]. The dims of the index tensors replace the indexed dims if
// those are adjacent; otherwise they come first.
struct Advanced {
  Shape shape;
  Offsets offsets;
};
Advanced advanced(const LocalCall& call, const Array& in, const std::vector<const Array*>& index) {
  int rank = in.shape.size(), count = static_cast<int>(index.size()), first = -1, last = -1;
  call.expect(count <= rank, "expected no more indices than dims");
  Shape common;
  for (int d = 0; d < count; ++d) {
    if (!index[to_index(d)]) continue;
    common = broadcast(call, common, index[to_index(d)]->shape);
    if (first < 0) first = d;
    last = d;
  }
  call.expect(first >= 0, "expected one index at least");
  bool together = true;
  for (int d = first; d <= last; ++d) together = together && index[to_index(d)];
  DimVector strides = dense_strides(in.shape);
  Offsets of_common(to_index(element_count(common)), 0);
  std::vector<std::int64_t> before, after;
  DimVector strides_before, strides_after;
  for (int d = 0; d < rank; ++d) {
    const Array* here = d < count ? index[to_index(d)] : nullptr;
    bool in_front = together && d < first;
    if (!here) {
      (in_front ? before : after).push_back(in.shape[d]);
      (in_front ? strides_before : strides_after).push_back(strides[d]);
      continue;
    }
    Offsets places = indices(call, broadcast_to(call, *here, common), in.shape[d], true);
    for (std::size_t i = 0; i < places.size(); ++i) of_common[i] += places[i] * strides[d];
  }
  std::vector<std::int64_t> sizes = before;
  sizes.insert(sizes.end(), common.begin(), common.end());
  sizes.insert(sizes.end(), after.begin(), after.end());
  Advanced out{shape_of(call, sizes), {}};
  computable_count(out.shape);
  auto each = [](const Shape& shape, const DimVector& by, std::int64_t from, auto&& visit) {
    for_each_run(shape, by, from, [&](std::int64_t at, std::int64_t step, std::int64_t length) {
      for (std::int64_t k = 0; k < length; ++k) visit(at + k * step);
    });
  };
  each(shape_of(call, before), strides_before, 0, [&](std::int64_t start) {
    for (std::int64_t middle : of_common)
      each(shape_of(call, after), strides_after, start + middle,
           [&](std::int64_t at) { out.offsets.push_back(at); });
  });
  return out;
}

ArrayResults index(const LocalCall& call) {
  const Array& in = call.tensor(0);
  Advanced of = advanced(call, in, call.list(1));
  return results(taken(in, of.shape, of.offsets));
}

ArrayResults index_put(const LocalCall& call) {
  const Array &in = call.tensor(0), &put = call.tensor(2);
  Advanced of = advanced(call, in, call.list(1));
  call.expect(put.dtype == in.dtype, "expected values of the tensor's dtype");
  return results(put_into(in, broadcast_to(call, put, of.shape), of.offsets,
                          call.attributes.boolean("accumulate", false)));
}

constexpr std::array kIndexingRows{
    OperatorRow{"gather", gather},
    OperatorRow{"scatter", scatter<false>},
    OperatorRow{"scatter_add", scatter<true>},
    OperatorRow{"index_select", index_select},
    OperatorRow{"index_fill", index_fill},
    OperatorRow{"index_add", index_write<true>},
    OperatorRow{"index_copy", index_write<false>},
    OperatorRow{"index_copy_", index_write<false>},
    OperatorRow{"index_reduce", index_reduce},
    OperatorRow{"index", index},
    OperatorRow{"_unsafe_index", index},
    OperatorRow{"index_put", index_put},
    OperatorRow{"_unsafe_index_put", index_put},
    OperatorRow{"_index_put_impl", index_put},
};

}  // namespace

std::span<const OperatorRow> indexing_rows() { return kIndexingRows; }

}  // namespace reshard::sim
