// SPDX-License-Identifier: BSD-3-Clause
#include "tests/core/ops/drawn_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "core/base/errors.h"
#include "core/ops/decision.h"
#include "tests/core/ops/operator_cases.h"

namespace reshard::test {
namespace {

// Of operators that the data do not have.
struct More {
  const char *op, *equation;
  std::vector<std::pair<Shape, const char*>> list;
};
const More kMore[]{{"einsum", "ij,jk->ik", {{{8, 4}, "S(0)"}, {{4, 6}, "R"}}},
                   {"einsum", "bij,bjk", {{{8, 4, 5}, "R"}, {{8, 5, 6}, "S(1)"}}},
                   {"einsum", "ij->ji", {{{8, 4}, "P(sum)"}}}};

std::size_t axes_of(const std::string& mesh) {
  return static_cast<std::size_t>(std::count(mesh.begin(), mesh.end(), 'x')) + 1;
}

DrawnCall owned(const OperatorCase& from) {
  DrawnCall out;
  out.op = from.call.op;
  out.mesh = from.mesh;
  out.attributes = from.call.attributes;
  out.loss_parallel = from.call.loss_parallel;
  for (const OpArgument& argument : from.call.arguments) {
    DrawnCall::Argument& own = out.arguments.emplace_back();
    own.is_list = argument.is_list;
    for (const TensorSpec* tensor : argument.tensors)
      own.tensors.push_back(tensor ? std::optional(*tensor) : std::nullopt);
  }
  return out;
}

// What tells cases apart beside their placements.
std::string shapes_text(const DrawnCall& call) {
  std::string out;
  for (const DrawnCall::Argument& argument : call.arguments)
    for (const auto& tensor : argument.tensors)
      out += tensor ? fmt::format("{}[{}] ", text(tensor->meta.dtype), text(tensor->meta.shape))
                    : "- ";
  for (const auto& [name, value] : call.attributes.all())
    out += fmt::format("{}={} ", name, text(value));
  return out;
}

std::string rule_text(const Operator& op) {
  std::string out = op.rule ? std::string(op.rule->name) : op.is_view ? "view" : "stack";
  for (const OpTensor& tensor : op.tensors) out += tensor.list ? " []" : " .";
  return out;
}

std::vector<TensorSpec*> tensors_of(DrawnCall& call) {
  std::vector<TensorSpec*> out;
  for (DrawnCall::Argument& argument : call.arguments)
    for (auto& tensor : argument.tensors)
      if (tensor) out.push_back(&*tensor);
  return out;
}

std::int64_t other_size(Prng& prng) {
  if (prng.one_in(8)) return prng.pick<std::int64_t>({64, 65, 128, 129, 256, 257, 300});
  return prng.pick<std::int64_t>({0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 16, 24, 32});
}

DType other_dtype(Prng& prng) {
  return prng.pick<DType>({DType::F32, DType::F32, DType::BF16, DType::F16, DType::F64, DType::I64,
                           DType::I64, DType::I32, DType::I8, DType::U8, DType::Bool, DType::C64});
}

void place(Prng& prng, TensorSpec& tensor, std::size_t axes) {
  tensor.placements = drawn_placements(prng, tensor.meta.shape, axes);
  tensor.of_view = has_strided(tensor.placements) && !prng.one_in(3);
}

// Every dim of one length gets another one, in sizes among the arguments, too.
void resize(Prng& prng, DrawnCall& call) {
  std::vector<TensorSpec*> tensors = tensors_of(call);
  if (tensors.empty()) return;
  const Shape& shape = prng.pick(tensors)->meta.shape;
  if (shape.size() == 0) return;
  std::int64_t was = shape[static_cast<int>(prng.below(shape.size()))], is = other_size(prng);
  for (TensorSpec* tensor : tensors)
    for (int d = 0; d < tensor->meta.shape.size(); ++d)
      if (tensor->meta.shape[d] == was) tensor->meta.shape[d] = is;
  OpAttributes changed = call.attributes;
  for (const auto& [name, value] : call.attributes.all()) {
    OpValue other = value;
    for (OpValue& item : other.list)
      if (item.kind == OpValue::Kind::Integer && item.integer == was) item.integer = is;
    if (was > 1) changed.set(name, other);
  }
  call.attributes = changed;
}

// One letter is another one, or more, or gone.
std::string other_equation(Prng& prng, std::string equation) {
  const std::string letters = "abcijkzABYZ,,->> @[`{";
  std::size_t at = to_index(prng.below(std::ssize(equation) + 1));
  std::size_t gone = to_index(prng.below(2)), more = to_index(prng.below(2));
  if (prng.one_in(3)) return equation.substr(0, equation.find("->"));
  equation.replace(at, gone, more, letters[to_index(prng.below(std::ssize(letters)))]);
  return equation;
}

// One dim less or one more, anywhere.
void change_rank(Prng& prng, Shape& shape) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  std::int64_t at = prng.below(std::ssize(sizes) + 1);
  if (at < std::ssize(sizes) && prng.one_in(2)) {
    sizes.erase(sizes.begin() + at);
  } else if (shape.size() < kMaxDims) {
    sizes.insert(sizes.begin() + at, prng.one_in(3) ? 1 : other_size(prng));
  }
  shape = Shape();
  for (std::int64_t size : sizes) shape.push_back(size);
}

// An argument that is there no longer, once more, of the other kind, or a number.
void vary_presence(Prng& prng, DrawnCall& call) {
  if (call.arguments.empty()) return;
  std::size_t at = to_index(prng.below(std::ssize(call.arguments)));
  std::vector<std::optional<TensorSpec>>& tensors = call.arguments[at].tensors;
  bool& is_list = call.arguments[at].is_list;
  std::int64_t form = tensors.empty() ? 1 : prng.below(7);
  if (form == 0) is_list = !is_list;
  if (form == 0 && !is_list) tensors.resize(1);
  if (form == 3 && is_list) tensors.push_back(tensors[0]);
  if (form > 3) tensors.back().reset();
  if (form > 4 && at < call.op->tensors.size())
    call.attributes.set(std::string(call.op->tensors[at].name), OpValue(prng.between(-1, 3)));
  if (form == 1) call.arguments.pop_back();
  if (form == 2) call.arguments.push_back(call.arguments.back());
}

}  // namespace

