// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/attributes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/errors.h"

namespace reshard {
namespace {

[[noreturn]] void refuse(std::string_view name, const char* expected, const OpValue* found) {
  throw InputError(fmt::format("attr {}: expected {}, found {}", name, expected,
                               found ? text(*found) : "nothing"));
}

std::int64_t integer_of(std::string_view name, const OpValue& value) {
  if (value.kind != OpValue::Kind::Integer) refuse(name, "an integer", &value);
  return value.integer;
}

double number_of(std::string_view name, const OpValue& value) {
  if (value.kind == OpValue::Kind::Integer) return static_cast<double>(value.integer);
  if (value.kind == OpValue::Kind::Number) return value.number;
  if (value.kind == OpValue::Kind::Text) {
    if (value.text == "inf") return INFINITY;
    if (value.text == "-inf") return -INFINITY;
    if (value.text == "nan") return NAN;
  }
  refuse(name, "a number", &value);
}

bool boolean_of(std::string_view name, const OpValue& value) {
  if (value.kind != OpValue::Kind::Boolean) refuse(name, "true or false", &value);
  return value.integer != 0;
}

template <class T, class Convert>
std::vector<T> list_of(std::string_view name, const OpValue& value, Convert convert) {
  std::vector<T> out;
  if (value.kind != OpValue::Kind::List) {
    out.push_back(convert(name, value));
  } else {
    for (const OpValue& item : value.list) out.push_back(convert(name, item));
  }
  return out;
}

}  // namespace

OpValue::OpValue(const std::vector<std::int64_t>& values) : kind(Kind::List) {
  for (std::int64_t value : values) list.emplace_back(value);
}

std::string text(const OpValue& value) {
  switch (value.kind) {
    case OpValue::Kind::Null:
      return "null";
    case OpValue::Kind::Boolean:
      return value.integer ? "true" : "false";
    case OpValue::Kind::Integer:
      return fmt::format("{}", value.integer);
    case OpValue::Kind::Number:
      return fmt::format("{}", value.number);
    case OpValue::Kind::Text:
      return fmt::format("\"{}\"", value.text);
    case OpValue::Kind::List:
      break;
  }
  std::string out = "[";
  for (const OpValue& item : value.list) {
    if (out.size() > 1) out += ", ";
    out += text(item);
  }
  return out + "]";
}

void OpAttributes::set(std::string name, OpValue value) {
  auto at = std::lower_bound(values_.begin(), values_.end(), name,
                             [](const auto& entry, const auto& key) { return entry.first < key; });
  if (at != values_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    values_.emplace(at, std::move(name), std::move(value));
  }
}

void OpAttributes::erase(std::string_view name) {
  std::erase_if(values_, [&](const auto& entry) { return entry.first == name; });
}

const OpValue* OpAttributes::find(std::string_view name) const {
  for (const auto& [key, value] : values_)
    if (key == name) return &value;
  return nullptr;
}

const OpValue* OpAttributes::present(std::string_view name) const {
  const OpValue* value = find(name);
  return value && !value->is_null() ? value : nullptr;
}

std::int64_t OpAttributes::integer(std::string_view name) const {
  const OpValue* value = present(name);
  if (!value) refuse(name, "an integer", value);
  return integer_of(name, *value);
}

std::int64_t OpAttributes::integer(std::string_view name, std::int64_t absent) const {
  const OpValue* value = present(name);
  return value ? integer_of(name, *value) : absent;
}

double OpAttributes::number(std::string_view name) const {
  const OpValue* value = present(name);
  if (!value) refuse(name, "a number", value);
  return number_of(name, *value);
}

double OpAttributes::number(std::string_view name, double absent) const {
  const OpValue* value = present(name);
  return value ? number_of(name, *value) : absent;
}

bool OpAttributes::boolean(std::string_view name, bool absent) const {
  const OpValue* value = present(name);
  return value ? boolean_of(name, *value) : absent;
}

std::string OpAttributes::text(std::string_view name, std::string_view absent) const {
  const OpValue* value = present(name);
  if (!value) return std::string(absent);
  if (value->kind != OpValue::Kind::Text) refuse(name, "a text", value);
  return value->text;
}

std::vector<std::int64_t> OpAttributes::integers(std::string_view name) const {
  const OpValue* value = present(name);
  if (!value) refuse(name, "a list of integers", value);
  return list_of<std::int64_t>(name, *value, integer_of);
}

std::optional<std::vector<std::int64_t>> OpAttributes::optional_integers(
    std::string_view name) const {
  const OpValue* value = present(name);
  if (!value) return std::nullopt;
  return list_of<std::int64_t>(name, *value, integer_of);
}

std::vector<bool> OpAttributes::booleans(std::string_view name, std::vector<bool> absent) const {
  const OpValue* value = present(name);
  return value ? list_of<bool>(name, *value, boolean_of) : absent;
}

// ---- what more than one side reads

int dim_in_range(std::int64_t dim, int dims, std::string_view attribute) {
  std::int64_t at = dim < 0 ? dim + std::max(dims, 1) : dim;
  if (at < 0 || at >= std::max(dims, 1))
    throw InputError(
        fmt::format("attr {}: dim {} is out of range for {} dims", attribute, dim, dims));
  return static_cast<int>(at);
}

Reduction loss_reduction(const OpAttributes& attributes) {
  std::int64_t reduction = attributes.integer("reduction", 1);
  if (reduction < 0 || reduction > 2)
    throw InputError(
        fmt::format("attr reduction: expected 0 (none), 1 (mean) or 2 (sum), found {}", reduction));
  return static_cast<Reduction>(reduction);
}

std::string_view norm_order_name(const OpAttributes& attributes) {
  return attributes.find("p") ? "p" : "ord";
}
double norm_order(const OpAttributes& attributes) {
  return attributes.number(norm_order_name(attributes), 2.0);
}

std::int64_t index_in_dim(const OpAttributes& attributes, std::int64_t length) {
  std::int64_t index = attributes.integer("index");
  if (index < -length || index >= length)
    throw InputError(fmt::format("attr index: {} is out of range for a dim of {}", index, length));
  return index < 0 ? index + length : index;
}

DimSlice slice_in_dim(const OpAttributes& attributes, std::int64_t length) {
  if (attributes.has("length")) {  // narrow
    std::int64_t start = attributes.integer("start"), count = attributes.integer("length");
    if (start < 0) start += length;
    if (start < 0 || count < 0 || start > length || count > length - start)
      throw InputError(
          fmt::format("attr length: {} from {} on is more than {}", count, start, length));
    return {start, start + count, 1};
  }
  auto clamped = [&](std::string_view name, std::int64_t absent) {
    std::int64_t at = attributes.integer(name, absent);
    return std::clamp<std::int64_t>(at < 0 ? at + length : at, 0, length);
  };
  DimSlice out{clamped("start", 0), clamped("end", length), attributes.integer("step", 1)};
  if (out.step < 1) throw InputError("attr step: expected at least 1");
  out.step = std::min(out.step, length + 1);
  out.end = std::max(out.start, out.end);
  return out;
}

std::vector<std::int64_t> pieces_of(std::int64_t length, std::int64_t size) {
  if (size < 1)
    throw InputError(fmt::format("attr split_size: expected at least 1, found {}", size));
  std::vector<std::int64_t> out;
  for (std::int64_t at = 0; at < length; at += size) out.push_back(std::min(size, length - at));
  if (out.empty()) out.push_back(0);
  return out;
}

std::vector<std::int64_t> number_per_dim(const OpAttributes& attributes, std::string_view name,
                                         std::size_t dims, const std::vector<std::int64_t>& absent,
                                         bool empty_is_absent) {
  std::vector<std::int64_t> out = attributes.optional_integers(name).value_or(absent);
  if (out.empty() && empty_is_absent) out = absent;
  if (out.size() == 1) out.resize(dims, out[0]);
  if (out.size() != dims)
    throw InputError(fmt::format("attr {}: expected {} numbers, found {}", name, dims, out.size()));
  return out;
}

int normalized_dims(const OpAttributes& attributes, const Shape& shape) {
  std::vector<std::int64_t> sizes = attributes.integers("normalized_shape");
  if (std::ssize(sizes) > shape.size() ||
      !std::equal(sizes.rbegin(), sizes.rend(), std::make_reverse_iterator(shape.end())))
    throw InputError(
        fmt::format("attr normalized_shape: expected the last dims of [{}]", text(shape)));
  return static_cast<int>(sizes.size());
}

}  // namespace reshard
