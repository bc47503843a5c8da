// SPDX-License-Identifier: BSD-3-Clause
// Lines of a trace that work on named tensors: a tensor that exists, an operator call, a
// redistribution. What each rank does for them is decided later (sim/dispatch).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/layout/mesh.h"
#include "core/ops/operator.h"

namespace reshard::sim {

// Each name that a line gives is a separate value; giving a name again makes a new value.
using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

// The place in the program that a line comes from.
struct TracePlace {
  std::string module, pass = "forward";  // or "backward", "optimizer"
};

struct OperatorLine {
  enum class Kind : std::uint8_t { Tensor, Call, Redistribute };
  Kind kind = Kind::Tensor;
  MeshRef mesh;
  std::vector<ValueId> out;        // kNoValue: not produced
  std::vector<std::string> names;  // of `out`, as the line gives them; "" if not produced
  std::string module, pass = "forward";

  // Kind::Tensor. `below`: integer elements are less than this; `value`: the value of all elements.
  TensorSpec spec;
  std::optional<std::int64_t> below;
  std::optional<double> value;

  // Kind::Call. ATen's name of the operator, and the tensor arguments in the operator's order.
  struct Argument {
    bool is_list = false;
    std::vector<ValueId> values;  // kNoValue: absent
    std::vector<std::string> names = {};
  };
  std::string call;
  std::vector<Argument> in;  // for Kind::Redistribute the one tensor
  OpAttributes attributes;
  bool loss_parallel = false;
  std::optional<std::int64_t> duration_ps;  // on each rank
  // The placements that the line expects of inputs and outputs, as text, "" for none.
  std::optional<std::vector<std::string>> expect_in, expect_out;
  // Shape and dtype that the line expects of each output.
  std::vector<std::optional<TensorMeta>> expect_metas;
  // The value that each output overwrites: an in-place call names its input again.
  std::vector<ValueId> written;
  // Set for a call of an operator without a rule; its result is taken from `expect_out`.
  std::shared_ptr<const Operator> without_rule;

  // Kind::Redistribute.
  OpPlacements to;

  // The call's tensors in order, with lists flattened and absent ones included.
  std::vector<ValueId> flat_in() const;
  std::vector<std::string> flat_names() const;
  // The called operator. Throws InputError if there is none of that name.
  const Operator& op() const { return without_rule ? *without_rule : find_operator(call); }
};

class TraceFields;
class TraceBuilder;

// Reads these lines and keeps track of the names.
class OperatorLineReader {
 public:
  OperatorLineReader(TraceBuilder& builder, const std::map<std::string, MeshRef>& meshes)
      : builder_(builder), meshes_(meshes) {}

  // Null if the line gives neither module nor pass.
  static std::shared_ptr<const TracePlace> read_place(TraceFields& fields,
                                                      const TraceBuilder& builder);

  std::shared_ptr<const OperatorLine> read_tensor(TraceFields& fields);
  std::shared_ptr<const OperatorLine> read_call(TraceFields& fields);
  // A redistribution of a named tensor (with the field `tensor`).
  std::shared_ptr<const OperatorLine> read_redistribute(TraceFields& fields);

 private:
  struct Known {
    ValueId value;
    MeshRef mesh;
    int dims = -1;  // -1: not known before dispatch
  };
  const Known& known(std::string_view key, const std::string& name) const;
  void give(OperatorLine& line, const std::string& name);
  void read_place(TraceFields& fields, OperatorLine& line) const;
  void read_expect(TraceFields& fields, OperatorLine& line) const;
  void read_metas(TraceFields& parts, OperatorLine& line) const;

  TraceBuilder& builder_;
  const std::map<std::string, MeshRef>& meshes_;
  std::map<std::string, Known> known_;
  ValueId next_ = 0;
};

}  // namespace reshard::sim