OpCall DrawnCall::call() const {
  OpCall out{op, {}, attributes, loss_parallel};
  for (const Argument& argument : arguments) {
    OpArgument& own = out.arguments.emplace_back();
    own.is_list = argument.is_list;
    for (const auto& tensor : argument.tensors) own.tensors.push_back(tensor ? &*tensor : nullptr);
  }
  return out;
}

std::string text(const DrawnCall& call) {
  std::string out = fmt::format("{} on {}:", call.op->name, call.mesh);
  for (const DrawnCall::Argument& argument : call.arguments) {
    out += argument.is_list ? " [" : " ";
    for (const auto& tensor : argument.tensors)
      out += tensor ? text(*tensor) + (tensor->of_view ? "v " : " ") : "- ";
    if (argument.is_list) out += "]";
  }
  for (const auto& [name, value] : call.attributes.all())
    out += fmt::format(" {}={}", name, text(value));
  return out + (call.loss_parallel ? " loss_parallel" : "");
}

OpPlacements drawn_placements(Prng& prng, const Shape& shape, std::size_t axes) {
  OpPlacements out(axes);
  ReduceOp op = prng.pick<ReduceOp>({ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Avg,
                                     ReduceOp::Max, ReduceOp::Min, ReduceOp::Product});
  std::int64_t special = prng.below(16);
  for (OpPlacement& placement : out) {
    std::int64_t form = prng.below(20);
    if (form < 5) continue;
    if (form < 9) {
      placement = special == 0   ? OpPlacement::norm_partial(prng.pick<double>({1, 2, 3}))
                  : special == 1 ? OpPlacement::mask_partial(shape, 0)
                                 : OpPlacement::partial(op);
      if (op == ReduceOp::Sum && special > 1 && prng.one_in(4))
        placement = OpPlacement::partial(ReduceOp::Avg);
    } else if (shape.size() > 0) {
      placement = OpPlacement::shard(static_cast<int>(prng.below(shape.size())));
      if (form != 19) continue;
      placement.kind = OpPlacement::Kind::StridedShard;
      placement.split_factor = prng.pick<std::int64_t>({2, 2, 3, 4});
    }
  }
  return out;
}

