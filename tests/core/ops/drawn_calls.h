// SPDX-License-Identifier: BSD-3-Clause
// Random calls of every operator in the catalogue: those that PyTorch answered, with other
// placements, meshes, lengths, dtypes and arguments; many of them are invalid.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/operator.h"
#include "tests/support/prng.h"

namespace reshard::test {

// A call that owns its tensors.
struct DrawnCall {
  struct Argument {
    bool is_list = false;
    std::vector<std::optional<TensorSpec>> tensors;
  };
  const Operator* op = nullptr;
  std::string mesh;
  std::vector<Argument> arguments;
  OpAttributes attributes;
  bool loss_parallel = false;

  // Points into this.
  OpCall call() const;
};
std::string text(const DrawnCall& call);

class CallDrawer {
 public:
  // Reads tests/torch/data.
  CallDrawer();

  // A call of the operator as it stands in the data, or is like one of another operator of its
  // rule.
  DrawnCall usual(Prng& prng, const Operator& op) const;
  // With one thing that is otherwise.
  DrawnCall varied(Prng& prng, DrawnCall call) const;
  // Of an operator that writes to tensors, with those that fit what it makes of the others.
  DrawnCall written(Prng& prng, DrawnCall call) const;

 private:
  OpValue other_value(Prng& prng, const std::string& name, const OpValue* value,
                      std::int64_t size) const;
  void vary_attribute(Prng& prng, DrawnCall& call) const;

  std::map<std::string, std::vector<DrawnCall>, std::less<>> by_name_, by_rule_;
  std::map<std::string, std::vector<OpValue>, std::less<>> values_;  // that attributes have
};

// How a tensor could lie on a mesh of so many axes: partials in one tensor are of one kind, or sums
// and means.
OpPlacements drawn_placements(Prng& prng, const Shape& shape, std::size_t axes);

}  // namespace reshard::test
