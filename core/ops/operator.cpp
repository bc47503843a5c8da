// SPDX-License-Identifier: BSD-3-Clause
// Reads the catalogue once, finds operators in it, and implements what rules ask about a call.
#include "core/ops/operator.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/printable.h"
#include "core/ops/attributes.h"
#include "core/ops/catalogue/other_names.h"
#include "core/ops/rules/rules.h"
#include "core/ops/views/view_map.h"

namespace reshard {
namespace {

std::vector<std::string_view> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// "self", "weight?", "tensors[]", "indices?[]".
OpTensor tensor_of(std::string_view word) {
  OpTensor out{word};
  if (out.name.ends_with("[]")) {
    out.list = true;
    out.name.remove_suffix(2);
  }
  if (out.name.ends_with("?")) {
    out.optional = true;
    out.name.remove_suffix(1);
  }
  return out;
}

// "add_.Tensor" and "__ilshift__.Scalar" are in place, "__lshift__.Scalar" is not.
bool is_in_place(std::string_view name) {
  std::string_view base = name.substr(0, name.find('.'));
  if (base.starts_with("__")) return base.starts_with("__i");
  return base.ends_with('_');
}

// Reads a row of the catalogue: the word of its rule, its names, and what they share.
void read_row(const std::vector<std::string_view>& words, std::vector<Operator>& out) {
  Operator common;
  std::string_view rule = words[0];
  if (std::size_t at = rule.find('='); at != std::string_view::npos) {
    common.dtype = rule.substr(at + 1);
    rule = rule.substr(0, at);
  }
  if (std::size_t at = rule.find('+'); at != std::string_view::npos) {
    common.partials = rule.substr(at + 1);
    rule = rule.substr(0, at);
  }
  common.is_view = rule == "view";
  common.is_stack = rule == "stack";
  if (!common.is_view && !common.is_stack) common.rule = &find_rule(rule);
  // The list of names continues after a comma.
  std::size_t names_end = 2;
  while (words[names_end - 1].ends_with(',')) ++names_end;
  bool attributes = false;
  for (std::size_t i = names_end; i < words.size(); ++i) {
    if (words[i] == ":=") {
      for (++i; i < words.size(); ++i) common.steps.append(words[i]).append(" ");
    } else if (words[i] == ";") {
      attributes = true;
    } else if (attributes) {
      common.attributes.push_back(words[i]);
    } else {
      common.tensors.push_back(tensor_of(words[i]));
    }
  }
  if (common.rule && rule != "steps") {
    for (std::string_view word : words_of(common.rule->reads, " ")) {
      bool kind_only = word.ends_with(':');
      if (kind_only) word.remove_suffix(1);
      common.reads.push_back({word, kind_only});
    }
  } else {
    for (std::string_view name : common.attributes) common.reads.push_back({name, false});
  }
  std::vector<std::string_view> names;
  for (std::size_t i = 1; i < names_end; ++i)
    for (std::string_view name : words_of(words[i], ",")) names.push_back(name);
  common.row = names.front();
  for (std::string_view name : names) {
    Operator op = common;
    op.writes_out = name.ends_with('>');
    op.name = name.substr(0, name.size() - (op.writes_out ? 1 : 0));
    op.in_place = is_in_place(name);
    // PyTorch takes "__rshift__" for an in-place operator because of its last letter.
    op.keeps_first = op.in_place || name.substr(0, name.find('.')).ends_with('_');
    op.each = name.starts_with("_foreach_") || name.starts_with("_fused_adam") ||
              name.starts_with("_amp_foreach_");
    out.push_back(std::move(op));
  }
}

// Lines that start with a space continue the row above.
std::vector<Operator> read_catalogue() {
  std::vector<Operator> out;
  std::vector<std::string_view> row;
  auto end_row = [&] {
    if (!row.empty()) read_row(row, out);
    row.clear();
  };
  for (std::string_view part : catalogue())
    for (std::string_view line : words_of(part, "\n")) {
      if (!line.starts_with(' ')) end_row();
      for (std::string_view word : words_of(line, " ")) row.push_back(word);
    }
  end_row();
  std::sort(out.begin(), out.end(),
            [](const Operator& a, const Operator& b) { return a.name < b.name; });
  return out;
}

// Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

bool is_number(const OpValue& value) {
  return value.kind == OpValue::Kind::Integer || value.kind == OpValue::Kind::Number ||
         value.kind == OpValue::Kind::Boolean;
}

// The overloads that a name without one can mean, in order of preference.
constexpr std::string_view kUsual[]{
    "",     ".default",       ".Tensor",      ".int",    ".self", ".dim",
    ".src", ".Tensor_Scalar", ".dim_IntList", ".Scalar", ".List", ".correction"};

const Operator* find_exactly(std::string_view name) {
  std::span<const Operator> all = all_operators();
  auto at =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const Operator& op, std::string_view key) { return op.name < key; });
  return at != all.end() && at->name == name ? &*at : nullptr;
}

