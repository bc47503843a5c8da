// SPDX-License-Identifier: BSD-3-Clause
// Finds the row for an operator's name, overload and form, and runs it.
#include "sim/operators/operators.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "core/base/errors.h"
#include "core/ops/decompositions/steps.h"
#include "sim/operators/complex_numbers.h"
#include "sim/operators/operator_row.h"
#include "sim/operators/pointwise/foreach.h"

namespace reshard::sim {
namespace {

using Table = std::map<std::string_view, const OperatorRow*>;

void add(std::span<const OperatorRow> rows, Table& to) {
  for (const OperatorRow& row : rows) {
    bool is_new = to.emplace(row.name, &row).second;
    RESHARD_CHECK(is_new, std::string(row.name));
  }
}

Table table_of_all() {
  Table out;
  for (std::span<const OperatorRow> rows : {attention_rows(),
                                            batch_norm_rows(),
                                            binning_rows(),
                                            convolution_rows(),
                                            creation_rows(),
                                            cutting_rows(),
                                            embedding_rows(),
                                            indexing_rows(),
                                            joining_rows(),
                                            loss_rows(),
                                            matmul_rows(),
                                            max_pooling_rows(),
                                            norm_rows(),
                                            ordering_rows(),
                                            pointwise_backward_rows(),
                                            pointwise_binary_rows(),
                                            pointwise_ternary_rows(),
                                            pointwise_unary_rows(),
                                            random_rows(),
                                            reduction_rows(),
                                            softmax_rows(),
                                            view_rows()})
    add(rows, out);
  return out;
}

Table& table() {
  static Table all = table_of_all();
  return all;
}

const OperatorRow* row_of(std::string_view base, std::string_view overload) {
  const OperatorRow* exact =
      overload.empty() ? nullptr : find_row(fmt::format("{}.{}", base, overload));
  return exact ? exact : find_row(base);
}

bool drop_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// Whether the overload is that of an out form ("out", "X_out" or one of the irregular names below);
// if so, removes that part of the name.
bool drop_out(std::string_view& overload) {
  if (overload == "out" || overload == "grad_input" || overload == "values" ||
      overload == "unbiased_out") {
    overload = "";
    return true;
  }
  for (std::string_view of_dim : {"dim_max", "dim_min", "dim_values"})
    if (overload == of_dim) {
      overload = "dim";
      return true;
    }
  return drop_suffix(overload, "_out");
}

// "__iand__" is the in-place form of "__and__".
std::string without_i(std::string_view dunder) { return fmt::format("__{}", dunder.substr(3)); }

void expect_writable(const LocalCall& call, const Array& result, const Array& written) {
  bool to_less = (is_real(result.dtype) && !is_real(written.dtype)) ||
                 (result.dtype != DType::Bool && written.dtype == DType::Bool);
  if (to_less)
    call.refuse(fmt::format("expected to write {}, found a tensor of {} to write to",
                            text(result.dtype), text(written.dtype)));
  if (result.shape != written.shape)
    call.refuse(fmt::format("expected to write [{}], found a tensor of [{}] to write to",
                            text(result.shape), text(written.shape)));
}

// Casts the results to the dtypes of the tensors that they are written to: the call's last
// arguments.
void write_out(const LocalCall& call, ArrayResults& made) {
  std::size_t all = call.arguments.size();
  call.expect(all > made.size(), "expected tensors to write to as its last ones");
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Array& written = call.tensor(all - made.size() + i);
    expect_writable(call, made[i].value(), written);
    made[i] = cast(*made[i], written.dtype);
  }
}

// Runs the plain form of the operator; in-place and out forms cast its results to the dtypes of the
// tensors that they are written to.
ArrayResults run_row(const LocalCall& call, bool in_place, bool out) {
  if (in_place) {
    ArrayResults made = call.row->run(call);
    const Array& self = call.tensor(0);
    expect_writable(call, made.at(0).value(), self);
    made[0] = cast(*made[0], self.dtype);
    return made;
  }
  if (!out) return call.row->run(call);
  std::size_t outputs = to_index(call.row->outputs), all = call.arguments.size();
  call.expect(all > outputs, "expected tensors to write to as its last ones");
  LocalCall plain = call;
  plain.arguments = call.arguments.first(all - outputs);
  ArrayResults made = call.row->run(plain);
  write_out(call, made);
  return made;
}

// Runs a decomposed operator step by step.
ArrayResults compute_steps(const Operator& op, std::vector<ArrayArgument> arguments,
                           const OpAttributes& attributes, const RandomStream& random) {
  const std::vector<ArrayArgument> given = arguments;
  if (op.writes_out) arguments.resize(op.tensors.size());
  std::vector<TensorMeta> metas;
  std::vector<const Array*> inputs;
  for (const ArrayArgument& argument : arguments)
    for (const Array* array : argument.arrays)
      if (array) inputs.push_back(array);
  metas.reserve(inputs.size());
  OpSite site{op, {}, attributes};
  for (const ArrayArgument& argument : arguments) {
    OpSite::Argument& tensors = site.arguments.emplace_back();
    for (const Array* array : argument.arrays) {
      if (array) metas.push_back({array->shape, array->dtype});
      tensors.tensors.push_back(array ? &metas.back() : nullptr);
    }
  }
  Steps steps(site);
  std::vector<std::optional<Array>> tensors(to_index(steps.tensors()));
  for (std::size_t i = 0; i < inputs.size(); ++i) tensors[to_index(steps.inputs()[i])] = *inputs[i];
  for (const InnerCall& step : steps.all()) {
    std::vector<ArrayArgument> in;
    for (std::size_t i = 0; i < step.in.size(); ++i) {
      ArrayArgument& argument = in.emplace_back();
      argument.is_list = i < step.op->tensors.size() && step.op->tensors[i].list;
      for (StepTensor tensor : step.in[i])
        argument.arrays.push_back(tensor == kNoTensor ? nullptr : &*tensors[to_index(tensor)]);
    }
    ArrayResults made = compute(step.op->name, in, step.attributes, random);
    for (int i = 0; i < step.outs; ++i)
      tensors[to_index(step.first_out + i)] = std::move(made[to_index(i)]);
  }
  ArrayResults out;
  for (StepTensor output : steps.outputs()) out.push_back(tensors[to_index(output)]);
  if (op.writes_out) write_out({op.name, given, attributes, random, nullptr}, out);
  return out;
}

}  // namespace

