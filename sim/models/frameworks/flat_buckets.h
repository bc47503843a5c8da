// SPDX-License-Identifier: BSD-3-Clause
// The buckets of Megatron's distributed optimizer: f32 copies of parameters, flattened, of which
// each data-parallel rank has a contiguous interval (core/optimizer/param_layout.py,
// distrib_optimizer.py).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/side_lines.h"

namespace reshard::sim {

class FlatBuckets {
 public:
  struct Parameter {
    std::string name;       // of a named buffer
    std::int64_t elements;  // per rank
    bool is_alone;          // in a bucket of its own, such as an embedding that stages share
  };
  // Must be called in the order in which a stage registers its parameters.
  void add(Parameter parameter) { parameters_.push_back(std::move(parameter)); }

  // Writes buckets NAME0, NAME1, ...: parameters in reverse order, each beginning at a multiple of
  // 64 elements. A bucket is full when it has at least `most` elements; its end is padded to a
  // multiple of 128 and of the ranks along the axes. `dtype` is as in SideLines::flat_of.
  void write(const std::string& name, const std::vector<std::string>& axes, std::int64_t ranks,
             std::int64_t most, std::string_view dtype, SideLines& lines) const;

 private:
  std::vector<Parameter> parameters_;
};

// The position at which Megatron registers a parameter in its layer, for names such as
// "self_attention.linear_qkv.weight".
int registered_at(std::string_view name);

}  // namespace reshard::sim
