// SPDX-License-Identifier: BSD-3-Clause
// Lines of a trace that say what is done to tensors by name: a tensor that is there, an operator's
// call, a redistribution. What they come to on each rank is decided later (sim/dispatch).
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

// Each name that a line gives is a value of its own; one that a later line gives again is another.
using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

// Where of a program a line is.
struct TracePlace {
  std::string module, pass = "forward";  // pass: or "backward", "optimizer"
};

struct OperatorLine {
  enum class Kind : std::uint8_t { Tensor, Call, Redistribute };
  Kind kind = Kind::Tensor;
  MeshRef mesh;
  std::vector<ValueId> out;        // kNoValue: not made
  std::vector<std::string> names;  // of `out` as the line gives them, "" where none is made
  std::string module, pass = "forward";

  // Tensor: how it lies; what integers are below; what all its elements are.
  TensorSpec spec;
  std::optional<std::int64_t> below;
  std::optional<double> value;

  // Call: ATen's name, arguments in the operator's order.
  struct Argument {
    bool is_list = false;
    std::vector<ValueId> values;  // kNoValue: absent
    std::vector<std::string> names = {};
  };
  std::string call;
  std::vector<Argument> in;  // of a redistribution the one tensor
  OpAttributes attributes;
  bool loss_parallel = false;
  std::optional<std::int64_t> duration_ps;  // of each rank
  // Placements as text, "" for none: what must come out, where the line says it.
  std::optional<std::vector<std::string>> expect_in, expect_out;
  // Of what comes out, where the line says it.
  std::vector<std::optional<TensorMeta>> expect_metas;
  // Which value an output is written to: a call in place names its input again.
  std::vector<ValueId> written;
  // A call that no rule is known of, which is taken as it is expected.
  std::shared_ptr<const Operator> without_rule;

  // Redistribute.
  OpPlacements to;

  // The call's tensors, lists in order, absent ones too.
  std::vector<ValueId> flat_in() const;
  std::vector<std::string> flat_names() const;
  // What is called. Throws InputError where there is none of that name.
  const Operator& op() const { return without_rule ? *without_rule : find_operator(call); }
};

class TraceFields;
class TraceBuilder;

// Reads such lines, and remembers names.
class OperatorLineReader {
 public:
  OperatorLineReader(TraceBuilder& builder, const std::map<std::string, MeshRef>& meshes)
      : builder_(builder), meshes_(meshes) {}

  // Null where the line says neither module nor pass.
  static std::shared_ptr<const TracePlace> read_place(TraceFields& fields,
                                                      const TraceBuilder& builder);

  std::shared_ptr<const OperatorLine> read_tensor(TraceFields& fields);
  std::shared_ptr<const OperatorLine> read_call(TraceFields& fields);
  // A redistribution with `tensor`.
  std::shared_ptr<const OperatorLine> read_redistribute(TraceFields& fields);

 private:
  struct Known {
    ValueId value;
    MeshRef mesh;
    int dims = -1;  // -1: not known before it is decided
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
