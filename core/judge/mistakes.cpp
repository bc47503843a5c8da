// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/mistakes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/judge/locations.h"
#include "core/judge/rank_grids.h"

namespace reshard {
namespace {

// Nobody reads more findings; more lookups take seconds.
constexpr std::size_t kMostNamed = 1000, kMostLookups = std::size_t{1} << 22;

// A buffer read as if its tensors lay one after another: its parts joined by tensor, in the
// order in which they begin.
class AsBlocks {
 public:
  AsBlocks(const Stored& side, StoredBufferId buffer) : side_(side) {
    const std::vector<StoredPart>& parts = side.buffers()[buffer].parts;
    for (const StoredPart& part : parts) {
      ModelTensorId root = side.tensors()[part.tensor].same_as;
      if (std::find(order_.begin(), order_.end(), root) == order_.end()) order_.push_back(root);
    }
    for (const StoredPart& part : parts)
      parts_[side.tensors()[part.tensor].same_as].push_back(&part);
    std::int64_t begin = 0;
    for (ModelTensorId tensor : order_) {
      begin_[tensor] = begin;
      std::vector<const StoredPart*>& own = parts_[tensor];
      for (const StoredPart* part : own) begin += part->box.volume();
      std::sort(own.begin(), own.end(),
                [](const auto* a, const auto* b) { return a->box.lo < b->box.lo; });
    }
  }

  bool is_one_tensor() const { return order_.size() < 2; }

  // "[q | k | v]".
  std::string text() const {
    std::string out;
    for (ModelTensorId tensor : order_)
      out += fmt::format("{}{}", out.empty() ? "" : " | ", side_.tensors()[tensor].name);
    return fmt::format("[{}]", out);
  }

  // Where the element would be. The tensor's parts lie one after another, in row-major order.
  std::optional<std::int64_t> offset_of(ModelTensorId tensor, const DimVector& index) const {
    auto begin = begin_.find(tensor);
    if (begin == begin_.end()) return std::nullopt;
    std::int64_t offset = begin->second;
    for (const StoredPart* part : parts_.at(tensor)) {
      Box one{index, index};
      for (int d = 0; d < index.size(); ++d) ++one.hi[d];
      if (!contains(part->box, one)) {
        offset += part->box.volume();
        continue;
      }
      DimVector strides = row_major(part->box.extents());
      for (int d = 0; d < index.size(); ++d) offset += (index[d] - part->box.lo[d]) * strides[d];
      return offset;
    }
    return std::nullopt;
  }

 private:
  const Stored& side_;
  std::vector<ModelTensorId> order_;
  std::map<ModelTensorId, std::vector<const StoredPart*>> parts_;  // each ascending by box
  std::map<ModelTensorId, std::int64_t> begin_;
};

class Mistakes {
 public:
  Mistakes(std::vector<Finding>& findings, const Stored& source, const Stored& destination)
      : findings_(findings),
        source_(source),
        destination_(destination),
        ranks_(destination.ranks()),
        grids_(all_faults(findings), source, destination) {}

