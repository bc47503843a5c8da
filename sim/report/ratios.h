// SPDX-License-Identifier: BSD-3-Clause
// Figures that several reports derive from times and bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/layout/request.h"

namespace reshard::sim {

// time / bound in units of 1/10,000, rounded half up; none if the bound is 0.
std::optional<std::int64_t> ratio_e4(std::int64_t time_ps, std::int64_t bound_ps);

// Elements of the tensor that a rank holds: those of its shard without padding.
std::int64_t elements_held(const Layout& layout, std::int32_t position);

// The bandwidths that nccl-tests prints, for any plan; none if no time passes. algbw: bytes of the
// largest shard on either side / time; with several tensors, of all shards of the rank that holds
// most. busbw: bytes received by the rank that receives most / time. For a single ring collective
// both agree with nccl-tests.
struct Bandwidths {
  std::optional<std::int64_t> algorithm_bytes_per_s, bus_bytes_per_s;
};
Bandwidths bandwidths_of(std::span<const Request> tensors, std::int64_t bytes_received_max,
                         std::int64_t time_ps);

}  // namespace reshard::sim
