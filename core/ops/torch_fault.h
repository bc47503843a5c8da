// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch 2.15 does wrong with a call: the sentences that reports carry.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/ops/decision.h"

namespace reshard {

// A call as it is decided here, and as PyTorch decides it.
struct TorchChoice {
  const OpSite& site;
  std::span<const std::int32_t> sizes;  // of the mesh's axes
  const std::vector<const TensorSpec*>& inputs;
  const Decision& right;
  const Decision& torch;  // the same where PyTorch's rows are right

  bool differs() const;
  // Whether an input that is there is wanted otherwise than it lies.
  bool moves(std::size_t input) const;
};

// Empty where PyTorch does nothing wrong.
std::string_view torch_fault(const OpSite& site, const std::vector<const TensorSpec*>& inputs,
                             std::span<const std::int32_t> sizes, const MoveCost& cost,
                             const Choosing& choosing, const Decision& right);
// Of a call that is refused here, although PyTorch carries it out. Empty where it refuses it, too.
std::string_view torch_fault_of_refused(const OpSite& site,
                                        const std::vector<const TensorSpec*>& inputs,
                                        std::span<const std::int32_t> sizes, const MoveCost& cost,
                                        const Choosing& choosing);

// Rows of the operator's rule for this choice.
Rows rows_of(const OpSite& site, const Choosing& choosing);

// Whether some rank has nothing of `dim` where a tensor lies so.
bool has_empty_shard(const TensorMeta& meta, const OpPlacements& placements, int dim,
                     std::span<const std::int32_t> sizes);

}  // namespace reshard
