// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/attributes.h"

#include <fmt/format.h>

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

}  // namespace reshard
