// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/mistakes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "core/judge/locations.h"
#include "core/judge/patterns/flat_order.h"
#include "core/judge/patterns/numbers_in_names.h"
#include "core/judge/patterns/numbers_of_indices.h"
#include "core/judge/patterns/taken_otherwise.h"
#include "core/judge/rank_grids.h"
#include "core/judge/taken_as.h"

namespace reshard {
namespace {

// Nobody reads more findings; more lookups would take seconds.
constexpr std::size_t kMostNamed = 1000, kMostLookups = std::size_t{1} << 22;

class Mistakes {
 public:
  Mistakes(std::vector<Finding>& findings, const Stored& source, const Stored& destination)
      : findings_(findings),
        source_(source),
        destination_(destination),
        ranks_(destination.ranks()),
        source_ranks_(source.ranks()),
        grids_(all_faults(findings), source, destination),
        names_(findings, kMostNamed, source, destination),
        indices_(findings, kMostNamed, source, destination),
        read_as_(findings, kMostNamed, source, source_ranks_, true),
        written_as_(findings, kMostNamed, destination, ranks_, false) {}

  void name() {
    for (const Finding& finding : findings_)
      shifts_of_[finding.tensor] += finding.kind == CopyFaultKind::WrongIndex ? 1 : 0;
    for (std::size_t i = 0; i < findings_.size() && i < kMostNamed; ++i) {
      Finding& finding = findings_[i];
      for (auto look :
           {&Mistakes::unconverted, &Mistakes::grid, &Mistakes::renumbered, &Mistakes::reversed,
            &Mistakes::dealt, &Mistakes::mapped, &Mistakes::exchanged, &Mistakes::read_otherwise,
            &Mistakes::written_otherwise, &Mistakes::moved_as_one, &Mistakes::likely_grid,
            &Mistakes::counted_from_zero, &Mistakes::of_other_ranks, &Mistakes::cut_not_repeated,
            &Mistakes::tied, &Mistakes::shifted, &Mistakes::moved_on})
        if (finding.mistake.empty()) finding.mistake = (this->*look)(finding);
    }
  }

 private:
  const ModelTensor& tensor(ModelTensorId id) const { return source_.tensors()[id]; }
  static bool is_wrong(const Finding& finding) {
    return finding.got != ModelTensorId{-1} && (finding.kind == CopyFaultKind::WrongIndex ||
                                                finding.kind == CopyFaultKind::WrongTensor ||
                                                finding.kind == CopyFaultKind::WrongDtype);
  }

  static std::vector<const CopyFault*> all_faults(const std::vector<Finding>& findings) {
    std::vector<const CopyFault*> out;
    for (const Finding& finding : findings)
      for (const CopyFault& fault : finding.faults) out.push_back(&fault);
    return out;
  }

  std::string grid(const Finding& finding) { return grids_.exchanged(finding.faults, true); }
  std::string likely_grid(const Finding& finding) {
    return grids_.exchanged(finding.faults, false);
  }

  // Numbers in names or indices are taken for others.
  std::string renumbered(const Finding& finding) {
    return names_.mistake_of(to_index(&finding - findings_.data()));
  }
  std::string dealt(const Finding& finding) { return indices_.dealt(finding); }
  std::string mapped(const Finding& finding) { return indices_.mapped(finding); }
  std::string counted_from_zero(const Finding& finding) {
    return indices_.counted_from_zero(finding);
  }

  // Flat tensors lie in the reverse order, on either side.
  std::string reversed(const Finding& finding) {
    if (!is_wrong(finding)) return {};
    for (bool reads : {true, false}) {
      const Stored& side = reads ? source_ : destination_;
      std::vector<bool> fits;
      std::string_view name;
      for (const CopyFault& fault : finding.faults) {
        Rank rank = reads ? fault.from : fault.to;
        auto is = reads ? location_of(side, rank, fault.got, fault.got_lo)
                        : location_of(side, rank, fault.tensor, fault.box.lo);
        if (!is) break;
        name = side.buffers()[is->buffer].name;
        auto known = flat_.find({reads, name});
        if (known == flat_.end())
          known =
              flat_.try_emplace({reads, name}, side, name, reads ? source_ranks_ : ranks_).first;
        std::vector<bool> reversed =
            reads ? known->second.reversed(fault.tensor, fault.box.lo, rank, is->offset)
                  : known->second.reversed(fault.got, fault.got_lo, rank, is->offset);
        if (&fault == &finding.faults.front()) fits = reversed;
        fits.resize(std::min(fits.size(), reversed.size()));
        for (std::size_t i = 0; i < fits.size(); ++i) fits[i] = fits[i] && reversed[i];
        if (std::find(fits.begin(), fits.end(), true) == fits.end()) break;
      }
      if (std::find(fits.begin(), fits.end(), true) != fits.end())
        return fmt::format("'{}' of the {} is {} as if its tensors lay in reverse order", name,
                           reads ? "source" : "destination", reads ? "read" : "written");
    }
    return {};
  }