void add_operator_rows(std::span<const OperatorRow> rows) { add(rows, table()); }

const OperatorRow* find_row(std::string_view name) {
  auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

std::optional<LocalOperator> find_local_operator(std::string_view name) {
  if (name.starts_with("aten.")) name.remove_prefix(5);
  std::size_t dot = name.find('.');
  std::string_view base = name.substr(0, dot);
  std::string_view overload = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  if (overload == "default") overload = "";
  LocalOperator out;
  auto found = [&](std::string_view of, LocalOperator::Form form) {
    out.row_ = row_of(of, overload);
    out.form_ = form;
    return out.row_ != nullptr;
  };
  using Form = LocalOperator::Form;
  std::string_view written = overload;
  bool is_out = drop_out(written);
  if (!is_out && found(base, Form::Plain)) return out;
  constexpr std::string_view kForeach = "_foreach_";
  if (base.starts_with(kForeach)) {
    out.foreach_ = true;
    base = foreach_base(base.substr(kForeach.size()));
    if (!is_out && found(base, Form::Plain)) return out;
  }
  if (is_out) {
    overload = written;
    if (found(base, Form::Out)) return out;
  }
  std::string_view plain = base;
  if (base.starts_with("__i") && found(without_i(base), Form::InPlace)) return out;
  if (drop_suffix(plain, "_") && found(plain, Form::InPlace)) return out;
  plain = base;
  if (drop_suffix(plain, "_copy") && found(plain, Form::Plain)) return out;
  return std::nullopt;
}

ArrayResults LocalOperator::operator()(const std::vector<ArrayArgument>& arguments,
                                       const OpAttributes& attributes,
                                       const RandomStream& random) const {
  bool in_place = form_ == Form::InPlace, out = form_ == Form::Out;
  LocalCall call{row_->name, arguments, attributes, random, row_};
  if (!foreach_) return run_row(call, in_place, out);
  return for_each_position(call, [&](const LocalCall& one) { return run_row(one, in_place, out); });
}

ArrayResults compute(std::string_view name, const std::vector<ArrayArgument>& arguments,
                     const OpAttributes& attributes, const RandomStream& random) {
  std::optional<LocalOperator> op = find_local_operator(name);
  if (is_complex(name, arguments)) return compute_complex(name, arguments, attributes, random);
  bool of_part = attributes.has(kWholeCount);  // set for steps of a decomposition only
  const Operator* known = op && !of_part ? nullptr : known_operator(name);
  if (known && is_decomposed(*known)) return compute_steps(*known, arguments, attributes, random);
  if (!op)
    throw NotComputed(
        fmt::format("{}: expected an operator that can be computed, found none of "
                    "that name",
                    name));
  return (*op)(arguments, attributes, random);
}

bool computes_itself(std::string_view name) {
  if (find_local_operator(name)) return true;
  constexpr std::array<std::string_view, 4> kOfComplex{"view_as_complex", "view_as_real", "complex",
                                                       "polar"};
  return std::find(kOfComplex.begin(), kOfComplex.end(), name) != kOfComplex.end() ||
         find_row(fmt::format("{}.c64", name));
}

bool computes(std::string_view name) {
  if (computes_itself(name)) return true;
  const Operator* known = known_operator(name);
  return known && is_decomposed(*known);
}

}  // namespace reshard::sim
