// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch 2.15 does wrong with a call: the sentences that reports show.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/ops/decision.h"

namespace reshard {

// A call as it is decided here and as PyTorch decides it.
struct TorchChoice {
  const OpSite& site;
  std::span<const std::int32_t> sizes;  // of the mesh's axes
  const std::vector<const TensorSpec*>& inputs;
  const Decision& right;
  const Decision& torch;  // equal to `right` where PyTorch's rows are right

  bool differs() const;
  // Whether a present input is wanted in placements other than its own.
  bool moves(std::size_t input) const;
};

// Empty if PyTorch does nothing wrong.
std::string_view torch_fault(const OpSite& site, const std::vector<const TensorSpec*>& inputs,
                             std::span<const std::int32_t> sizes, const MoveCost& cost,
                             const Choosing& choosing, const Decision& right);
// For a call that is refused here although PyTorch runs it. Empty if PyTorch refuses it too.
std::string_view torch_fault_of_refused(const OpSite& site,
                                        const std::vector<const TensorSpec*>& inputs,
                                        std::span<const std::int32_t> sizes, const MoveCost& cost,
                                        const Choosing& choosing);

// The rows of the operator's rule for this choice.
Rows rows_of(const OpSite& site, const Choosing& choosing);

// Whether some rank has no elements of `dim` under these placements.
bool has_empty_shard(const TensorMeta& meta, const OpPlacements& placements, int dim,
                     std::span<const std::int32_t> sizes);

}  // namespace reshard