  // The right elements arrive, but as bytes of another dtype.
  std::string unconverted(const Finding& finding) {
    if (finding.kind == CopyFaultKind::OutOfBuffer && finding.faults.front().two_dtypes)
      return fmt::format("'{}' is copied in bytes, though a rank has to convert it",
                         finding.faults.front().why);
    if (finding.kind != CopyFaultKind::WrongDtype || !is_wrong(finding) ||
        tensor(finding.tensor).same_as != finding.got)
      return {};
    return fmt::format("{} is copied in bytes, though a rank has to convert it",
                       tensor(finding.tensor).name);
  }

  std::string read_otherwise(const Finding& finding) { return read_as_.mistake_of(finding); }
  std::string written_otherwise(const Finding& finding) { return written_as_.mistake_of(finding); }

  // Rows of a buffer are cut differently on the two sides, but moved as if both were uncut.
  std::string moved_as_one(const Finding& finding) {
    if (!is_wrong(finding)) return {};
    std::string out;
    for (const CopyFault& fault : finding.faults) {
      auto from = location_of(source_, fault.from, fault.got, fault.got_lo);
      auto to = location_of(destination_, fault.to, fault.tensor, fault.box.lo);
      if (!from || !to) return {};
      const TakenAs& is =
          of_source_.try_emplace(from->buffer, source_, from->buffer, source_ranks_).first->second;
      const TakenAs& wanted =
          of_destination_.try_emplace(to->buffer, destination_, to->buffer, ranks_).first->second;
      if (is.is_one_tensor() || is.text() != wanted.text() || is.is_transposed() ||
          is.joined_begin() + from->offset != wanted.joined_begin() + to->offset)
        return {};
      out = fmt::format("{} are moved as if they were cut as one, not each by itself", is.text());
    }
    return out;
  }

  // Two tensors are exchanged.
  std::string exchanged(const Finding& finding) {
    auto is_whole = [](const Finding& of) {
      return of.kind == CopyFaultKind::WrongTensor &&
             std::all_of(of.faults.begin(), of.faults.end(), [](const CopyFault& fault) {
               return !fault.reordered && fault.got_lo == fault.box.lo;
             });
    };
    if (!is_whole(finding)) return {};
    for (const Finding& other : findings_)
      if (other.got == tensor(finding.tensor).same_as && other.tensor != ModelTensorId{-1} &&
          tensor(other.tensor).same_as == finding.got && is_whole(other))
        return fmt::format("{} and {} are taken for each other", tensor(finding.tensor).name,
                           tensor(finding.got).name);
    return {};
  }

  // Every rank gets what another rank needs at the same place of its buffer.
  std::string of_other_ranks(const Finding& finding) {
    bool is_wrong =
        finding.kind == CopyFaultKind::WrongIndex || finding.kind == CopyFaultKind::WrongTensor;
    if (!is_wrong || finding.faults.size() * ranks_.size() > kMostLookups) return {};
    std::map<Rank, Rank> taken;
    for (const CopyFault& fault : finding.faults) {
      auto is = location_of(destination_, fault.to, fault.tensor, fault.box.lo);
      if (!is) return {};
      auto other = other_rank(fault, *is);
      if (!other) return {};
      if (taken.emplace(fault.to, *other).first->second != *other) return {};
    }
    std::string out;
    for (const auto& [rank, other] : taken) {
      if (out.size() > 60) return out + ", ...";
      out += fmt::format("{}rank {} gets what rank {} needs", out.empty() ? "" : ", ", to_int(rank),
                         to_int(other));
    }
    return out;
  }

  std::optional<Rank> other_rank(const CopyFault& fault, const Location& is) const {
    std::string_view name = destination_.buffers()[is.buffer].name;
    for (Rank rank : ranks_) {
      auto there = location_of(destination_, rank, fault.got, fault.got_lo);
      if (rank != fault.to && there && there->offset == is.offset &&
          destination_.buffers()[there->buffer].name == name)
        return rank;
    }
    return std::nullopt;
  }

  // Several of n ranks need the whole, but each gets an n-th.
  std::string cut_not_repeated(const Finding& finding) {
    if (finding.kind != CopyFaultKind::Missing && finding.kind != CopyFaultKind::WrongIndex)
      return {};
    std::map<Box, std::set<Rank>> holders;
    std::set<Rank> ranks;
    for (const StoredBuffer& buffer : destination_.buffers())
      for (const StoredPart& part : buffer.parts)
        if (part.tensor == finding.tensor) {
          holders[part.box].insert(buffer.rank);
          ranks.insert(buffer.rank);
        }
    const Shape& shape = tensor(finding.tensor).shape;
    bool all_repeat = std::all_of(holders.begin(), holders.end(),
                                  [](const auto& of) { return of.second.size() > 1; });
    if (shape.size() == 0 || !all_repeat) return {};
    // With data parallelism, every replica is cut in the same way.
    const auto all = static_cast<std::int64_t>(ranks.size());
    for (std::int64_t count = all; count > std::ssize(holders); --count) {
      if (all % count != 0 || shape[0] % count != 0 || shape[0] < count) continue;
      if (fits_cut(finding, holders, ranks, count, shape[0] / count))
        return fmt::format("{} is cut into {} pieces, but {} ranks each need the same",
                           tensor(finding.tensor).name, count, holders.begin()->second.size());
    }
    return {};
  }

