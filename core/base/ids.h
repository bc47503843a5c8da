// SPDX-License-Identifier: BSD-3-Clause
// Integers that must not be swapped. Counts and sizes stay plain int64_t.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reshard {

// A process or GPU of the job, numbered globally; rank r runs on device r of the topology. 0 ..
// kMaxRanks-1.
enum class Rank : std::int32_t {};
inline constexpr std::int64_t kMaxRanks = std::int64_t{1} << 20;
constexpr std::int32_t to_int(Rank rank) { return static_cast<std::int32_t>(rank); }

// A tensor of a plan: index into Plan::tensors. Most plans have one, 0.
enum class TensorId : std::int32_t {};
constexpr std::size_t to_index(TensorId id) { return static_cast<std::size_t>(id); }

// A buffer of a plan: index into Plan::buffers.
enum class BufferId : std::int32_t {};
constexpr std::size_t to_index(BufferId id) { return static_cast<std::size_t>(id); }

// A step of a plan: index into Plan::steps.
enum class StepId : std::int32_t {};
constexpr std::size_t to_index(StepId id) { return static_cast<std::size_t>(id); }

// An operation of a workload: index into Workload::operations.
enum class OpId : std::int32_t {};
constexpr std::size_t to_index(OpId id) { return static_cast<std::size_t>(id); }

// A resource of a topology (a directed link, a staging buffer): 0 .. Topology::resource_count()-1.
enum class ResourceId : std::int32_t {};
constexpr std::size_t to_index(ResourceId id) { return static_cast<std::size_t>(id); }

// Position in Plan::ranks: the ranks of a plan are dense there whatever their global numbers.
using Slot = std::int32_t;

}  // namespace reshard
