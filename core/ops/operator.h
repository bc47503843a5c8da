// SPDX-License-Identifier: BSD-3-Clause
// Operators: their names and arguments, and the rule of each: which rows of placements are valid on
// one axis, and what comes out.
//
// The catalogue (rules.h) has one row per operator:
//
//   RULE[+PARTIALS][=DTYPE]  NAMES  TENSORS ; ATTRIBUTES := STEPS
//
// and a rule is one function that writes rows, one that says shapes and dtypes, and the attributes
// that they read, which are what a cached decision depends on. STEPS are of the rule `steps` alone
// (decompositions/written_steps.h). Facts: PyTorch 2.15's registrations
// (torch/distributed/tensor/_ops); where they give wrong values, ours are right and say so.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/call.h"

namespace reshard {

// What a row says of one tensor on one axis.
struct Mark {
  enum class Kind : std::uint8_t {
    Absent,  // an output that is not made
    Replicate,
    Shard,       // cut along `dim`, in the way in which an input of the call is cut
    PlainShard,  // cut along `dim` by torch.chunk, whatever the inputs are
    Partial,
    Norm,  // a norm's partial, of order `norm`
    Mask   // a look-up's, in argument 0, whose `dim` is cut
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

// Outputs, then inputs that are there, lists in order.
using Row = std::vector<Mark>;
using Rows = std::vector<Row>;

// A call as rules see it: no placements, no mesh.
struct OpSite {
  struct Argument {
    std::vector<const TensorMeta*> tensors;  // null: absent
  };
  const Operator& op;
  std::vector<Argument> arguments;  // of the operator's tensors, but for those written to by out=
  const OpAttributes& attributes;
  std::vector<std::optional<TensorMeta>> outputs = {};  // once its shapes are known
  // How the inputs lie, for operators whose rows PyTorch finds by trying what they are.
  std::vector<const TensorSpec*> placed = {};

  bool has(int argument) const;
  // It must be there.
  const TensorMeta& meta(int argument) const;
  const Shape& shape(int argument) const { return meta(argument).shape; }
  // All that are there.
  std::vector<const TensorMeta*> inputs() const;
  // A dim of argument 0 (or of `dims` dims) as the attribute says, 0 .. dims - 1; throws InputError
  // for one out of range.
  int dim(std::string_view attribute, std::int64_t absent, int dims = -1) const;
  // The same of a list; nothing where there is none.
  std::optional<std::vector<int>> dims(std::string_view attribute, int dims = -1) const;
};

// A candidate, for rules that look at all axes together: of every input that is there how it lies
// and how it is wanted.
struct Placing {
  const OpSite& site;
  std::span<const std::int32_t> sizes;  // of the mesh's axes
  std::span<const TensorSpec* const> from;
  std::span<const OpPlacements* const> to;
};
// Whether `dim` of input `input` is cut evenly by all axes that would cut it.
bool is_even(const Placing& placing, std::size_t input, int dim);

struct TorchChoice;

struct Rule {
  std::string_view name;
  // Rows in PyTorch's order, which decides between equal costs; the row of replicas, which every
  // operator has, may be left out and then is the first.
  Rows (*rows)(const OpSite& site);
  // Throws InputError where the arguments do not fit.
  std::vector<std::optional<TensorMeta>> (*metas)(const OpSite& site);
  // Attributes that both read, separated by spaces; `NAME:` where only its kind counts.
  std::string_view reads = "";
  // Whether an input that lies unevenly, on fewer elements than ranks, may stay as it lies.
  bool keeps_uneven = false;
  bool (*allows)(const Placing& placing) = nullptr;  // none: all
  // Where PyTorch is wrong: the rows that it has in place of these, and which of its candidates
  // give right values. Left out: these, and all.
  Rows (*torch_rows)(const OpSite& site) = nullptr;
  bool (*is_right)(const Placing& placing) = nullptr;
  // What it does wrong with a call, in a sentence; empty: nothing (torch_fault.h).
  std::string_view (*fault)(const TorchChoice& choice) = nullptr;
  // Rows that PyTorch lacks, for choices that need not be its own.
  Rows (*more_rows)(const OpSite& site) = nullptr;
};

// An attribute that a rule reads, or of which it only asks what it is: an integer, a number, none.
struct OpRead {
  std::string_view name;
  bool kind_only = false;
};

struct OpTensor {
  std::string_view name;
  bool optional = false, list = false;
};

struct Operator {
  std::string name;                  // "max.dim"; without an overload "default"
  const Rule* rule = nullptr;        // none: a view (view_map.h) or a list of others
  std::string_view partials, dtype;  // what the catalogue adds to the rule
  std::string steps;                 // written_steps.h
  std::string_view row;              // the first name of its row in the catalogue
  std::vector<OpTensor> tensors;
  std::vector<std::string_view> attributes;
  std::vector<OpRead> reads;  // what decisions depend on; of views all attributes
  bool in_place = false;      // the first tensor is the output
  bool keeps_first = false;   // the output lies as the first tensor, which does not move
  bool writes_out = false;    // the last tensors are the outputs
  bool each = false;          // of lists: the rule holds position by position
  bool is_view = false;       // view_rule.h
  bool is_stack = false;      // stack_rule.h
};

// By ATen's name without "aten.", with or without an overload: "add.Tensor", "add" where one is
// meant; by another name that ATen has for it, too. Null where there is none.
const Operator* known_operator(std::string_view name);
// Throws InputError, which names another where a letter or two are wrong.
const Operator& find_operator(std::string_view name);
// One that no rule is known of: what it makes is said elsewhere.
Operator operator_without_rule(std::string_view name);
// All, by name.
std::span<const Operator> all_operators();

// Throws InputError for an attribute that the operator does not have.
void check_attributes(const Operator& op, const OpAttributes& attributes);

}  // namespace reshard
