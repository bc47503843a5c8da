// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/files/placement_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/printable.h"
#include "core/layout/box_index.h"
#include "sim/models/files/placement_json.h"
#include "sim/weights/mapped_file.h"

namespace reshard::sim {
namespace {

// Coordinates along the axes that count; -1 along the others.
template <class Axes>
PlacementCoordinates along(const PlacementCoordinates& at, const Axes& axes) {
  PlacementCoordinates out;
  for (std::size_t a = 0; a < out.size(); ++a) out[a] = axes[a] ? at[a] : -1;
  return out;
}

class Checker {
 public:
  Checker(const PlacementManifest& manifest, const std::string& place)
      : manifest_(manifest), place_(place) {}

  void check() {
    for (const PlacementTensor& tensor : manifest_.tensors)
      by_name_.emplace(name_of(tensor), &tensor);
    for (const PlacementTensor& tensor : manifest_.tensors) {
      check_aliases(tensor);
      check_cover(tensor);
    }
  }

 private:
  using Owner = PlacementCoordinates;
  using Replica = PlacementCoordinates;
  using Axes = std::array<bool, kPlacementAxes.size()>;

  static std::string_view name_of(const PlacementTensor& tensor) { return tensor.tensor.name; }
  [[noreturn]] void fail(const PlacementTensor& tensor, std::string_view expected,
                         std::string_view found) const {
    throw InputError(fmt::format("{}: tensor {}: expected {}, found {}", place_,
                                 reshard::quoted(name_of(tensor), 200), expected, found));
  }

  // Comparing each with the first of its group is enough to show that all are equal.
  void check_aliases(const PlacementTensor& tensor) const {
    if (tensor.aliases.empty()) return;
    auto first = by_name_.find(tensor.aliases.front());
    if (first == by_name_.end() || first->second->aliases != tensor.aliases)
      fail(tensor, "the same aliases for each of them",
           fmt::format("others for {}", reshard::quoted(tensor.aliases.front(), 200)));
    if (first->second->tensor.shape != tensor.tensor.shape ||
        first->second->tensor.dtype != tensor.tensor.dtype)
      fail(tensor, "aliases of its shape and dtype", "others");
    if (first->second != &tensor) return;
    for (const std::string& alias : tensor.aliases) {
      auto other = by_name_.find(alias);
      if (other == by_name_.end() || other->second->aliases.empty())
        fail(tensor, "the same aliases for each of them",
             fmt::format("none for {}", reshard::quoted(alias, 200)));
    }
  }

  // Each owner must have every element exactly once, and so must each replica of what it owns.
  void check_cover(const PlacementTensor& tensor) {
    if (tensor.fragments.empty()) fail(tensor, "at least one fragment", "none");
    std::map<std::pair<Owner, Replica>, std::vector<Box>> covers;
    for (const PlacementFragment& fragment : tensor.fragments) {
      const PlacementCoordinates& at = manifest_.participants[fragment.participant];
      covers[{along(at, tensor.is_owned), along(at, tensor.is_replicated)}].push_back(fragment.box);
    }
    std::map<Owner, std::size_t> replicas;
    for (const auto& [key, boxes] : covers) ++replicas[key.first];
    for (const auto& [owner, count] : replicas)
      if (std::size_t all = replicas_of(tensor, owner); count != all)
        fail(tensor, fmt::format("{} replicas, as the topology has", all), fmt::to_string(count));
    for (auto& [key, boxes] : covers) check_boxes(tensor, std::move(boxes));
  }

  void check_boxes(const PlacementTensor& tensor, std::vector<Box> boxes) const {
    Int128 elements = 0;
    for (const Box& box : boxes) elements += box.volume();
    std::int64_t all = element_count(tensor.tensor.shape);
    if (elements < all)
      fail(tensor, fmt::format("all {} elements in each replica", all),
           fmt::to_string(static_cast<std::int64_t>(elements)));
    if (elements > all || (boxes.size() > 1 && BoxIndex(std::move(boxes)).overlap()))
      fail(tensor, "each element once in a replica", "some twice");
  }

  // The number of replicas among an owner's participants; computed once for all tensors of equal
  // axes.
  std::size_t replicas_of(const PlacementTensor& tensor, const Owner& owner) {
    auto [found, is_new] = replicas_.try_emplace({tensor.is_owned, tensor.is_replicated});
    if (is_new) {
      std::map<Owner, std::set<Replica>> sets;
      for (const PlacementCoordinates& at : manifest_.participants)
        sets[along(at, tensor.is_owned)].insert(along(at, tensor.is_replicated));
      for (const auto& [each, set] : sets) found->second[each] = set.size();
    }
    return found->second.at(owner);
  }

  const PlacementManifest& manifest_;
  const std::string& place_;
  std::map<std::string_view, const PlacementTensor*> by_name_;
  std::map<std::pair<Axes, Axes>, std::map<Owner, std::size_t>> replicas_;
};

}  // namespace

ForeignLayouts parse_placement(std::string_view text, const std::string& place,
                               std::string_view side, std::int64_t first_rank) {
  PlacementManifest manifest = parse_placement_json(text, place);
  Checker(manifest, place).check();
  ForeignLayouts out;
  out.end_rank = first_rank + std::ssize(manifest.participants);
  if (out.end_rank > kMaxRanks)
    throw InputError(
        fmt::format("{}: expected at most {} ranks, found {}", place, kMaxRanks, out.end_rank));
  BoxBuffers buffers(side);
  for (PlacementTensor& each : manifest.tensors) {
    if (!each.aliases.empty() && each.aliases.front() != each.tensor.name)
      each.tensor.alias_of = each.aliases.front();
    for (const PlacementFragment& fragment : each.fragments) {
      std::int64_t rank = first_rank + static_cast<std::int64_t>(fragment.participant);
      buffers.add(Rank{static_cast<std::int32_t>(rank)}, each.tensor, fragment.box);
    }
  }
  out.buffers = buffers.lines();
  for (bool are_aliases : {false, true})
    for (const PlacementTensor& each : manifest.tensors)
      if (each.tensor.alias_of.empty() != are_aliases) out.tensors.push_back(each.tensor);
  return out;
}

ForeignLayouts read_placement(const std::string& path, std::string_view side,
                              std::int64_t first_rank) {
  MappedFile file(path, "a placement manifest of Mooncake");
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  return parse_placement(after_byte_order_mark(text), shown_path(path), side, first_rank);
}

}  // namespace reshard::sim
