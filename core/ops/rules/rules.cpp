// SPDX-License-Identifier: BSD-3-Clause
// Collects the parts of the catalogue and the tables of rules.
#include "core/ops/rules/rules.h"

#include "core/base/errors.h"

namespace reshard {

std::array<std::string_view, 7> catalogue() {
  return {kPointwiseOperators, kListOperators,       kTensorOperators,   kShapeOperators,
          kImageOperators,     kDecomposedOperators, kCompositeOperators};
}

const Rule& find_rule(std::string_view name) {
  for (std::span<const Rule> rules :
       {pointwise_rules(), matmul_rules(), reduction_rules(), norm_rules(), attention_rules(),
        loss_rules(), lookup_rules(), join_rules(), making_rules(), convolution_rules(),
        rename_rules(), pooling_rules(), batch_norm_rules(), linalg_rules(), grouped_rules(),
        decomposed_rules()})
    for (const Rule& rule : rules)
      if (rule.name == name) return rule;
  throw CheckFailure("the catalogue names an unknown rule: " + std::string(name));
}

}  // namespace reshard
