// SPDX-License-Identifier: BSD-3-Clause
// Lines that PyTorch refuses although its rule has a choice, because of other lines or of the names
// of meshes.
//
// Meshes are equal to PyTorch only if their names are equal too. It does not compare tensors in
// lists, nor those given by keyword.
//
// The mask of a look-up in a sharded table is kept in the decision, which calls of equal layouts
// share for the lifetime of the process. A second such look-up with other indices, before the first
// is reduced, finds another mask there and raises; so do two axes that shard the looked-up dim.
// Each reduction releases one look-up's hold on the mask; a further one finds no mask.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/dispatch/choices.h"

namespace reshard::sim {

class TorchRefusals {
 public:
  explicit TorchRefusals(const std::vector<std::shared_ptr<const OperatorLine>>& tensors);

  // Call before the line is decided. Throws InputError.
  void check_meshes(const OperatorLine& op_line) const;
  // Follows the line as decided. Throws InputError; a line that states what PyTorch chose did run
  // there.
  void follow(const DispatchedCall& call);

 private:
  struct Mask {
    std::int64_t holds = 0, line = 0, reduced_line = 0;
    std::int64_t index = -1;  // the value that it was made of
    int axis = -1;
  };

  void check_same_mesh(const OperatorLine& op_line, const std::vector<ValueId>& values) const;
  std::int64_t same_content(ValueId value) const;
  std::string key_of(const DispatchedCall& call) const;
  std::size_t mask_of_call(const DispatchedCall& call);
  void look_up(const DispatchedCall& call, const DispatchedMove& move);
  void reduce(const DispatchedCall& call, const DispatchedMove& move);

  std::map<ValueId, MeshRef> meshes_;
  std::map<ValueId, std::int64_t> content_;  // of values that equal another one or a constant
  std::map<ValueId, std::size_t> pending_;   // index in masks_
  std::vector<Mask> masks_;
  std::map<std::string, std::size_t> by_key_;
};

}  // namespace reshard::sim
