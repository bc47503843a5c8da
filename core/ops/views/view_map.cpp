// SPDX-License-Identifier: BSD-3-Clause
// One function per form of view that fills its map, and the table of view operators.
#include "core/ops/views/view_map.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/errors.h"
#include "core/base/integers.h"

namespace reshard {

namespace {

using Sizes = std::vector<std::int64_t>;

// The first of these names that is present: ATen's own, or that of a related operator.
std::string_view one_of(const OpAttributes& attributes, std::vector<std::string_view> names) {
  for (std::string_view name : names)
    if (attributes.has(name)) return name;
  return names.front();
}

// As 0 .. dims - 1; negative dims count from the end.
int dim_of(std::int64_t dim, int dims, std::string_view name) {
  // As in PyTorch, a scalar counts as having one dim.
  std::int64_t range = std::max(dims, 1);
  if (dim < -range || dim >= range)
    throw InputError(fmt::format("attr {}: expected a dim from {} to {}, found {}", name, -range,
                                 range - 1, dim));
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

Sizes dims_of(const OpAttributes& attributes, std::string_view name, int dims) {
  Sizes out = attributes.integers(name);
  for (std::int64_t& dim : out) dim = dim_of(dim, dims, name);
  Sizes sorted = out;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw InputError(fmt::format("attr {}: expected each dim once, found {}", name,
                                 text(*attributes.find(name))));
  return out;
}

ViewDim from_dim(std::int64_t dim, ViewDim::Kind kind = ViewDim::Kind::Input) {
  ViewDim out;
  out.kind = kind;
  out.first = out.last = static_cast<std::int8_t>(dim);
  return out;
}

void keep(ViewMap& map, std::int64_t dim) {
  map.add(from_dim(dim), map.input[static_cast<int>(dim)]);
}

// ---- one function per form, which fills the map's output

void regroup(ViewMap& map, std::string_view name, Sizes sizes) {
  if (sizes.size() > kMaxDims)
    throw NotCovered(
        fmt::format("attr {}: expected at most {} sizes, found {}", name, kMaxDims, sizes.size()));
  auto refuse = [&] {
    throw InputError(
        fmt::format("attr {}: expected sizes of {} elements, those of [{}], found [{}]", name,
                    element_count(map.input), text(map.input), fmt::join(sizes, ",")));
  };
  std::int64_t elements = element_count(map.input), known = 1, inferred = -1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < -1 || (sizes[d] == -1 && inferred >= 0)) refuse();
    if (sizes[d] == -1) {
      inferred = static_cast<std::int64_t>(d);
    } else {
      std::optional<std::int64_t> product = checked_product(known, sizes[d]);
      if (!product) refuse();
      known = *product;
    }
  }
  if (inferred >= 0) {
    if (known == 0 || elements % known != 0) refuse();
    sizes[to_index(inferred)] = elements / known;
  } else if (known != elements) {
    refuse();
  }
  Shape output;
  for (std::int64_t size : sizes) output.push_back(size);
  group_dims(map.input, output, map);
}

void view(ViewMap& map, const OpAttributes& attributes) {
  std::string_view name = one_of(attributes, {"size", "shape"});
  regroup(map, name, attributes.integers(name));
}

void flatten(ViewMap& map, const OpAttributes& attributes) {
  int dims = map.input.size();
  int first = dim_of(attributes.integer("start_dim", 0), dims, "start_dim");
  int last = dim_of(attributes.integer("end_dim", -1), dims, "end_dim");
  if (first > last)
    throw InputError(fmt::format("attr start_dim: expected at most end_dim, which is {}, found {}",
                                 last, first));
  Sizes sizes;
  std::int64_t joined = 1;
  for (int d = 0; d < dims; ++d) {
    if (d >= first && d <= last) joined *= map.input[d];
    if (d == last) sizes.push_back(joined);
    if (d < first || d > last) sizes.push_back(map.input[d]);
  }
  if (dims == 0) sizes = {1};
  regroup(map, "end_dim", sizes);
}

void ravel(ViewMap& map, const OpAttributes&) { regroup(map, "size", {-1}); }

void unflatten(ViewMap& map, const OpAttributes& attributes) {
  std::string_view name = one_of(attributes, {"sizes", "size", "unflattened_size"});
  int dim = dim_of(attributes.integer("dim"), map.input.size(), "dim");
  Sizes sizes, pieces = attributes.integers(name);
  for (int d = 0; d < map.input.size(); ++d) {
    if (d != dim) sizes.push_back(map.input[d]);
    if (d == dim) sizes.insert(sizes.end(), pieces.begin(), pieces.end());
  }
  regroup(map, name, sizes);
  std::int64_t product = 1;
  for (int d = dim; d < dim + static_cast<int>(pieces.size()); ++d) product *= map.output[d];
  if (product != map.input[dim])
    throw InputError(fmt::format("attr {}: expected sizes whose product is {}, found [{}]", name,
                                 map.input[dim], fmt::join(pieces, ",")));
}

void permute(ViewMap& map, const OpAttributes& attributes) {
  Sizes dims = dims_of(attributes, "dims", map.input.size());
  if (dims.size() != to_index(map.input.size()))
    throw InputError(fmt::format("attr dims: expected {} dims, found {}", map.input.size(),
                                 text(*attributes.find("dims"))));
  for (std::int64_t dim : dims) keep(map, dim);
}

void swap_dims(ViewMap& map, std::int64_t a, std::int64_t b) {
  for (int d = 0; d < map.input.size(); ++d) keep(map, d == a ? b : d == b ? a : d);
}

void transpose(ViewMap& map, const OpAttributes& attributes) {
  std::string_view a = one_of(attributes, {"dim0", "axis0"});
  std::string_view b = one_of(attributes, {"dim1", "axis1"});
  swap_dims(map, dim_of(attributes.integer(a), map.input.size(), a),
            dim_of(attributes.integer(b), map.input.size(), b));
}

void t(ViewMap& map, const OpAttributes&) {
  int dims = map.input.size();
  if (dims > 2)
    throw InputError(
        fmt::format("t: expected a tensor of at most 2 dims, found [{}]", text(map.input)));
  swap_dims(map, 0, dims - 1);
}

void as_strided(ViewMap& map, const OpAttributes& attributes) {
  for (int d : strided_order(map.input, attributes)) keep(map, d);
}

void swap_last(ViewMap& map, const OpAttributes&) {
  int dims = map.input.size();
  if (dims < 2)
    throw InputError(
        fmt::format("mT: expected a tensor of at least 2 dims, found [{}]", text(map.input)));
  swap_dims(map, dims - 2, dims - 1);
}

void reverse(ViewMap& map, const OpAttributes&) {
  for (int d = map.input.size() - 1; d >= 0; --d) keep(map, d);
}

void movedim(ViewMap& map, const OpAttributes& attributes) {
  int dims = map.input.size();
  Sizes source = dims_of(attributes, "source", dims);
  Sizes destination = dims_of(attributes, "destination", dims);
  if (source.size() != destination.size())
    throw InputError(fmt::format("attr destination: expected {} dims like source, found {}",
                                 source.size(), destination.size()));
  auto moved = [&](std::int64_t d) { return std::count(source.begin(), source.end(), d) > 0; };
  int next = 0;
  for (int d = 0; d < dims; ++d) {
    auto at = std::find(destination.begin(), destination.end(), d);
    if (at != destination.end()) {
      keep(map, source[to_index(at - destination.begin())]);
    } else {
      while (moved(next)) ++next;
      keep(map, next++);
    }
  }
}

void expand(ViewMap& map, const OpAttributes& attributes) {
  std::string_view name = one_of(attributes, {"size", "shape"});
  Sizes sizes = attributes.integers(name);
  std::int64_t added = static_cast<std::int64_t>(sizes.size()) - map.input.size();
  auto refuse = [&](const char* expected) {
    throw InputError(fmt::format("attr {}: expected {}, to expand [{}], found [{}]", name, expected,
                                 text(map.input), fmt::join(sizes, ",")));
  };
  if (added < 0) refuse("at least as many sizes as dims");
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(sizes.size()); ++d) {
    std::int64_t size = sizes[to_index(d)];
    if (size < (d < added ? 0 : -1)) refuse("sizes of at least 0, or -1 to keep a dim");
    if (d < added) {
      map.add({}, size);
      continue;
    }
    int dim = static_cast<int>(d - added);
    std::int64_t length = map.input[dim];
    if (size != -1 && size != length && length != 1) refuse("a dim longer than 1 to keep its size");
    if (size == -1 || size == length)
      keep(map, dim);
    else
      map.add(from_dim(dim, ViewDim::Kind::Broadcast), size);
  }
}

