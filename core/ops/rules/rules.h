// SPDX-License-Identifier: BSD-3-Clause
// What decisions are made from: the catalogue's rows, the rules that they name, and functions for
// the operators that have none.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/ops/decision.h"
#include "core/ops/operator.h"

namespace reshard {

// The operators, one per row, in the parts in which they are written (catalogue_*.cpp); operator.h
// gives the form of a row. NAMES is a list of operators that share everything else; `NAME>` writes
// to tensors given as out=, which come after the others. A tensor is `name`, `name?` if it can be
// absent, or `name[]` if it is a list.

std::array<std::string_view, 7> catalogue();

extern const std::string_view kPointwiseOperators, kListOperators, kTensorOperators,
    kShapeOperators, kImageOperators, kDecomposedOperators, kCompositeOperators;

// The rules, one table per file (*_rules.cpp).

// Throws CheckFailure if there is none: the catalogue must name only those that exist.
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

// Dims are named by letters: the dim of this letter is cut; R if there is none.
inline Mark cut(std::string_view letters, char letter) {
  std::size_t at = letters.find(letter);
  return at == std::string_view::npos ? Mark::replicate() : Mark::shard(static_cast<int>(at));
}

// stack: all tensors are brought to the placements that they have in common, axis by axis.
Decision decide_stack(const OpCall& call, std::span<const std::int32_t> sizes,
                      const MoveCost& cost);

// Operators for which PyTorch chooses no rows: handlers work on the shards as they are placed and
// communicate themselves. argmax and argmin compare the best of every rank; inside loss_parallel,
// losses are computed directly on logits that are cut along the classes.
bool is_handled(const OpCall& call);
// Throws InputError for layouts that the handler does not support.
Decision decide_handled(const OpCall& call, std::span<const std::int32_t> sizes,
                        const MoveCost& cost);

}  // namespace reshard