  void name() {
    for (std::size_t i = 0; i < findings_.size() && i < kMostNamed; ++i) {
      Finding& finding = findings_[i];
      for (auto look :
           {&Mistakes::unconverted, &Mistakes::grid, &Mistakes::read_as_blocks,
            &Mistakes::written_as_blocks, &Mistakes::of_other_ranks, &Mistakes::exchanged,
            &Mistakes::cut_not_repeated, &Mistakes::tied, &Mistakes::shifted})
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

  std::string grid(const Finding& finding) { return grids_.exchanged(finding.faults); }

  // The right elements, but as bytes of another dtype.
  std::string unconverted(const Finding& finding) {
    if (finding.kind != CopyFaultKind::WrongDtype || !is_wrong(finding) ||
        tensor(finding.tensor).same_as != finding.got)
      return {};
    return fmt::format("{} is copied in bytes, though a rank has to convert it",
                       tensor(finding.tensor).name);
  }

  std::string read_as_blocks(const Finding& finding) {
    if (!is_wrong(finding)) return {};
    std::string out;
    for (const CopyFault& fault : finding.faults) {
      auto is = location_of(source_, fault.from, fault.got, fault.got_lo);
      if (!is) return {};
      const AsBlocks& blocks =
          of_source_.try_emplace(is->buffer, source_, is->buffer).first->second;
      auto would = blocks.offset_of(tensor(fault.tensor).same_as, fault.box.lo);
      if (blocks.is_one_tensor() || !would || *would != is->offset) return {};
      out = fmt::format("'{}' of rank {} is read as {}", source_.buffers()[is->buffer].name,
                        to_int(fault.from), blocks.text());
    }
    return out;
  }

  std::string written_as_blocks(const Finding& finding) {
    if (!is_wrong(finding)) return {};
    std::string out;
    for (const CopyFault& fault : finding.faults) {
      auto is = location_of(destination_, fault.to, fault.tensor, fault.box.lo);
      if (!is) return {};
      const AsBlocks& blocks =
          of_destination_.try_emplace(is->buffer, destination_, is->buffer).first->second;
      auto would = blocks.offset_of(fault.got, fault.got_lo);
      if (blocks.is_one_tensor() || !would || *would != is->offset) return {};
      out = fmt::format("'{}' of rank {} is written as {}", destination_.buffers()[is->buffer].name,
                        to_int(fault.to), blocks.text());
    }
    return out;
  }

  // Two tensors, each in the other's place.
  std::string exchanged(const Finding& finding) {
    if (finding.kind != CopyFaultKind::WrongTensor) return {};
    for (const Finding& other : findings_)
      if (other.kind == CopyFaultKind::WrongTensor && tensor(other.tensor).same_as == finding.got &&
          other.got == tensor(finding.tensor).same_as)
        return fmt::format("{} and {} are taken for each other", tensor(finding.tensor).name,
                           tensor(finding.got).name);
    return {};
  }

  // Every rank gets what another one needs at the same place of its buffer.
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

  // Of n ranks each gets an n-th, where several need the same.
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
    const auto count = static_cast<std::int64_t>(ranks.size());
    const std::int64_t share = shape[0] / count;
    if (share == 0 || shape[0] % count != 0) return {};
    for (const CopyFault& fault : finding.faults) {
      auto at = std::distance(ranks.begin(), ranks.find(fault.to));
      for (const auto& [box, of] : holders) {
        if (!of.contains(fault.to) || !contains(box, fault.box)) continue;
        bool fits = finding.kind == CopyFaultKind::Missing
                        ? fault.box.lo[0] == box.lo[0] + share && fault.box.hi[0] == box.hi[0]
                        : fault.got_lo[0] == at * share && fault.box.lo[0] == box.lo[0];
        if (!fits) return {};
      }
    }
    return fmt::format("{} is cut into {} pieces, but {} ranks each need the same",
                       tensor(finding.tensor).name, count, holders.begin()->second.size());
  }

  // A name that is never written, though the tensor is, under another name.
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

  std::string shifted(const Finding& finding) {
    if (finding.kind != CopyFaultKind::WrongIndex) return {};
    const CopyFault& fault = finding.faults.front();
    std::string out;
    for (int d = 0; d < fault.box.dims(); ++d)
      if (std::int64_t by = fault.got_lo[d] - fault.box.lo[d]; by != 0)
        out += fmt::format("{}by {} along dim {}", out.empty() ? "shifted " : " and ", by, d);
    return out;
  }

  std::vector<Finding>& findings_;
  const Stored &source_, &destination_;
  std::vector<Rank> ranks_;  // of the destination
  RankGrids grids_;
  std::map<StoredBufferId, AsBlocks> of_source_, of_destination_;
};

}  // namespace

void name_mistakes(std::vector<Finding>& findings, const Stored& source,
                   const Stored& destination) {
  Mistakes(findings, source, destination).name();
}

}  // namespace reshard
