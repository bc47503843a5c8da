// SPDX-License-Identifier: BSD-3-Clause
// Lower bounds on the time of each operation of a trace, and of the whole trace.
//
// An operation has two kinds of bounds: one for the whole, from the moment the first of its ranks
// starts; and one for each rank's part, from that rank's start, since a rank can go on to its next
// operation while others still work. Between its own start and end, a rank must receive all that it
// must receive and send all that it must send.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "core/base/digest.h"
#include "core/bounds/bounds.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"

namespace reshard::sim {

struct OperationBound {
  std::int64_t time_ps = 0;
  IndexVector<Slot, std::int64_t> part_ps;  // by rank, in the order of ranks_of(operation)
};

// Bounds of a workload's operations. Equal operations are computed once and share the result.
class OperationBounds {
 public:
  // Keeps a reference.
  explicit OperationBounds(const Topology& topology) : topology_(topology) {}

  // `use`: whether the operation's transport lets switches reduce and multicast. Throws InputError
  // if a bound would take too much work (bounds.h).
  std::shared_ptr<const OperationBound> of(const Operation& operation, Switches use);

 private:
  std::shared_ptr<const OperationBound> of_requests(std::span<const Request> requests,
                                                    const Stages& stages, Switches use);
  std::shared_ptr<const OperationBound> of_collective(const BareCollective& collective);
  OperationBound of_message(const PointToPoint& message) const;

  const Topology& topology_;
  std::map<std::pair<Digest, Switches>, std::shared_ptr<const OperationBound>> requests_;
  std::map<std::tuple<BareKind::Value, Rank, std::int64_t, std::vector<Rank>>,
           std::shared_ptr<const OperationBound>>
      collectives_;
};

// Adds to `in_bytes` (per set of CutSets) the bytes that a collective must bring into each set
// under any algorithm. Its ranks must be among those of the sets.
void add_collective(std::vector<Int128>& in_bytes, const CutSets& sets,
                    const BareCollective& collective);

// The greatest of the cut bounds of a summed In(X) (bounds.h): summed over all operations that move
// bytes; over those with the same ranks; and over those connected through shared ranks. Each sum
// uses the sets of exactly the ranks of its operations.
std::int64_t summed_cut_bound_ps(const Workload& workload, const Topology& topology);

// The longest chain through streams and `after`: a rank's part of an operation starts after the
// previous one on its stream and after everything named in `after`, and takes at least its bound.
// `bounds` is indexed by operation. The workload must be able to finish. Saturates at the greatest
// int64.
std::int64_t longest_path_ps(const Workload& workload,
                             const std::vector<std::shared_ptr<const OperationBound>>& bounds);

}  // namespace reshard::sim
