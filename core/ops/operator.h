// SPDX-License-Identifier: BSD-3-Clause
// Operators: their names and arguments, and each one's rule: which rows of placements are valid on
// one axis, and what the outputs are.
//
// The catalogue (rules.h) has one row per operator:
//
//   RULE[+PARTIALS][=DTYPE]  NAMES  TENSORS ; ATTRIBUTES := STEPS
//
// and a rule is a function that produces rows, a function that produces shapes and dtypes, and the
// attributes that both read: a cached decision depends on these. Only the rule `steps` has STEPS
// (decompositions/written_steps.h). Source: the registrations of PyTorch 2.15
// (torch/distributed/tensor/_ops); where those give wrong values, ours are right and reports
// state it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/call.h"

namespace reshard {

// A row's entry for one tensor on one axis.
struct Mark {
  enum class Kind : std::uint8_t {
    Absent,  // an output that is not produced
    Replicate,
    Shard,       // cut along `dim`, in a way in which an input of the call is cut
    PlainShard,  // cut along `dim` by torch.chunk, however the inputs are cut
    Partial,
    Norm,  // a norm's partial, of order `norm`
    Mask   // the partial of a look-up in argument 0, cut along `dim`
  };
  Kind kind = Kind::Replicate;
  std::int8_t dim = 0;
  ReduceOp op = ReduceOp::Sum;
  double norm = 0;
  bool norm_is_number = false;

  static Mark absent() { return {Kind::Absent}; }
  static Mark replicate() { return {}; }
  static Mark shard(int dim) { return {Kind::Shard, static_cast<std::int8_t>(dim)}; }
  static Mark plain_shard(int dim) { return {Kind::PlainShard, static_cast<std::int8_t>(dim)}; }
  static Mark partial(ReduceOp op) { return {Kind::Partial, 0, op}; }
  static Mark of_norm(double order, bool is_number) {
    return {Kind::Norm, 0, ReduceOp::Sum, order, is_number};
  }
  static Mark mask(int dim) { return {Kind::Mask, static_cast<std::int8_t>(dim)}; }
  friend bool operator==(const Mark&, const Mark&) = default;
};

// The outputs, then the present inputs, with lists expanded.
using Row = std::vector<Mark>;
using Rows = std::vector<Row>;

// A call as rules see it, without a mesh.
struct OpSite {
  struct Argument {
    std::vector<const TensorMeta*> tensors;  // null: absent
  };
  const Operator& op;
  std::vector<Argument> arguments;  // the operator's tensors, except those that out= writes to
  const OpAttributes& attributes;
  std::vector<std::optional<TensorMeta>> outputs = {};  // set once the shapes are known
  // The inputs' placements: PyTorch finds the rows of some operators by trying these.
  std::vector<const TensorSpec*> placed = {};

  bool has(int argument) const;
  // Throws InputError if it is absent.
  const TensorMeta& meta(int argument) const;
  const Shape& shape(int argument) const { return meta(argument).shape; }
  // All that are present.
  std::vector<const TensorMeta*> inputs() const;
  // The dim of argument 0 (or of `dims` dims) that the attribute names, as 0 .. dims - 1. Throws
  // InputError if it is out of range.
  int dim(std::string_view attribute, std::int64_t absent, int dims = -1) const;
  // The same for a list; nullopt if it is absent.
  std::optional<std::vector<int>> dims(std::string_view attribute, int dims = -1) const;
};

// A candidate, for rules that consider all axes together: how each present input is placed and how
// it is wanted.
struct Placing {
  const OpSite& site;
  std::span<const std::int32_t> sizes;  // of the mesh's axes
  std::span<const TensorSpec* const> from;
  std::span<const OpPlacements* const> to;
};
// Whether all axes that would cut `dim` of input `input` cut it evenly.
bool is_even(const Placing& placing, std::size_t input, int dim);

struct TorchChoice;

struct Rule {
  std::string_view name;
  // Rows in PyTorch's order, which decides between equal costs. The row of replicas, which every
  // operator has, can be left out; it is then the first.
  Rows (*rows)(const OpSite& site);
  // Shapes and dtypes of the outputs. Throws InputError for arguments that do not fit.
  std::vector<std::optional<TensorMeta>> (*metas)(const OpSite& site);
  // Attributes that both read, separated by spaces; `NAME:` if only its kind matters.
  std::string_view reads = "";
  // Whether an input that has fewer elements than ranks along a dim may keep its placements.
  bool keeps_uneven = false;
  bool (*allows)(const Placing& placing) = nullptr;  // null: all
  // Where PyTorch is wrong: the rows that it has instead of `rows`, and which of its candidates
  // give right values. Null: `rows`, and all.
  Rows (*torch_rows)(const OpSite& site) = nullptr;
  bool (*is_right)(const Placing& placing) = nullptr;
  // What PyTorch does wrong with a call, in a sentence; empty: nothing (torch_fault.h).
  std::string_view (*fault)(const TorchChoice& choice) = nullptr;
  // Rows that PyTorch lacks, for choices other than PyTorch's own.
  Rows (*more_rows)(const OpSite& site) = nullptr;
};

// An attribute that a rule reads. `kind_only`: it matters only whether it is an integer, a number
// or absent.
struct OpRead {
  std::string_view name;
  bool kind_only = false;
};

struct OpTensor {
  std::string_view name;
  bool optional = false, list = false;
};

struct Operator {
  std::string name;                  // "max.dim"; "add" is its default overload
  const Rule* rule = nullptr;        // null: a view (view_map.h) or a stack
  std::string_view partials, dtype;  // what the catalogue adds to the rule
  std::string steps;                 // written_steps.h
  std::string_view row;              // the first name of its row in the catalogue
  std::vector<OpTensor> tensors;
  std::vector<std::string_view> attributes;
  std::vector<OpRead> reads;  // that decisions depend on; for views all attributes
  bool in_place = false;      // the first tensor is the output
  bool keeps_first = false;   // the output is placed like the first tensor, which does not move
  bool writes_out = false;    // the last tensors are the outputs
  bool each = false;          // for lists: the rule applies to each position
  bool is_view = false;       // view_rule.h
  bool is_stack = false;      // decide_stack in rules.h
};

// Finds an operator by ATen's name, with or without "aten." and the overload: "add.Tensor", or
// "add" for the usual overload. ATen's alternative names work too. Null if there is none.
const Operator* known_operator(std::string_view name);
// Throws InputError, which suggests the nearest name for a misspelt one.
const Operator& find_operator(std::string_view name);
// An operator without a rule; the caller must know its outputs from elsewhere.
Operator operator_without_rule(std::string_view name);
// All operators, by name.
std::span<const Operator> all_operators();

// Throws InputError for an attribute that the operator does not have.
void check_attributes(const Operator& op, const OpAttributes& attributes);

}  // namespace reshard