CallDrawer::CallDrawer() {
  std::set<std::string> known;
  auto add = [&](DrawnCall call) {
    if (!known.insert(call.op->name + shapes_text(call)).second) return;
    for (const auto& [name, value] : call.attributes.all()) {
      std::vector<OpValue>& values = values_[name];
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    by_rule_[rule_text(*call.op)].push_back(call);
    by_name_[call.op->name].push_back(std::move(call));
  };
  for (const char* path :
       {"tests/torch/data/operators.jsonl", "tests/torch/data/operators_apart.jsonl"}) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("{\"call\"")) add(owned(operator_case(line)));
  }
  for (const More& more : kMore) {
    DrawnCall call;
    call.op = &find_operator(more.op);
    call.mesh = "4";
    call.attributes.set("equation", OpValue(more.equation));
    DrawnCall::Argument& argument = call.arguments.emplace_back();
    argument.is_list = true;
    for (const auto& [shape, placement] : more.list)
      argument.tensors.emplace_back(
          TensorSpec{{shape, DType::F32}, parse_op_placements(placement)});
    add(std::move(call));
  }
}

DrawnCall CallDrawer::usual(Prng& prng, const Operator& op) const {
  DrawnCall out;
  if (auto own = by_name_.find(op.name); own != by_name_.end()) {
    out = prng.pick(own->second);
  } else if (auto like = by_rule_.find(rule_text(op)); like != by_rule_.end()) {
    out = prng.pick(like->second);
  } else {
    out.mesh = "4";
    for (const OpTensor& tensor : op.tensors) {
      DrawnCall::Argument& argument = out.arguments.emplace_back();
      argument.is_list = tensor.list;
      Shape shape{4, 8};
      argument.tensors.resize(tensor.list ? 2 : 1, TensorSpec{{shape, DType::F32}, {{}}});
    }
  }
  if (out.op && out.op->writes_out)
    out.arguments.resize(std::min(out.arguments.size(), op.tensors.size()));
  out.op = &op;
  OpAttributes own;
  for (const auto& [name, value] : out.attributes.all())
    if (std::find(op.attributes.begin(), op.attributes.end(), name) != op.attributes.end())
      own.set(name, value);
  out.attributes = own;
  out.loss_parallel = prng.one_in(3);
  return out;
}

DrawnCall CallDrawer::written(Prng& prng, DrawnCall call) const {
  const Operator& op = *call.op;
  auto base = [](const Operator& of) { return of.name.substr(0, of.name.find('.')); };
  auto makes = [&](const Operator& other) {
    return base(other) == base(op) && other.rule == op.rule &&
           other.tensors.size() == op.tensors.size() && other.attributes == op.attributes &&
           other.partials == op.partials && other.dtype == op.dtype && !other.writes_out &&
           !other.keeps_first && other.each == op.each;
  };
  auto all = all_operators();
  auto other = std::find_if(all.begin(), all.end(), makes);
  if (other == all.end()) return call;
  call.arguments.resize(op.tensors.size());
  OpCall made = call.call();
  made.op = &*other;
  std::vector<std::int32_t> sizes = parse_mesh(call.mesh).shape();
  try {
    Decision decision =
        decide(made, sizes, [](const TensorSpec&, const OpPlacements&) { return 0.0; });
    for (auto& output : decision.outputs) {
      DrawnCall::Argument& argument = call.arguments.emplace_back();
      argument.tensors.push_back(output);
      if (output && prng.one_in(3)) place(prng, *argument.tensors[0], sizes.size());
    }
  } catch (const InputError&) {
    // Refused with tensors to write to, too.
  }
  return call;
}

