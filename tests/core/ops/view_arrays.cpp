// SPDX-License-Identifier: BSD-3-Clause
#include "tests/core/ops/view_arrays.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace reshard::test {

namespace {

using Sizes = std::vector<std::int64_t>;

// `from` gives the index in `array` of an index of the output.
IndexArray gathered(const IndexArray& array, const Shape& shape,
                    const std::function<DimVector(const DimVector&)>& from) {
  IndexArray out{shape, {}};
  for (std::int64_t i = 0; i < element_count(shape); ++i) {
    DimVector at = from(index_at(i, shape));
    std::int64_t flat = 0;
    for (int d = 0; d < array.shape.size(); ++d) flat = flat * array.shape[d] + at[d];
    out.values.push_back(array.values.at(to_index(flat)));
  }
  return out;
}

IndexArray reshaped(const IndexArray& array, Sizes sizes) {
  std::int64_t known = 1;
  for (std::int64_t size : sizes)
    if (size >= 0) known *= size;
  Shape shape;
  for (std::int64_t size : sizes)
    shape.push_back(size >= 0 ? size : element_count(array.shape) / known);
  REQUIRE(element_count(shape) == element_count(array.shape));
  return {shape, array.values};
}

IndexArray permuted(const IndexArray& array, const Sizes& dims) {
  Shape shape;
  for (std::int64_t d : dims) shape.push_back(array.shape[static_cast<int>(d)]);
  return gathered(array, shape, [&](const DimVector& at) {
    DimVector from(array.shape.size(), 0);
    for (int d = 0; d < at.size(); ++d) from[static_cast<int>(dims[to_index(d)])] = at[d];
    return from;
  });
}

// Element at[d] of a dim of length n, repeated: at[d] modulo n; new dims in front.
IndexArray wrapped(const IndexArray& array, const Shape& shape) {
  int added = shape.size() - array.shape.size();
  return gathered(array, shape, [&](const DimVector& at) {
    DimVector from(array.shape.size(), 0);
    for (int d = 0; d < from.size(); ++d) from[d] = at[d + added] % array.shape[d];
    return from;
  });
}

std::int64_t from_front(std::int64_t dim, int dims) { return dim < 0 ? dim + dims : dim; }

Sizes identity(int dims) {
  Sizes out(to_index(dims));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

IndexArray counted(const Shape& shape) {
  IndexArray out{shape, std::vector<std::int64_t>(to_index(element_count(shape)))};
  std::iota(out.values.begin(), out.values.end(), 0);
  return out;
}

IndexArray part_of(const IndexArray& whole, const Layout& layout, std::int32_t position) {
  IndexArray out{layout.local_shape(position), {}};
  return gathered(whole, out.shape, [&](const DimVector& at) {
    DimVector from(at.size(), 0);
    for (int d = 0; d < at.size(); ++d)
      for (const Run& run : layout.runs(d, position))
        if (at[d] >= run.local_lo && at[d] < run.local_hi())
          from[d] = run.global_lo + at[d] - run.local_lo;
    return from;
  });
}

IndexArray viewed(std::string_view name, const OpAttributes& attributes, const IndexArray& array) {
  int dims = array.shape.size();
  Sizes sizes(array.shape.begin(), array.shape.end()), order = identity(dims);
  auto dim = [&](const char* key, int of) { return from_front(attributes.integer(key), of); };
  if (name == "view" || name == "view_copy") return reshaped(array, attributes.integers("size"));
  if (name == "ravel") return reshaped(array, {-1});
  if (name == "flatten") {
    auto first = sizes.begin() + dim("start_dim", dims),
         last = sizes.begin() + dim("end_dim", dims);
    *first = std::accumulate(first, last + 1, std::int64_t{1}, std::multiplies<>());
    sizes.erase(first + 1, last + 1);
    return reshaped(array, sizes);
  }
  if (name == "unflatten") {
    auto at = sizes.erase(sizes.begin() + dim("dim", dims));
    Sizes pieces = attributes.integers("sizes");
    sizes.insert(at, pieces.begin(), pieces.end());
    return reshaped(array, sizes);
  }
  if (name == "squeeze") {
    Sizes gone = attributes.integers("dim"), kept;
    for (std::int64_t& d : gone) d = from_front(d, dims);
    for (int d = 0; d < dims; ++d)
      if (sizes[to_index(d)] != 1 || std::count(gone.begin(), gone.end(), d) == 0)
        kept.push_back(sizes[to_index(d)]);
    return reshaped(array, kept);
  }
  if (name == "unsqueeze") {
    sizes.insert(sizes.begin() + dim("dim", dims + 1), 1);
    return reshaped(array, sizes);
  }
  if (name == "permute") {
    order = attributes.integers("dims");
    for (std::int64_t& d : order) d = from_front(d, dims);
    return permuted(array, order);
  }
  if (name == "transpose") {
    std::swap(order[to_index(dim("dim0", dims))], order[to_index(dim("dim1", dims))]);
    return permuted(array, order);
  }
  if (name == "t") {
    std::reverse(order.begin(), order.end());
    return permuted(array, order);
  }
  if (name == "movedim") {  // one dim
    std::int64_t moved = dim("source", dims);
    order.erase(order.begin() + moved);
    order.insert(order.begin() + dim("destination", dims), moved);
    return permuted(array, order);
  }
  bool expands = name == "expand";
  REQUIRE((expands || name == "repeat"));
  Shape shape;
  Sizes list = attributes.integers(expands ? "size" : "repeats");
  int added = static_cast<int>(list.size()) - dims;
  for (int d = 0; d < static_cast<int>(list.size()); ++d) {
    std::int64_t length = d < added ? 1 : array.shape[d - added], number = list[to_index(d)];
    if (expands && number >= 0 && number != length) REQUIRE(length == 1);
    shape.push_back(!expands ? length * number : number < 0 ? length : number);
  }
  return wrapped(array, shape);
}

}  // namespace reshard::test