void repeat_by(ViewMap& map, std::string_view name, const Sizes& times) {
  std::int64_t added = static_cast<std::int64_t>(times.size()) - map.input.size();
  if (added < 0)
    throw InputError(fmt::format("attr {}: expected at least {} numbers, one per dim, found {}",
                                 name, map.input.size(), times.size()));
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(times.size()); ++d) {
    std::int64_t count = times[to_index(d)];
    int dim = static_cast<int>(d - added);
    std::optional<std::int64_t> length;
    if (count >= 0) length = checked_product(d < added ? 1 : map.input[dim], count);
    if (!length)
      throw InputError(
          fmt::format("attr {}: expected counts of at least 0 and at most 2^62 "
                      "elements, found [{}]",
                      name, fmt::join(times, ",")));
    ViewDim from;
    if (d >= added) from = from_dim(dim, count == 1 ? ViewDim::Kind::Input : ViewDim::Kind::Repeat);
    map.add(from, *length);
  }
}

void repeat(ViewMap& map, const OpAttributes& attributes) {
  std::string_view name = one_of(attributes, {"repeats", "size", "sizes"});
  repeat_by(map, name, attributes.integers(name));
}

void tile(ViewMap& map, const OpAttributes& attributes) {
  std::string_view name = one_of(attributes, {"dims", "size"});
  Sizes times = attributes.integers(name);
  while (times.size() < to_index(map.input.size())) times.insert(times.begin(), 1);
  repeat_by(map, name, times);
}

