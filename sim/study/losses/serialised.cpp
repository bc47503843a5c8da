// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/losses/serialised.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace reshard::sim {
namespace {

class Waits {
 public:
  Waits(const Workload& workload, const Order& order, const Timeline& timeline)
      : workload_(workload),
        order_(order),
        ends_ps_(order.nodes(), 0),
        complete_ps_(workload.operations.size(), 0),
        named_ps_(workload.operations.size(), 0) {
    // Spans are sorted by operation.
    std::vector<std::pair<Rank, std::int32_t>> places;
    OpId known{-1};
    for (const Span& span : timeline.spans) {
      if (span.op != known) places = places_of(span.op);
      known = span.op;
      auto at = std::lower_bound(places.begin(), places.end(), std::pair{span.rank, 0});
      std::int64_t& end = ends_ps_[at->second];
      end = std::max(end, span.end_ps);
      complete_ps_[span.op] = std::max(complete_ps_[span.op], span.end_ps);
    }
    // Computed once up front: many launches can wait for one batch, and all ranks of an operation
    // wait for what it names in `after`.
    for (const Order::LaunchNodes& launch : order.launches()) {
      if (order.is_place(launch.gate)) continue;
      for (std::int32_t place : order.batch_of(launch.gate))
        ends_ps_[launch.gate] = std::max(ends_ps_[launch.gate], ends_ps_[place]);
      ends_ps_[launch.end] = ends_ps_[launch.gate];
    }
    for (std::size_t op = 0; op < workload.operations.size(); ++op)
      for (OpId before : workload.operations[op].after)
        named_ps_[id_of<OpId>(op)] = std::max(named_ps_[id_of<OpId>(op)], complete_ps_[before]);
  }

  std::optional<Serialised> of(const Order::LaunchNodes& launch) const {
    std::int32_t first = first_place(launch.gate);
    OpId op = order_.op_of(first);
    if (!moves_bytes(workload_.operations[to_index(op)])) return std::nullopt;
    const Order::Predecessors& predecessors = order_.predecessors(launch.gate);
    std::int64_t stream = end_of(predecessors.stream),
                 communicator = end_of(predecessors.communicator);
    bool by_communicator = communicator >= stream;
    std::int32_t last = by_communicator ? predecessors.communicator : predecessors.stream;
    std::int64_t to_ps = std::max(stream, communicator), from_ps = end_of(predecessors.host);
    if (by_communicator && predecessors.stream != predecessors.communicator)
      from_ps = std::max(from_ps, stream);
    if (!by_communicator) from_ps = std::max(from_ps, communicator);
    from_ps = std::max(from_ps, named_end(launch.gate));
    if (last == Order::kNone || from_ps >= to_ps) return std::nullopt;
    OpId before = order_.op_of(first_place(last));
    if (!moves_bytes(workload_.operations[to_index(before)])) return std::nullopt;
    return Serialised{op, before, order_.rank_of(launch.gate), from_ps, to_ps};
  }

 private:
  // (rank, place) of an operation, ascending.
  std::vector<std::pair<Rank, std::int32_t>> places_of(OpId op) const {
    std::vector<std::pair<Rank, std::int32_t>> out;
    std::int32_t place = order_.first_of(op);
    for (Rank rank : order_.ranks_of(op)) out.emplace_back(rank, place++);
    std::sort(out.begin(), out.end());
    return out;
  }

  std::int32_t first_place(std::int32_t node) const {
    return order_.is_place(node) ? node : order_.batch_of(node).front();
  }

  // When the node ended; 0 for kNone.
  std::int64_t end_of(std::int32_t node) const { return node == Order::kNone ? 0 : ends_ps_[node]; }

  // When everything that the launch's operations name in `after` was complete.
  std::int64_t named_end(std::int32_t gate) const {
    if (order_.is_place(gate)) return named_ps_[order_.op_of(gate)];
    std::int64_t end = 0;
    for (std::int32_t place : order_.batch_of(gate))
      end = std::max(end, named_ps_[order_.op_of(place)]);
    return end;
  }

  const Workload& workload_;
  const Order& order_;
  IndexVector<std::int32_t, std::int64_t> ends_ps_;  // by node
  IndexVector<OpId, std::int64_t> complete_ps_;
  IndexVector<OpId, std::int64_t> named_ps_;  // when everything named in `after` is complete
};

}  // namespace

std::vector<Serialised> serialised_launches(const Workload& workload, const Order& order,
                                            const Timeline& timeline) {
  Waits waits(workload, order, timeline);
  std::vector<Serialised> out;
  for (const Order::LaunchNodes& launch : order.launches())
    if (std::optional<Serialised> held = waits.of(launch)) out.push_back(*held);
  return out;
}

}  // namespace reshard::sim
