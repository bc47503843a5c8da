// SPDX-License-Identifier: BSD-3-Clause
// The rules, in the files in which they are written (*_rules.cpp); a row of a table each.
#pragma once

#include <span>
#include <string_view>

#include "core/ops/operator.h"

namespace reshard {

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

}  // namespace reshard