void squeeze(ViewMap& map, const OpAttributes& attributes) {
  bool all = !attributes.has("dim");
  Sizes dims;
  if (!all) dims = dims_of(attributes, "dim", map.input.size());
  for (int d = 0; d < map.input.size(); ++d)
    if (map.input[d] != 1 || (!all && std::count(dims.begin(), dims.end(), d) == 0)) keep(map, d);
}

void unsqueeze(ViewMap& map, const OpAttributes& attributes) {
  int at = dim_of(attributes.integer("dim"), map.input.size() + 1, "dim");
  for (int d = 0; d <= map.input.size(); ++d) {
    if (d == at) map.add({}, 1);
    if (d < map.input.size()) keep(map, d);
  }
}

// Adds dims of length 1 until there are `least`: in front, except that atleast_3d adds one of them
// at the end.
void at_least(ViewMap& map, int least) {
  int missing = std::max(0, least - map.input.size());
  int trailing = least == 3 && missing > 0 ? 1 : 0;
  for (int d = 0; d < missing - trailing; ++d) map.add({}, 1);
  for (int d = 0; d < map.input.size(); ++d) keep(map, d);
  for (int d = 0; d < trailing; ++d) map.add({}, 1);
}

template <int least>
void atleast(ViewMap& map, const OpAttributes&) {
  at_least(map, least);
}

struct ViewOperator {
  std::string_view name;  // without overload
  void (*build)(ViewMap&, const OpAttributes&);
  ViewKind kind;
};

