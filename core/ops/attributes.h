// SPDX-License-Identifier: BSD-3-Clause
// The non-tensor arguments of an operator, by ATen's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reshard {

// One argument: null, a boolean, an integer, a number, a text, or a list of these.
struct OpValue {
  enum class Kind : std::uint8_t { Null, Boolean, Integer, Number, Text, List };
  Kind kind = Kind::Null;
  std::int64_t integer = 0;  // Boolean: 0 or 1
  double number = 0;
  std::string text;
  std::vector<OpValue> list;

  OpValue() = default;
  explicit OpValue(bool value) : kind(Kind::Boolean), integer(value ? 1 : 0) {}
  explicit OpValue(std::int64_t value) : kind(Kind::Integer), integer(value) {}
  explicit OpValue(double value) : kind(Kind::Number), number(value) {}
  explicit OpValue(std::string value) : kind(Kind::Text), text(std::move(value)) {}
  explicit OpValue(const char* value) : OpValue(std::string(value)) {}  // literals are not bools
  explicit OpValue(std::vector<OpValue> values) : kind(Kind::List), list(std::move(values)) {}
  explicit OpValue(const std::vector<std::int64_t>& values);
  bool is_null() const { return kind == Kind::Null; }
  friend bool operator==(const OpValue&, const OpValue&) = default;
};
// As JSON.
std::string text(const OpValue& value);

// Values by name; names ascend, each once. A null value counts as absent. The getters of a type
// throw InputError naming the attribute if it is of another type, or absent where they take no
// default. An integer is also a number, a single value also a list of one; a boolean is neither an
// integer nor a number.
class OpAttributes {
 public:
  // Replaces an existing value.
  void set(std::string name, OpValue value);
  void erase(std::string_view name);
  // Null if there is none.
  const OpValue* find(std::string_view name) const;
  bool has(std::string_view name) const {
    const OpValue* value = find(name);
    return value && !value->is_null();
  }

  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t absent) const;
  double number(std::string_view name) const;
  double number(std::string_view name, double absent) const;
  bool boolean(std::string_view name, bool absent) const;
  std::string text(std::string_view name, std::string_view absent) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  std::optional<std::vector<std::int64_t>> optional_integers(std::string_view name) const;
  std::vector<bool> booleans(std::string_view name, std::vector<bool> absent) const;

  const std::vector<std::pair<std::string, OpValue>>& all() const { return values_; }
  friend bool operator==(const OpAttributes&, const OpAttributes&) = default;

 private:
  const OpValue* present(std::string_view name) const;
  std::vector<std::pair<std::string, OpValue>> values_;
};

}  // namespace reshard