  // Whether each rank got one of `count` pieces of `share` rows, in the place of the first rows of
  // its box.
  static bool fits_cut(const Finding& finding, const std::map<Box, std::set<Rank>>& holders,
                       const std::set<Rank>& ranks, std::int64_t count, std::int64_t share) {
    const bool is_missing = finding.kind == CopyFaultKind::Missing;
    std::set<Rank> at_fault;
    for (const CopyFault& fault : finding.faults) {
      auto at = std::distance(ranks.begin(), ranks.find(fault.to)) % count;
      at_fault.insert(fault.to);
      for (const auto& [box, of] : holders) {
        if (!of.contains(fault.to) || !contains(box, fault.box)) continue;
        bool fits = is_missing
                        ? fault.box.lo[0] == box.lo[0] + share && fault.box.hi[0] == box.hi[0]
                        : fault.got_lo[0] == at * share && fault.box.lo[0] == box.lo[0];
        if (!fits) return false;
      }
    }
    return !is_missing || at_fault == ranks;
  }

  // The tensor is written under one of its names, but never under this one.
  std::string tied(const Finding& finding) {
    if (finding.kind != CopyFaultKind::Missing) return {};
    const ModelTensor& own = tensor(finding.tensor);
    std::int64_t needed = 0;
    bool has_other = false;
    for (const StoredBuffer& buffer : destination_.buffers())
      for (const StoredPart& part : buffer.parts) {
        if (part.tensor == finding.tensor) needed += part.box.volume();
        has_other = has_other ||
                    (part.tensor != finding.tensor && tensor(part.tensor).same_as == own.same_as);
      }
    if (!has_other || needed != finding.elements) return {};
    return fmt::format("{} is tied to another name, and only that is written", own.name);
  }

  // If a tensor has several shifts, it is not shifted but cut or ordered differently.
  std::string shifted(const Finding& finding) {
    constexpr int kMostShifts = 3;
    if (finding.kind != CopyFaultKind::WrongIndex || shifts_of_[finding.tensor] > kMostShifts ||
        std::any_of(finding.faults.begin(), finding.faults.end(),
                    [](const CopyFault& fault) { return fault.reordered; }))
      return {};
    const CopyFault& fault = finding.faults.front();
    std::string out;
    for (int d = 0; d < fault.box.dims(); ++d)
      if (std::int64_t by = fault.got_lo[d] - fault.box.lo[d]; by != 0)
        out += fmt::format("{}by {} along dim {}", out.empty() ? "shifted " : " and ", by, d);
    return out;
  }

  // Everything is read, or written, at the same distance from its place in a buffer, whatever the
  // tensor.
  std::string moved_on(const Finding& finding) {
    if (!is_wrong(finding)) return {};
    std::string out = moved_on(finding, true);
    return out.empty() ? moved_on(finding, false) : out;
  }

  std::string moved_on(const Finding& finding, bool reads) const {
    const Stored& side = reads ? source_ : destination_;
    std::optional<std::int64_t> by;
    std::string out;
    for (const CopyFault& fault : finding.faults) {
      Rank rank = reads ? fault.from : fault.to;
      auto got = location_of(side, rank, fault.got, fault.got_lo),
           wanted = location_of(side, rank, fault.tensor, fault.box.lo);
      if (!got || !wanted || got->buffer != wanted->buffer) return {};
      // To write an element too late is to read it too early.
      std::int64_t shift = (got->offset - wanted->offset) * (reads ? 1 : -1);
      if (shift == 0 || by.value_or(shift) != shift) return {};
      by = shift;
      const StoredBuffer& buffer = side.buffers()[got->buffer];
      std::int64_t row = buffer.shape.size() < 2 ? 1 : row_major(buffer.shape)[0];
      bool in_rows = row > 1 && shift % row == 0;
      out = fmt::format("what is {} '{}' of rank {} is shifted by {} {} there",
                        reads ? "read from" : "written to", buffer.name, to_int(rank),
                        in_rows ? shift / row : shift, in_rows ? "rows" : "elements");
    }
    return out;
  }

  std::vector<Finding>& findings_;
  const Stored &source_, &destination_;
  std::vector<Rank> ranks_;  // of the destination
  std::vector<Rank> source_ranks_;
  std::map<ModelTensorId, int> shifts_of_;  // how many findings have elements at a wrong index
  RankGrids grids_;
  NumbersInNames names_;
  NumbersOfIndices indices_;
  TakenOtherwise read_as_, written_as_;
  std::map<std::pair<bool, std::string_view>, FlatOrder>
      flat_;  // by whether it is the source, and the buffer's name
  std::map<StoredBufferId, TakenAs> of_source_, of_destination_;
};

}  // namespace

void name_mistakes(std::vector<Finding>& findings, const Stored& source,
                   const Stored& destination) {
  Mistakes(findings, source, destination).name();
}

}  // namespace reshard
