// SPDX-License-Identifier: BSD-3-Clause
// The non-tensor arguments of an operator, by ATen's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/integers.h"
#include "core/layout/box.h"

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

// ---- attributes that several callers read: rules, decompositions and the code that computes
// values. Each function throws InputError "attr NAME: ..." for a value that does not fit.

// Converts a dim from -dims .. dims - 1 to 0 .. dims - 1; 0 dims count as 1.
int dim_in_range(std::int64_t dim, int dims, std::string_view attribute);

// How the losses of elements are combined: the attribute "reduction".
enum class Reduction : std::int64_t { None = 0, Mean = 1, Sum = 2 };
Reduction loss_reduction(const OpAttributes& attributes);

// The order of a norm: "p", or else "ord"; 2 if both are absent.
std::string_view norm_order_name(const OpAttributes& attributes);
double norm_order(const OpAttributes& attributes);

// "index" in a dim of this length, from 0.
std::int64_t index_in_dim(const OpAttributes& attributes, std::int64_t length);

// "start", "end" and "step" of a slice of a dim of this length: 0 <= start <= end <= length; narrow
// has "start" and "length", which must be within the dim.
struct DimSlice {
  std::int64_t start, end, step;
  std::int64_t count() const { return ceil_div(end - start, step); }
};
DimSlice slice_in_dim(const OpAttributes& attributes, std::int64_t length);

// A dim of this length in pieces of `size`, the last one with the rest; an empty dim is one piece.
std::vector<std::int64_t> pieces_of(std::int64_t length, std::int64_t size);

// One number for each of `dims`; a single one applies to all of them.
std::vector<std::int64_t> number_per_dim(const OpAttributes& attributes, std::string_view name,
                                         std::size_t dims, const std::vector<std::int64_t>& absent,
                                         bool empty_is_absent = false);

// How many dims the attribute "normalized_shape" has; they are the last ones of `shape`.
int normalized_dims(const OpAttributes& attributes, const Shape& shape);

}  // namespace reshard
