// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/serialised.h"

#include <algorithm>
#include <optional>

namespace reshard::sim {
namespace {

class Waits {
 public:
  Waits(const Workload& workload, const Order& order, const Timeline& timeline)
      : workload_(workload),
        order_(order),
        ends_ps_(order.places(), 0),
        complete_ps_(workload.operations.size(), 0) {
    for (const Span& span : timeline.spans) {
      std::int64_t& end = ends_ps_[place_of(span)];
      end = std::max(end, span.end_ps);
      complete_ps_[span.op] = std::max(complete_ps_[span.op], span.end_ps);
    }
  }

  std::optional<Serialised> of(const Order::Launch& launch) const {
    std::int32_t first = first_place(launch.gate);
    OpId op = order_.op_of(first);
    if (!moves_bytes(workload_.operations[to_index(op)])) return std::nullopt;
    const Order::Behind& behind = order_.behind(launch.gate);
    std::int64_t stream = end_of(behind.stream), communicator = end_of(behind.communicator);
    bool by_communicator = communicator >= stream;
    std::int32_t last = by_communicator ? behind.communicator : behind.stream;
    std::int64_t to_ps = std::max(stream, communicator), from_ps = end_of(behind.host);
    if (by_communicator && behind.stream != behind.communicator)
      from_ps = std::max(from_ps, stream);
    if (!by_communicator) from_ps = std::max(from_ps, communicator);
    from_ps = std::max(from_ps, named_end(launch.gate));
    if (last == Order::kNone || from_ps >= to_ps) return std::nullopt;
    OpId before = order_.op_of(first_place(last));
    if (!moves_bytes(workload_.operations[to_index(before)])) return std::nullopt;
    return Serialised{op, before, order_.rank_of(launch.gate), from_ps, to_ps};
  }

 private:
  std::size_t place_of(const Span& span) const {
    std::span<const Rank> ranks = order_.ranks_of(span.op);
    auto at = std::find(ranks.begin(), ranks.end(), span.rank);
    return to_index(order_.first_of(span.op)) + to_index(at - ranks.begin());
  }

  std::int32_t first_place(std::int32_t node) const {
    return order_.is_place(node) ? node : order_.batch_of(node).front();
  }

  // Of a node; 0 of none.
  std::int64_t end_of(std::int32_t node) const {
    if (node == Order::kNone) return 0;
    if (order_.is_place(node)) return ends_ps_[node];
    std::int64_t end = 0;
    for (std::int32_t place : order_.batch_of(node)) end = std::max(end, ends_ps_[place]);
    return end;
  }

  // Of all that the launch's operations name in `after`.
  std::int64_t named_end(std::int32_t gate) const {
    std::int64_t end = 0;
    auto add = [&](std::int32_t place) {
      for (OpId before : workload_.operations[to_index(order_.op_of(place))].after)
        end = std::max(end, complete_ps_[before]);
    };
    if (order_.is_place(gate))
      add(gate);
    else
      for (std::int32_t place : order_.batch_of(gate)) add(place);
    return end;
  }

  const Workload& workload_;
  const Order& order_;
  IndexVector<std::int32_t, std::int64_t> ends_ps_;  // by place
  IndexVector<OpId, std::int64_t> complete_ps_;
};

}  // namespace

std::vector<Serialised> serialised_launches(const Workload& workload, const Order& order,
                                            const Timeline& timeline) {
  Waits waits(workload, order, timeline);
  std::vector<Serialised> out;
  for (const Order::Launch& launch : order.launches())
    if (std::optional<Serialised> held = waits.of(launch)) out.push_back(*held);
  return out;
}

}  // namespace reshard::sim
