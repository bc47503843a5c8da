// SPDX-License-Identifier: BSD-3-Clause
#include "sim/digest/digest_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "core/base/sort_once.h"
#include "sim/trace/findings.h"

namespace reshard::sim {
namespace {

class Grouper {
 public:
  Grouper(const ModelLayouts& layouts, const Digests& wrote) : layouts_(layouts) {
    for (DigestSide side : kDigestSides) {
      const auto& given = wrote.of(side);
      if (!given) continue;
      for (std::size_t b = 0; b < given->size(); ++b)
        if (std::any_of((*given)[b].begin(), (*given)[b].end(), [](const auto& d) { return !!d; }))
          heard_.emplace(side, side_of(layouts, side).buffers()[b].rank);
    }
  }

  std::vector<DigestFinding> findings(std::vector<DigestFault> faults) {
    std::stable_sort(faults.begin(), faults.end(),
                     [&](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
    std::map<Key, DigestFinding> grouped;
    for (DigestFault& fault : faults) add(std::move(fault), grouped);
    std::vector<DigestFinding> out;
    for (auto& [key, finding] : grouped) {
      sort_once(finding.ranks);
      for (DigestFault& fault : finding.faults) fault.got_ranks = holders_of(fault);
      finding.mistake = mistake_of(finding);
      out.push_back(std::move(finding));
    }
    std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
      return std::tuple(-a.elements, place_of(a.faults.front())) <
             std::tuple(-b.elements, place_of(b.faults.front()));
    });
    return out;
  }

 private:
  using Key = std::tuple<DigestFaultKind, DigestSide, ModelTensorId, std::string, ModelTensorId,
                         DimVector, bool, bool>;

  const StoredBuffer& buffer_of(const DigestFault& fault) const {
    return side_of(layouts_, fault.side).buffers()[fault.buffer];
  }
  const StoredPart& part_of(const DigestFault& fault) const {
    return buffer_of(fault).parts[to_index(fault.part)];
  }
  using FaultPlace = std::tuple<DigestSide, Rank, StoredBufferId, std::int32_t, Box>;
  FaultPlace place_of(const DigestFault& fault) const {
    return {fault.side, buffer_of(fault).rank, fault.buffer, fault.part, fault.box};
  }

  // The distance between where the data belongs and where it is; empty between tensors of different
  // dims.
  static DimVector distance(const DigestFault& fault) {
    DimVector out;
    if (fault.got == ModelTensorId{-1} || fault.got_box.dims() != fault.box.dims()) return out;
    for (int d = 0; d < fault.box.dims(); ++d) out.push_back(fault.got_box.lo[d] - fault.box.lo[d]);
    return out;
  }

  Key key_of(const DigestFault& fault) const {
    const StoredBuffer& buffer = buffer_of(fault);
    if (fault.kind == DigestFaultKind::Missing && !heard_.contains({fault.side, buffer.rank}))
      return {fault.kind, fault.side, ModelTensorId{-1}, "", ModelTensorId{-1}, {}, false, false};
    return {fault.kind, fault.side,      part_of(fault).tensor, std::string(buffer.name),
            fault.got,  distance(fault), fault.whole,           fault.swapped};
  }

  void add(DigestFault&& fault, std::map<Key, DigestFinding>& grouped) const {
    Key key = key_of(fault);
    DigestFinding& finding = grouped[key];
    if (finding.faults.empty()) {
      finding.kind = fault.kind;
      finding.side = fault.side;
      finding.tensor = std::get<2>(key);
      finding.buffer = std::get<3>(key);
      finding.got = fault.got;
      finding.shift = shift_of(fault);
    }
    finding.elements += fault.box.volume();
    finding.ranks.push_back(buffer_of(fault).rank);
    if (!finding.faults.empty() && joined(finding.faults.back(), fault)) return;
    finding.faults.push_back(std::move(fault));
  }

  static std::optional<std::int64_t> shift_of(const DigestFault& fault) {
    DimVector by = distance(fault);
    if (fault.kind != DigestFaultKind::WrongIndex || fault.swapped || by.size() == 0)
      return std::nullopt;
    for (int d = 1; d < by.size(); ++d)
      if (by[d] != 0 || fault.got_box.hi[d] != fault.box.hi[d]) return std::nullopt;
    return by[0];
  }

  // Extends `last` by `next` if its rows follow, both where they are and where they belong.
  static bool joined(DigestFault& last, const DigestFault& next) {
    if (std::tuple(last.buffer, last.part) != std::tuple(next.buffer, next.part) ||
        next.box.dims() == 0 || last.box.hi[0] != next.box.lo[0] || !next.whole)
      return false;
    bool has_got = next.got != ModelTensorId{-1};
    if (has_got && (next.got_box.dims() == 0 || last.got_box.hi[0] != next.got_box.lo[0]))
      return false;
    last.box.hi[0] = next.box.hi[0];
    if (has_got) last.got_box.hi[0] = next.got_box.hi[0];
    return true;
  }

  // The ranks of this side that should have all of the data that is there.
  std::vector<Rank> holders_of(const DigestFault& fault) {
    if (fault.got == ModelTensorId{-1}) return {};
    auto [known, fresh] =
        holders_.emplace(std::tuple(fault.side, fault.got, fault.got_box), std::vector<Rank>());
    if (fresh) {
      for (const StoredBuffer& buffer : side_of(layouts_, fault.side).buffers())
        for (const StoredPart& part : buffer.parts)
          if (part.tensor == fault.got && contains(part.box, fault.got_box))
            known->second.push_back(buffer.rank);
      sort_once(known->second);
    }
    return known->second;
  }

  std::string mistake_of(const DigestFinding& finding) const {
    const DigestFault& first = finding.faults.front();
    if (finding.kind == DigestFaultKind::Zeros) return "never written";
    if (finding.kind == DigestFaultKind::Stale) return "not written again";
    if (finding.got == ModelTensorId{-1}) return "";
    bool here =
        std::binary_search(first.got_ranks.begin(), first.got_ranks.end(), buffer_of(first).rank);
    std::string whose = here || first.got_ranks.empty() ? "" : ranks_words(first.got_ranks);
    if (finding.shift)
      return fmt::format(
                 "shifted by {} row{}{}", *finding.shift > 0 ? *finding.shift : -*finding.shift,
                 *finding.shift == 1 || *finding.shift == -1 ? "" : "s",
                 *finding.shift > 0 ? ", later ones are there" : ", earlier ones are there") +
             (whose.empty() ? "" : fmt::format(", those of {}", whose));
    std::string other = finding.kind == DigestFaultKind::WrongTensor
                            ? fmt::format("'{}'", (*layouts_.tensors)[finding.got].name)
                            : "other rows";
    if (finding.kind == DigestFaultKind::WrongIndex && !whose.empty())
      other = whose;
    else if (!whose.empty())
      other += fmt::format(" of {}", whose);
    if (first.swapped) return fmt::format("swapped with {}", other);
    return whose.empty() ? "" : fmt::format("what belongs to {}", whose);
  }

  const ModelLayouts& layouts_;
  std::set<std::pair<DigestSide, Rank>> heard_;
  std::map<std::tuple<DigestSide, ModelTensorId, Box>, std::vector<Rank>> holders_;
};

}  // namespace

std::vector<DigestFinding> findings_of(std::vector<DigestFault> faults, const ModelLayouts& layouts,
                                       const Digests& wrote) {
  return Grouper(layouts, wrote).findings(std::move(faults));
}

}  // namespace reshard::sim