OpValue CallDrawer::other_value(Prng& prng, const std::string& name, const OpValue* value,
                                std::int64_t size) const {
  auto known = values_.find(name);
  if (known != values_.end() && prng.one_in(2)) return prng.pick(known->second);
  std::int64_t form = prng.below(12);
  OpValue out = value ? *value : OpValue();
  if (form == 0 || (!value && form < 6)) {
    return prng.pick<OpValue>({OpValue(), OpValue(true), OpValue(false), OpValue(std::int64_t{0}),
                               OpValue(std::int64_t{1}), OpValue(std::int64_t{-1}), OpValue(0.0),
                               OpValue(1.5), OpValue("inf"), OpValue("f64"), OpValue("sum"),
                               OpValue(std::vector<std::int64_t>{}),
                               OpValue(std::vector<std::int64_t>{1, 2})});
  }
  auto vary_integer = [&](std::int64_t& integer) {
    const std::int64_t near = integer > 1 << 30 ? 4 : integer;  // slices end so
    integer = prng.pick<std::int64_t>(
        {near + 1, near - 1, -near, 0, 1, 2, 3, -1, -2, size, size + 1, -size, -size - 1});
  };
  switch (out.kind) {
    case OpValue::Kind::Boolean:
      out.integer = 1 - out.integer;
      break;
    case OpValue::Kind::Integer:
      if (form == 1) return OpValue(static_cast<double>(out.integer));
      vary_integer(out.integer);
      break;
    case OpValue::Kind::Number:
      out.number = prng.pick<double>({0.0, 0.5, 1.0, 2.0, 3.0, -1.0, 1.5});
      break;
    case OpValue::Kind::Text:
      if (name == "equation") return OpValue(other_equation(prng, out.text));
      return OpValue(prng.pick<std::string>({"mean", "sum", "none", "floor", "trunc", "inf", "-inf",
                                             "nan", "f32", "bf16", "i64", "bool", "tanh", "sum"}));
    case OpValue::Kind::List:
      if (form == 1) std::reverse(out.list.begin(), out.list.end());
      if (form == 2 || out.list.empty()) out.list.emplace_back(prng.between(-1, 4));
      if (form == 3) out.list.pop_back();
      for (OpValue& item : out.list) {
        if (!prng.one_in(2)) continue;
        if (item.kind == OpValue::Kind::Integer) vary_integer(item.integer);
        if (item.kind == OpValue::Kind::Boolean) item.integer = 1 - item.integer;
      }
      break;
    case OpValue::Kind::Null:
      return OpValue(prng.between(-3, 8));
  }
  return out;
}

void CallDrawer::vary_attribute(Prng& prng, DrawnCall& call) const {
  std::vector<std::string> names(call.op->attributes.begin(), call.op->attributes.end());
  std::int64_t form = prng.below(20);
  if (form == 0) names.emplace_back("surplus");
  if (form == 1)
    for (const OpTensor& tensor : call.op->tensors) names.emplace_back(tensor.name);
  if (names.empty()) return;
  const std::string& name = prng.pick(names);
  if (prng.one_in(8)) {
    call.attributes.erase(name);
  } else {
    std::int64_t size = 2;  // numbers are often compared to one
    if (std::vector<TensorSpec*> tensors = tensors_of(call); !tensors.empty())
      if (const Shape& shape = prng.pick(tensors)->meta.shape; shape.size() > 0)
        size = shape[static_cast<int>(prng.below(shape.size()))];
    call.attributes.set(name, other_value(prng, name, call.attributes.find(name), size));
  }
}

DrawnCall CallDrawer::varied(Prng& prng, DrawnCall call) const {
  std::vector<TensorSpec*> tensors = tensors_of(call);
  std::size_t axes = axes_of(call.mesh);
  std::int64_t form = prng.below(tensors.empty() ? 6 : 28);
  if (form < 4) {
    vary_attribute(prng, call);
  } else if (form == 4) {
    vary_presence(prng, call);
  } else if (form == 5) {
    call.loss_parallel = !call.loss_parallel;
  } else if (form < 12) {
    place(prng, *prng.pick(tensors), axes);
  } else if (form < 17) {
    for (TensorSpec* tensor : tensors) place(prng, *tensor, axes);
  } else if (form < 20) {
    call.mesh =
        prng.pick<std::string>({"4", "2", "3", "8", "1", "2x2", "2x3", "4x2", "1x4", "2x2x2"});
    for (TensorSpec* tensor : tensors) place(prng, *tensor, axes_of(call.mesh));
  } else if (form < 24) {
    resize(prng, call);
  } else if (form == 24) {
    Shape& shape = prng.pick(tensors)->meta.shape;
    if (shape.size() > 0) shape[static_cast<int>(prng.below(shape.size()))] = other_size(prng);
  } else if (form == 25) {
    if (prng.one_in(2)) {
      change_rank(prng, prng.pick(tensors)->meta.shape);
    } else {
      std::uint64_t seed = prng.next();
      for (TensorSpec* tensor : tensors) {
        Prng alike(seed);
        change_rank(alike, tensor->meta.shape);
      }
    }
  } else if (prng.one_in(2)) {
    DType dtype = other_dtype(prng);
    for (TensorSpec* tensor : tensors) tensor->meta.dtype = dtype;
  } else {
    prng.pick(tensors)->meta.dtype = other_dtype(prng);
  }
  return call;
}

}  // namespace reshard::test
