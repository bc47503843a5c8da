// SPDX-License-Identifier: BSD-3-Clause
#include "sim/operators/complex_numbers.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "sim/operators/operator_row.h"

namespace reshard::sim {
namespace {

// Real and imaginary part of a tensor, as f32; the latter is zero for a real tensor.
struct Parts {
  Array real, imaginary;
};

Array part_of(const Array& array, std::size_t which) {
  std::vector<double> all = values<double>(as_pairs(array)), out;
  for (std::size_t i = which; i < all.size(); i += 2) out.push_back(all[i]);
  return Array::of(DType::F32, array.shape, out);
}

Parts parts_of(const Array& array) {
  if (array.dtype == DType::C64) return {part_of(array, 0), part_of(array, 1)};
  return {cast(array, DType::F32), Array::zeros(DType::F32, array.shape)};
}

Array joined(const Array& real, const Array& imaginary) {
  std::vector<double> a = values<double>(real), b = values<double>(imaginary), out;
  for (std::size_t i = 0; i < a.size(); ++i) {
    out.push_back(a[i]);
    out.push_back(b[i]);
  }
  Shape shape = real.shape;
  add_dim(shape, 2);
  return as_complex(Array::of(DType::F32, shape, out));
}

// Runs an operator on real tensors.
Array on(std::string_view name, std::vector<const Array*> tensors, OpAttributes attributes = {}) {
  std::vector<ArrayArgument> arguments;
  for (const Array* tensor : tensors) arguments.push_back({false, {tensor}});
  return *compute(name, arguments, attributes, {})[0];
}

Array minus(const Array& a, const Array& b) { return on("sub.Tensor", {&a, &b}); }
Array plus(const Array& a, const Array& b) { return on("add.Tensor", {&a, &b}); }

// A product by a bilinear operator: mul.Tensor, mm, bmm.
Array product(std::string_view name, const Parts& a, const Parts& b) {
  auto by = [&](const Array& x, const Array& y) { return on(name, {&x, &y}); };
  return joined(minus(by(a.real, b.real), by(a.imaginary, b.imaginary)),
                plus(by(a.real, b.imaginary), by(a.imaginary, b.real)));
}

Parts conjugate(const Parts& of) { return {of.real, on("neg", {&of.imaginary})}; }

Array quotient(const Parts& a, const Parts& b) {
  auto square = [](const Array& x) { return on("mul.Tensor", {&x, &x}); };
  Array norm = plus(square(b.real), square(b.imaginary));
  Parts top = parts_of(product("mul.Tensor", a, conjugate(b)));
  return joined(on("div.Tensor", {&top.real, &norm}), on("div.Tensor", {&top.imaginary, &norm}));
}

Array from_polar(const Array& size, const Array& angle) {
  Array cosine = on("cos", {&angle}), sine = on("sin", {&angle});
  return joined(on("mul.Tensor", {&size, &cosine}), on("mul.Tensor", {&size, &sine}));
}

Array complex_of(const Array& real, const Array& imaginary) {
  Array zero = Array::zeros(DType::F32, Shape{});
  // Adding the other one times zero broadcasts both to their common shape.
  Array no_real = on("mul.Tensor", {&real, &zero}), none = on("mul.Tensor", {&imaginary, &zero});
  return joined(plus(real, none), plus(imaginary, no_real));
}

// Operators that work on each part separately, or only move numbers.
constexpr std::array<std::string_view, 42> kByPart{
    "add",       "sub",        "neg",      "clone",           "detach",     "alias",
    "copy",      "view",       "permute",  "expand",          "transpose",  "t",
    "unsqueeze", "squeeze",    "slice",    "select",          "split",      "split_with_sizes",
    "cat",       "stack",      "unbind",   "index_select",    "flip",       "roll",
    "repeat",    "sum",        "mean",     "_unsafe_view",    "contiguous", "slice_backward",
    "narrow",    "zeros_like", "positive", "select_backward", "_to_copy",   "reshape",
    "new_zeros", "index",      "chunk",    "lift_fresh",      "zero",       "cumsum"};

// Adapts the attributes to the additional last dim of pairs: negative dims, sizes, dims of a
// permutation, reductions over all dims.
OpAttributes with_pairs(std::string_view base, OpAttributes attributes, int dims) {
  auto shifted = [](const OpValue& value) {
    return value.integer < 0 ? OpValue(value.integer - 1) : value;
  };
  for (const char* name : {"dim", "dims", "dim0", "dim1"}) {
    const OpValue* found = attributes.find(name);
    if (!found) continue;
    OpValue value = *found;
    if (value.kind == OpValue::Kind::Integer) value = shifted(value);
    for (OpValue& item : value.list) item = shifted(item);
    if (base == "permute") value.list.emplace_back(std::int64_t{dims});
    attributes.set(name, std::move(value));
  }
  for (const char* name : {"size", "repeats", "shape", "input_sizes"}) {
    const OpValue* found = attributes.find(name);
    if (!found || found->kind != OpValue::Kind::List) continue;
    OpValue value = *found;
    value.list.emplace_back(std::int64_t{std::string_view(name) == "repeats" ? 1 : 2});
    attributes.set(name, std::move(value));
  }
  bool reduces = base == "sum" || base == "mean";
  const OpValue* dim = attributes.find("dim");
  bool all = !dim || dim->is_null() || (dim->kind == OpValue::Kind::List && dim->list.empty());
  if (reduces && all) {
    std::vector<std::int64_t> each;
    for (int d = 0; d < dims; ++d) each.push_back(d);
    attributes.set("dim", OpValue(each));
  }
  attributes.erase("dtype");
  return attributes;
}

ArrayResults by_part(std::string_view name, std::string_view base,
                     const std::vector<ArrayArgument>& arguments, const OpAttributes& attributes,
                     const RandomStream& random) {
  std::vector<Array> pairs;
  std::size_t count = 0;
  for (const ArrayArgument& argument : arguments) count += argument.arrays.size();
  pairs.reserve(count);
  std::vector<ArrayArgument> in;
  int dims = 0;
  bool is_index = base == "index" || base == "index_select";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    ArrayArgument& argument = in.emplace_back();
    argument.is_list = arguments[i].is_list;
    for (const Array* array : arguments[i].arrays) {
      if (array && i == 0) dims = std::max(dims, array->shape.size());
      if (array && !(is_index && i > 0)) {
        bool real = array->dtype != DType::C64;
        Parts parts = real ? parts_of(*array) : Parts{};
        pairs.push_back(as_pairs(real ? joined(parts.real, parts.imaginary) : *array));
        array = &pairs.back();
      }
      argument.arrays.push_back(array);
    }
  }
  std::string_view called = name;
  bool reduces_all = name == "sum" || name == "mean";
  if (reduces_all) called = name == "sum" ? "sum.dim_IntList" : "mean.dim";
  ArrayResults out = compute(called, in, with_pairs(base, attributes, dims), random);
  for (std::optional<Array>& each : out)
    if (each) each = as_complex(*std::move(each));
  return out;
}

}  // namespace

