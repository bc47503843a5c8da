// SPDX-License-Identifier: BSD-3-Clause
// What a decision is made by: the catalogue's rows, the rules that they name, and the operators
// that have none.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/ops/decision.h"
#include "core/ops/operator.h"

namespace reshard {

// The operators, one row each, in the parts in which they are written (catalogue_*.cpp); the rows'
// form is in operator.h. NAMES is a list of forms that have all else in common, `NAME>` one that
// writes to tensors given as out=, which come after the others. A tensor is `name`, `name?` where
// it may be absent, `name[]` a list.

std::array<std::string_view, 7> catalogue();

extern const std::string_view kPointwiseOperators, kListOperators, kTensorOperators,
    kShapeOperators, kImageOperators, kDecomposedOperators, kCompositeOperators;

// The rules, in the files in which they are written (*_rules.cpp); a row of a table each.

// Throws CheckFailure where there is none: the catalogue names only what is there.
const Rule& find_rule(std::string_view name);

std::span<const Rule> pointwise_rules();
std::span<const Rule> matmul_rules();
std::span<const Rule> reduction_rules();
std::span<const Rule> norm_rules();
std::span<const Rule> attention_rules();
std::span<const Rule> loss_rules();
std::span<const Rule> lookup_rules();
std::span<const Rule> join_rules();
std::span<const Rule> making_rules();
std::span<const Rule> convolution_rules();
std::span<const Rule> rename_rules();
std::span<const Rule> pooling_rules();
std::span<const Rule> batch_norm_rules();
std::span<const Rule> linalg_rules();
std::span<const Rule> grouped_rules();
std::span<const Rule> decomposed_rules();

// stack: all tensors lie as what they have in common, axis by axis.
Decision decide_stack(const OpCall& call, std::span<const std::int32_t> sizes,
                      const MoveCost& cost);

// Operators that PyTorch does not choose rows for: handlers work on the shards as they lie and
// communicate themselves. argmax and argmin compare every rank's best; within loss_parallel the
// losses of logits that are cut along the classes are worked out on the cut.
bool is_handled(const OpCall& call);
// Throws InputError for layouts that the handler does not take.
Decision decide_handled(const OpCall& call, std::span<const std::int32_t> sizes,
                        const MoveCost& cost);

}  // namespace reshard