constexpr ViewKind Strict = ViewKind::Strict, Loose = ViewKind::Loose, Rows = ViewKind::Rows;

// flatten, unflatten and ravel are a view where strides allow it, else a copy and an _unsafe_view,
// so they are strict like these. So is reshape, except in inference mode: a call with its name is
// one that dispatch saw, and for that PyTorch has a loose rule. (It has none for _reshape_copy.)
constexpr ViewOperator kOperators[] = {
    {"view", view, Strict},
    {"_unsafe_view", view, Strict},
    {"reshape", view, Loose},
    {"_reshape_alias", view, Strict},
    {"flatten", flatten, Strict},
    {"ravel", ravel, Strict},
    {"unflatten", unflatten, Strict},
    {"squeeze", squeeze, Strict},
    {"squeeze_", squeeze, Strict},
    {"view_copy", view, Loose},
    {"_reshape_copy", view, Loose},
    {"permute", permute, Loose},
    {"as_strided", as_strided, Loose},
    {"transpose", transpose, Loose},
    {"transpose_", transpose, Loose},
    {"swapdims", transpose, Loose},
    {"swapaxes", transpose, Loose},
    {"movedim", movedim, Loose},
    {"moveaxis", movedim, Loose},
    {"mT", swap_last, Loose},
    {"adjoint", swap_last, Loose},
    {"numpy_T", reverse, Loose},
    {"expand", expand, Loose},
    {"expand_copy", expand, Loose},
    {"broadcast_to", expand, Loose},
    {"repeat", repeat, Loose},
    {"tile", tile, Loose},
    {"unsqueeze", unsqueeze, Loose},
    {"unsqueeze_", unsqueeze, Loose},
    {"atleast_1d", atleast<1>, Loose},
    {"atleast_2d", atleast<2>, Loose},
    {"atleast_3d", atleast<3>, Loose},
    {"t", t, Rows},
    {"t_", t, Rows},
    {"t_copy", t, Rows},
    {"permute_copy", permute, Rows},
    {"transpose_copy", transpose, Rows},
    {"unsqueeze_copy", unsqueeze, Rows},
    {"squeeze_copy", squeeze, Rows},
};

const ViewOperator* find_operator(std::string_view name) {
  name = name.substr(0, name.find('.'));
  for (const ViewOperator& row : kOperators)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace

bool is_view(std::string_view name) { return find_operator(name) != nullptr; }

ViewMap view_map(std::string_view name, const TensorMeta& input, const OpAttributes& attributes) {
  const ViewOperator* row = find_operator(name);
  RESHARD_CHECK(row, "an operator that is not a view: " + std::string(name));
  ViewMap map;
  map.kind = row->kind;
  map.input = input.shape;
  row->build(map, attributes);
  return map;
}

LocalView local_view(const ViewMap& map, const Shape& local) {
  Sizes order, times;
  bool repeats = false;
  for (int d = 0; d < map.output.size(); ++d) {
    const ViewDim& dim = map.dim(d);
    if (dim.kind == ViewDim::Kind::Input) order.push_back(dim.first);
    bool repeated = dim.kind == ViewDim::Kind::Repeat;
    repeats = repeats || repeated;
    times.push_back(dim.kind == ViewDim::Kind::New         ? map.output[d]
                    : repeated && map.input[dim.first] > 0 ? map.output[d] / map.input[dim.first]
                                                           : 1);
  }
  LocalView out;
  auto call = [&](const char* name, const char* attribute, const Sizes& list) {
    out.name = name;
    out.attributes.set(attribute, OpValue(list));
  };
  Sizes sizes(local.begin(), local.end());
  if (order.size() == to_index(map.input.size()) && !std::is_sorted(order.begin(), order.end()))
    call("permute", "dims", order);
  else if (element_count(map.input) == element_count(map.output))
    call("view", "size", sizes);
  else if (repeats)
    call("repeat", "repeats", times);
  else
    call("expand", "size", sizes);
  return out;
}

}  // namespace reshard
