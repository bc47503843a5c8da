// SPDX-License-Identifier: BSD-3-Clause
// Indices of the first dim, such as those of stacked experts, that are taken for other indices.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/judge/fault_groups.h"
#include "core/judge/patterns/dealt.h"

namespace reshard {

class NumbersOfIndices {
 public:
  // Looks at the first `most` findings only.
  NumbersOfIndices(const std::vector<Finding>& findings, std::size_t most, const Stored& source,
                   const Stored& destination);

  // Each returns the mistake that explains all faults in the finding's tensor; empty if it does
  // not.
  std::string dealt(const Finding& finding) const;
  std::string counted_from_zero(const Finding& finding) const;
  std::string mapped(const Finding& finding) const;

 private:
  struct Indexed {
    std::vector<const CopyFault*> faults;
    bool along_first = true;  // the faults differ along no other dim
  };
  Arrivals arrivals_of(const Indexed& tensor, std::int64_t rows) const;
  std::string dealt(ModelTensorId id, const Indexed& tensor) const;
  std::string counted_from_zero(ModelTensorId id, const Indexed& tensor) const;
  void find_maps();
  std::int64_t divisions(const Stored& side, ModelTensorId tensor) const;

  const Stored &source_, &destination_;
  std::vector<Rank> source_ranks_, ranks_;
  std::map<ModelTensorId, Indexed> tensors_;
  std::map<ModelTensorId, std::string> dealt_, from_zero_, mapped_;
};

}  // namespace reshard
