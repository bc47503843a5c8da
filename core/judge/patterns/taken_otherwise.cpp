// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/patterns/taken_otherwise.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/judge/locations.h"

namespace reshard {
namespace {

bool is_wrong(const Finding& finding) {
  return finding.got != ModelTensorId{-1} &&
         (finding.kind == CopyFaultKind::WrongIndex || finding.kind == CopyFaultKind::WrongTensor ||
          finding.kind == CopyFaultKind::WrongDtype);
}

}  // namespace

TakenOtherwise::TakenOtherwise(const std::vector<Finding>& findings, std::size_t most,
                               const Stored& side, const std::vector<Rank>& ranks, bool reads)
    : side_(side), ranks_(ranks), reads_(reads) {
  // Only a sample is examined: all faults would take longer than the copies themselves.
  constexpr std::size_t kMostOfFinding = 64, kMostFaults = std::size_t{1} << 14;
  std::size_t faults = 0;
  for (std::size_t i = 0; i < std::min(most, findings.size()); ++i) {
    if (!is_wrong(findings[i])) continue;
    std::size_t left = std::min(kMostOfFinding, kMostFaults - faults);
    for (const CopyFault& fault : findings[i].faults) {
      if (left-- == 0) break;
      ++faults;
      std::int64_t offset = 0;
      Buffer* buffer = buffer_of(fault, offset);
      if (buffer == nullptr) continue;
      ++buffer->faults;
      Ways ways = ways_of(fault, *buffer, offset);
      for (int way = 0; way < kMostWays; ++way) buffer->explained[to_index(way)] += ways >> way & 1;
    }
  }
}

// The buffer with the fault's element, and the element's offset in it; null if the rank does not
// have the element.
TakenOtherwise::Buffer* TakenOtherwise::buffer_of(const CopyFault& fault,
                                                  std::int64_t& offset) const {
  auto is = reads_ ? location_of(side_, fault.from, fault.got, fault.got_lo)
                   : location_of(side_, fault.to, fault.tensor, fault.box.lo);
  if (!is) return nullptr;
  offset = is->offset;
  auto known = buffers_.find(is->buffer);
  if (known == buffers_.end())
    known = buffers_.emplace(is->buffer, Buffer{TakenAs(side_, is->buffer, ranks_)}).first;
  return &known->second;
}

// If elements arrive in order, the last one must fit as well.
TakenOtherwise::Ways TakenOtherwise::ways_of(const CopyFault& fault, const Buffer& buffer,
                                             std::int64_t offset) const {
  Ways out = ways_of(fault, buffer.as, fault.box.lo, fault.got_lo, offset);
  if (out == 0 || fault.reordered || fault.box.volume() < 2) return out;
  DimVector wanted = fault.box.lo, got = fault.got_lo;
  if (wanted.size() != got.size()) return out;
  for (int d = 0; d < wanted.size(); ++d) {
    got[d] += fault.box.extent(d) - 1;
    wanted[d] += fault.box.extent(d) - 1;
  }
  auto last = reads_ ? location_of(side_, fault.from, fault.got, got)
                     : location_of(side_, fault.to, fault.tensor, wanted);
  return last ? out & ways_of(fault, buffer.as, wanted, got, last->offset) : out;
}

TakenOtherwise::Ways TakenOtherwise::ways_of(const CopyFault& fault, const TakenAs& as,
                                             const DimVector& wanted, const DimVector& got,
                                             std::int64_t offset) const {
  const ModelTensorId meant = reads_ ? side_.tensors()[fault.tensor].same_as : fault.got;
  const DimVector& index = reads_ ? wanted : got;
  Ways out = 0;
  if (int dim = as.cut_along(meant, index, offset); dim >= 0 && kCut + dim < kMostWays)
    out |= Ways{1} << (kCut + dim);
  if (as.is_one_tensor() && !as.is_transposed()) return out;
  if (as.in_blocks(meant, index) == offset ||
      (as.is_transposed() && as.stacked(meant, index) == offset))
    out |= Ways{1} << kBlocks;
  if (fault.box.dims() > 0 && fault.box.extent(0) == 1 && as.alternating(meant, index) == offset)
    out |= Ways{1} << kAlternating;
  if (as.joined(meant, index) == offset) out |= Ways{1} << kJoined;
  return out;
}

std::string TakenOtherwise::mistake_of(const Finding& finding) const {
  if (!is_wrong(finding)) return {};
  Ways ways = ~Ways{0};
  const Buffer* buffer = nullptr;
  for (const CopyFault& fault : finding.faults) {
    std::int64_t offset = 0;
    buffer = buffer_of(fault, offset);
    if (buffer == nullptr) return {};
    ways &= ways_of(fault, *buffer, offset);
    for (int way = 0; way < kMostWays; ++way)
      if (2 * buffer->explained[to_index(way)] < buffer->faults) ways &= ~(Ways{1} << way);
    if (ways == 0) return {};
  }
  // Cuts come first: a cut is the least likely to fit by chance.
  for (int way = kCut; way < kMostWays; ++way)
    if (ways >> way & 1) return text(way, finding.faults.back(), *buffer);
  for (int way = 0; way < kCut; ++way)
    if (ways >> way & 1) return text(way, finding.faults.back(), *buffer);
  return {};
}

std::string TakenOtherwise::text(int way, const CopyFault& fault, const Buffer& buffer) const {
  auto is = reads_ ? location_of(side_, fault.from, fault.got, fault.got_lo)
                   : location_of(side_, fault.to, fault.tensor, fault.box.lo);
  const TakenAs& as = buffer.as;
  std::string start =
      fmt::format("'{}' of rank {} is {} as", side_.buffers()[is->buffer].name,
                  to_int(reads_ ? fault.from : fault.to), reads_ ? "read" : "written");
  switch (way) {
    case kBlocks:
      return as.is_transposed() ? fmt::format("{} if it were not transposed", start)
                                : fmt::format("{} {}", start, as.text());
    case kAlternating:
      return fmt::format("{} if rows of {} alternated", start, as.names_text());
    case kJoined:
      return fmt::format("{} if {} were cut as one, not each by itself", start, as.text());
    default:
      return fmt::format("{} if dim {} were cut, not dim {}", start, way - kCut, as.cut_dim());
  }
}

}  // namespace reshard
