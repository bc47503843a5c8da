// SPDX-License-Identifier: BSD-3-Clause
// Integer ids of distinct types, so that they cannot be mixed up, and vectors indexed by them.
// Counts and sizes stay plain int64_t.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/limits.h"

namespace reshard {

// A process or GPU of the job, numbered globally, 0 .. kMaxRanks-1; rank r runs on device r of the
// topology.
enum class Rank : std::int32_t {};
constexpr std::int32_t to_int(Rank rank) { return static_cast<std::int32_t>(rank); }

// A tensor of a plan: index into Plan::tensors. Most plans have only tensor 0.
enum class TensorId : std::int32_t {};

// A buffer of a plan: index into Plan::buffers.
enum class BufferId : std::int32_t {};

// A step of a plan: index into Plan::steps.
enum class StepId : std::int32_t {};

// An operation of a workload: index into Workload::operations.
enum class OpId : std::int32_t {};

// A resource of a topology (a directed link, a staging buffer): 0 .. Topology::resource_count()-1.
enum class ResourceId : std::int32_t {};

// Position in Plan::ranks: slots are dense whatever the global numbers of the plan's ranks.
using Slot = std::int32_t;

template <class Index>
concept IndexLike = std::integral<Index> || std::is_enum_v<Index>;

// An id or an integer as an index or size of a standard container.
template <IndexLike Index>
constexpr std::size_t to_index(Index index) {
  return static_cast<std::size_t>(index);
}

// An index or a size as an id.
template <class Id>
constexpr Id id_of(std::size_t index) {
  return static_cast<Id>(index);
}

// A vector indexed by `Id`, which is an enumeration above or an integer type; plain integers of any
// type also index it. Debug builds check the range.
template <class Id, class T>
class IndexVector : public std::vector<T> {
  using Base = std::vector<T>;

 public:
  using Base::Base;
  IndexVector() = default;
  IndexVector(Base list) : Base(std::move(list)) {}

  template <class Index>
  requires std::same_as<Index, Id> || std::integral<Index>
  constexpr typename Base::reference operator[](Index index) {
    return Base::operator[](checked(index));
  }
  template <class Index>
  requires std::same_as<Index, Id> || std::integral<Index>
  constexpr typename Base::const_reference operator[](Index index) const {
    return Base::operator[](checked(index));
  }

 private:
  std::size_t checked([[maybe_unused]] auto index) const {
#ifndef NDEBUG
    RESHARD_CHECK(to_index(index) < this->size(), "an index out of range");
#endif
    return to_index(index);
  }
};

}  // namespace reshard