TensorMeta as_pairs(const TensorMeta& meta) {
  if (meta.dtype != DType::C64) return meta;
  TensorMeta out{meta.shape, DType::F32};
  add_dim(out.shape, 2);
  return out;
}

Array as_pairs(Array array) {
  TensorMeta meta = as_pairs(TensorMeta{array.shape, array.dtype});
  array.shape = meta.shape;
  array.dtype = meta.dtype;
  return array;
}

Array as_complex(Array pairs) {
  Shape shape(pairs.shape.size() - 1);
  for (int d = 0; d < shape.size(); ++d) shape[d] = pairs.shape[d];
  pairs.shape = shape;
  pairs.dtype = DType::C64;
  return pairs;
}

bool is_complex(std::string_view name, const std::vector<ArrayArgument>& arguments) {
  if (name == "complex" || name == "polar" || name == "view_as_complex" || name == "_fft_r2c")
    return true;
  for (const ArrayArgument& argument : arguments)
    for (const Array* array : argument.arrays)
      if (array && array->dtype == DType::C64) return true;
  return false;
}

ArrayResults compute_complex(std::string_view name, const std::vector<ArrayArgument>& arguments,
                             const OpAttributes& attributes, const RandomStream& random) {
  std::string_view base = name.substr(0, name.find('.'));
  if (base.size() > 1 && base.ends_with('_')) base.remove_suffix(1);
  auto one = [](Array array) { return ArrayResults{std::move(array)}; };
  auto tensor = [&](std::size_t i) -> const Array& {
    if (i >= arguments.size() || arguments[i].arrays.empty() || !arguments[i].arrays[0])
      throw InputError(fmt::format("{}: expected a tensor as input {}, found none", name, i));
    return *arguments[i].arrays[0];
  };
  // Input i, or the scalar attribute "other" in its place.
  auto operand = [&](std::size_t i) {
    if (i < arguments.size()) return parts_of(tensor(i));
    return parts_of(
        Array::of(DType::F32, Shape{}, std::vector<double>{attributes.number("other")}));
  };
  if (base == "view_as_complex") return one(as_complex(cast(tensor(0), DType::F32)));
  if (base == "view_as_real") return one(as_pairs(tensor(0)));
  if (base == "complex") return one(complex_of(tensor(0), tensor(1)));
  if (base == "polar") return one(from_polar(tensor(0), tensor(1)));
  if (base == "mul") return one(product("mul.Tensor", operand(0), operand(1)));
  if (base == "mm" || base == "bmm") return one(product(base, operand(0), operand(1)));
  if (base == "div" && !attributes.has("rounding_mode"))
    return one(quotient(operand(0), operand(1)));
  if (base == "_conj" || base == "conj_physical") {
    Parts out = conjugate(operand(0));
    return one(joined(out.real, out.imaginary));
  }
  if (base == "abs") {
    Parts of = operand(0);
    return one(on("hypot", {&of.real, &of.imaginary}));
  }
  if (base == "angle") {
    Parts of = operand(0);
    return one(on("atan2", {&of.imaginary, &of.real}));
  }
  if (base == "exp") {
    Parts of = operand(0);
    return one(from_polar(on("exp", {&of.real}), of.imaginary));
  }
  if (base == "reciprocal") {
    Array unit = Array::of(DType::F32, Shape{}, std::vector<double>{1});
    return one(quotient(parts_of(unit), operand(0)));
  }
  if (const OperatorRow* row = find_row(fmt::format("{}.c64", base)))
    return row->run({row->name, arguments, attributes, random, row});
  if (std::find(kByPart.begin(), kByPart.end(), base) != kByPart.end() && !name.ends_with("out"))
    return by_part(name, base, arguments, attributes, random);
  throw NotComputed(fmt::format("{} of complex numbers is not computed", name));
}

}  // namespace reshard::sim
