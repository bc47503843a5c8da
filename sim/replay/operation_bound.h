// SPDX-License-Identifier: BSD-3-Clause
// The least time of each operation of a trace, alone and as part of the whole.
//
// Alone, two figures: of the operation, counted from the first of its ranks that starts; and of
// each rank's part, counted from that rank's start, since a rank may go on to its next operation
// while others still work. What a rank must receive enters it, and what it must send leaves it,
// between its own start and end.
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

// Bounds of a workload's operations; equal operations are worked out once and share theirs.
class OperationBounds {
 public:
  // Keeps a reference.
  explicit OperationBounds(const Topology& topology) : topology_(topology) {}

  // Where its transport lets switches do what they can, or lets them forward. Throws InputError
  // where a bound would be too much work (bounds.h).
  std::shared_ptr<const OperationBound> of(const Operation& operation, Switches use);

 private:
  std::shared_ptr<const OperationBound> of_request(const Request& request, Switches use);
  std::shared_ptr<const OperationBound> of_collective(const BareCollective& collective);
  OperationBound of_message(const PointToPoint& message) const;
  std::vector<std::int64_t> parts(const std::vector<Int128>& in_bytes, const CutSets& sets) const;
  std::int64_t least_latency_ps(Rank rank, bool into) const;

  const Topology& topology_;
  std::map<std::pair<Digest, Switches>, std::shared_ptr<const OperationBound>> requests_;
  std::map<std::tuple<BareKind::Value, Rank, std::int64_t, std::vector<Rank>>,
           std::shared_ptr<const OperationBound>>
      collectives_;
};

// Adds what the meaning of a collective brings into each set. Its ranks must be among those of the
// sets.
void add_collective(std::vector<Int128>& in_bytes, const CutSets& sets,
                    const BareCollective& collective);

// The greatest cut bound of a summed In(X): of all operations, over the sets of all ranks that the
// workload names, of those that have the same ranks, and of those that ranks join, over the sets of
// theirs.
std::int64_t summed_cut_bound_ps(const Workload& workload, const Topology& topology);

// The longest chain through streams and `after`: an operation's part starts behind its rank's
// previous one and all that it names in `after`, and takes no less than its bound. `bounds` by
// operation. The workload must be able to finish, receiving ends must stand at operations without
// ranks. Cut to int64.
std::int64_t longest_path_ps(const Workload& workload,
                             const std::vector<std::shared_ptr<const OperationBound>>& bounds);

}  // namespace reshard::sim