std::string_view plain_name(std::string_view name) {
  for (std::string_view prefix : {"aten.", "aten::"})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  if (name.ends_with(".default")) name.remove_suffix(8);
  return name;
}

}  // namespace

std::span<const Operator> all_operators() {
  static const std::vector<Operator> operators = read_catalogue();
  return operators;
}

const Operator* known_operator(std::string_view name) {
  std::string_view wanted = plain_name(name);
  for (std::string_view overload : kUsual)
    if (const Operator* op = find_exactly(std::string(wanted) + std::string(overload))) return op;
  std::string usual = usual_name(wanted);
  return usual.empty() ? nullptr : known_operator(usual);
}

const Operator& find_operator(std::string_view name) {
  if (const Operator* op = known_operator(name)) return *op;
  std::string_view wanted = plain_name(name), nearest;
  // A longer text is not a misspelt name, and searching would take long.
  constexpr std::size_t kLongest = 200;
  if (wanted.size() > kLongest)
    throw InputError(fmt::format("operator {} has no sharding rule", quoted(wanted)));
  // A longer name can have more wrong letters and still be the one that was meant.
  std::size_t least = std::max<std::size_t>(2, wanted.size() / 8) + 1;
  for (const Operator& op : all_operators())
    if (std::size_t d = distance(wanted, op.name); d < least && d < wanted.size() / 2) {
      least = d;
      nearest = op.name;
    }
  throw InputError(fmt::format(
      "operator {} has no sharding rule{}", printable(wanted),
      nearest.empty() ? std::string() : fmt::format("; the nearest that has one is {}", nearest)));
}

Operator operator_without_rule(std::string_view name) {
  Operator out;
  out.name = plain_name(name);
  // By ATen's naming convention.
  out.in_place = out.name.substr(0, out.name.find('.')).ends_with('_');
  return out;
}

void check_attributes(const Operator& op, const OpAttributes& attributes) {
  for (const auto& given : attributes.all()) {
    const std::string& name = given.first;
    // A number can be passed for a tensor.
    auto is_named = [&](const auto& list, auto name_of) {
      return std::any_of(list.begin(), list.end(),
                         [&](const auto& each) { return name_of(each) == name; });
    };
    if (is_named(op.attributes, [](std::string_view each) { return each; }) ||
        (is_number(given.second) &&
         is_named(op.tensors, [](const OpTensor& each) { return each.name; })))
      continue;
    std::string known;
    for (std::string_view attribute : op.attributes)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", attribute);
    throw InputError(fmt::format("{} has no argument {}; it has {}", op.name, name,
                                 known.empty() ? "tensors only" : known));
  }
}

// ---- what rules ask about a call

bool is_even(const Placing& placing, std::size_t input, int dim) {
  std::int64_t parts = 1;
  for (std::size_t axis = 0; axis < placing.sizes.size(); ++axis) {
    const OpPlacement& placement = placing.to[input]->at(axis);
    if (placement.is_shard_like() && placement.dim == dim)
      parts *= placing.sizes[axis] * placement.split_factor;
  }
  return placing.from[input]->meta.shape[dim] % parts == 0;
}

bool OpSite::has(int argument) const {
  return to_index(argument) < arguments.size() && !arguments[to_index(argument)].tensors.empty() &&
         arguments[to_index(argument)].tensors.front();
}

const TensorMeta& OpSite::meta(int argument) const {
  if (has(argument)) return *arguments[to_index(argument)].tensors.front();
  throw InputError(
      fmt::format("{} needs a tensor {}", op.name, op.tensors[to_index(argument)].name));
}

std::vector<const TensorMeta*> OpSite::inputs() const {
  std::vector<const TensorMeta*> out;
  for (const Argument& argument : arguments)
    for (const TensorMeta* tensor : argument.tensors)
      if (tensor) out.push_back(tensor);
  return out;
}

int OpSite::dim(std::string_view attribute, std::int64_t absent, int dims) const {
  if (dims < 0) dims = shape(0).size();
  return dim_in_range(attributes.integer(attribute, absent), dims, attribute);
}

std::optional<std::vector<int>> OpSite::dims(std::string_view attribute, int dims) const {
  if (dims < 0) dims = shape(0).size();
  std::optional<std::vector<std::int64_t>> list = attributes.optional_integers(attribute);
  if (!list) return std::nullopt;
  std::vector<int> out;
  for (std::int64_t dim : *list) out.push_back(dim_in_range(dim, dims, attribute));
  return out;
}

}  // namespace reshard
