// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/patterns/numbers_of_indices.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "core/judge/patterns/numbered_name.h"

namespace reshard {
namespace {

constexpr std::int64_t kMostIndices = std::int64_t{1} << 16;  // that are at fault in one tensor

std::string text_for(const std::map<ModelTensorId, std::string>& found, const Finding& finding) {
  if (finding.kind != CopyFaultKind::WrongIndex) return {};
  auto it = found.find(finding.tensor);
  return it == found.end() ? std::string() : it->second;
}

}  // namespace

NumbersOfIndices::NumbersOfIndices(const std::vector<Finding>& findings, std::size_t most,
                                   const Stored& source, const Stored& destination)
    : source_(source),
      destination_(destination),
      source_ranks_(source.ranks()),
      ranks_(destination.ranks()) {
  for (std::size_t i = 0; i < std::min(most, findings.size()); ++i) {
    if (findings[i].kind != CopyFaultKind::WrongIndex) continue;
    Indexed& tensor = tensors_[findings[i].tensor];
    for (const CopyFault& fault : findings[i].faults) {
      tensor.faults.push_back(&fault);
      if (fault.box.dims() == 0) tensor.along_first = false;
      for (int d = 1; d < fault.box.dims(); ++d)
        tensor.along_first = tensor.along_first && fault.got_lo[d] == fault.box.lo[d];
    }
  }
  std::erase_if(tensors_, [](const auto& of) { return !of.second.along_first; });
  for (const auto& [id, tensor] : tensors_) {
    dealt_[id] = dealt(id, tensor);
    from_zero_[id] = counted_from_zero(id, tensor);
  }
  find_maps();
}

std::string NumbersOfIndices::dealt(const Finding& finding) const {
  return text_for(dealt_, finding);
}
std::string NumbersOfIndices::counted_from_zero(const Finding& finding) const {
  return text_for(from_zero_, finding);
}
std::string NumbersOfIndices::mapped(const Finding& finding) const {
  return text_for(mapped_, finding);
}

// What arrives for each index of `rows` rows. Empty if there are too many indices.
Arrivals NumbersOfIndices::arrivals_of(const Indexed& tensor, std::int64_t rows) const {
  Arrivals out;
  std::int64_t indices = 0;
  for (const CopyFault* fault : tensor.faults)
    for (std::int64_t row = 0; row < fault->box.extent(0); row += rows) {
      if (++indices > kMostIndices) return {};
      out[(fault->box.lo[0] + row) / rows].insert((fault->got_lo[0] + row) / rows);
    }
  return out;
}

// The number of different lots into which the ranks of a side divide the first dim.
std::int64_t NumbersOfIndices::divisions(const Stored& side, ModelTensorId tensor) const {
  std::set<std::set<std::pair<std::int64_t, std::int64_t>>> lots;
  for (Rank rank : &side == &source_ ? source_ranks_ : ranks_) {
    std::set<std::pair<std::int64_t, std::int64_t>> lot;
    for (Stored::PartId id : side.parts_of(rank, tensor))
      lot.emplace(side[id].box.lo[0], side[id].box.hi[0]);
    if (!lot.empty()) lots.insert(std::move(lot));
  }
  return std::ssize(lots);
}

// An index can consist of several rows. Tries numbers of rows that divide everything that is wrong,
// or a small part of it.
std::string NumbersOfIndices::dealt(ModelTensorId id, const Indexed& tensor) const {
  constexpr std::int64_t kMostParts = 4;
  const std::int64_t length = source_.tensors()[id].shape[0];
  std::int64_t most_rows = length;
  for (const CopyFault* fault : tensor.faults)
    for (std::int64_t value : {fault->box.lo[0], fault->box.hi[0], fault->got_lo[0]})
      most_rows = std::gcd(most_rows, value);
  for (std::int64_t parts = 1; parts <= kMostParts; ++parts) {
    if (most_rows % parts != 0) continue;
    const std::int64_t rows = most_rows / parts;
    const Arrivals arrivals = arrivals_of(tensor, rows);
    for (const Stored* side : {&destination_, &source_})
      if (auto how = dealt_otherwise(arrivals, length / rows, divisions(*side, id)))
        return fmt::format("indices of {} are {}{}", source_.tensors()[id].name, *how,
                           rows == 1 ? "" : fmt::format(" ({} rows an index)", rows));
  }
  return {};
}

// Every rank gets the first indices, as if its own indices began with 0.
std::string NumbersOfIndices::counted_from_zero(ModelTensorId id, const Indexed& tensor) const {
  std::map<Rank, std::int64_t> firsts;
  for (Rank rank : ranks_)
    for (Stored::PartId part : destination_.parts_of(rank, id)) {
      std::int64_t lo = destination_[part].box.lo[0];
      auto first = firsts.emplace(rank, lo).first;
      first->second = std::min(first->second, lo);
    }
  std::set<Rank> at_fault;
  for (const CopyFault* fault : tensor.faults) {
    auto first = firsts.find(fault->to);
    if (first == firsts.end() || fault->got_lo[0] != fault->box.lo[0] - first->second) return {};
    at_fault.insert(fault->to);
  }
  auto later =
      std::count_if(firsts.begin(), firsts.end(), [](const auto& of) { return of.second > 0; });
  if (later != std::ssize(at_fault)) return {};
  return fmt::format("local indices of {} are taken for global ones, on every rank from 0 on",
                     source_.tensors()[id].name);
}

// Whole entries of stacked tensors arrive in another order, which is the same for all tensors of a
// layer.
void NumbersOfIndices::find_maps() {
  using Wanted = std::pair<Rank, std::int64_t>;
  struct Layer {
    std::map<ModelTensorId, std::map<Wanted, std::set<std::int64_t>>> got;
    bool is_stacked = false;
  };
  std::map<std::pair<std::vector<std::int64_t>, std::int64_t>, Layer> layers;
  for (const auto& [id, tensor] : tensors_) {
    const Shape& shape = source_.tensors()[id].shape;
    std::vector<std::int64_t> numbers;
    for (const auto& number : numbered(source_.tensors()[id].name).numbers)
      numbers.push_back(number.value);
    Layer& layer = layers[{numbers, shape[0]}];
    layer.is_stacked = layer.is_stacked || shape.size() > 2;
    auto& got = layer.got[id];
    std::int64_t indices = 0;
    for (const CopyFault* fault : tensor.faults)
      for (std::int64_t i = 0; i < fault->box.extent(0) && ++indices <= kMostIndices; ++i)
        got[{fault->to, fault->box.lo[0] + i}].insert(fault->got_lo[0] + i);
  }
  for (const auto& [numbers, layer] : layers) {
    const auto& first = layer.got.begin()->second;
    bool alike = std::all_of(layer.got.begin(), layer.got.end(),
                             [&](const auto& of) { return of.second == first; });
    if (!layer.is_stacked || layer.got.size() < 2 || !alike) continue;
    bool from_zero = std::all_of(layer.got.begin(), layer.got.end(),
                                 [&](const auto& of) { return !from_zero_.at(of.first).empty(); });
    for (const auto& [id, got] : layer.got)
      mapped_[id] =
          from_zero
              ? from_zero_.at(id)
              : fmt::format("indices of {} are numbered by another map: rank {} gets {} for {}",
                            source_.tensors()[id].name, to_int(first.begin()->first.first),
                            *first.begin()->second.begin(), first.begin()->first.second);
  }
}

}  // namespace reshard
