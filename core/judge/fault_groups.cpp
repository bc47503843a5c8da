// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/fault_groups.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/sort_once.h"
#include "core/judge/mistakes.h"

namespace reshard {
namespace {

// The distance between where an element belongs and where it comes from. Elements of one tensor
// with equal distances are one finding.
DimVector shift_of(const CopyFault& fault) {
  if (fault.kind != CopyFaultKind::WrongIndex) return {};
  DimVector out = fault.got_lo;
  for (int d = 0; d < out.size(); ++d) out[d] -= fault.box.lo[d];
  return out;
}

auto place_of(const CopyFault& fault) { return std::tuple(fault.to, fault.buffer, fault.box.lo); }

}  // namespace

std::vector<Finding> findings_of(std::vector<CopyFault> faults, const Stored& source,
                                 const Stored& destination) {
  std::stable_sort(faults.begin(), faults.end(), [](const CopyFault& a, const CopyFault& b) {
    return place_of(a) < place_of(b);
  });
  std::map<std::tuple<CopyFaultKind, ModelTensorId, ModelTensorId, DimVector>, Finding> grouped;
  for (CopyFault& fault : faults) {
    Finding& finding = grouped[{fault.kind, fault.tensor, fault.got, shift_of(fault)}];
    finding.kind = fault.kind;
    finding.tensor = fault.tensor;
    finding.got = fault.got;
    finding.elements += fault.elements;
    finding.to.push_back(fault.to);
    if (fault.from != Rank{-1}) finding.from.push_back(fault.from);
    finding.lines.insert(finding.lines.end(), fault.lines.begin(), fault.lines.end());
    finding.faults.push_back(std::move(fault));
  }
  std::vector<Finding> out;
  for (auto& [key, finding] : grouped) {
    sort_once(finding.to);
    sort_once(finding.from);
    sort_once(finding.lines);
    out.push_back(std::move(finding));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Finding& a, const Finding& b) { return a.elements > b.elements; });
  name_mistakes(out, source, destination);
  return out;
}

}  // namespace reshard
