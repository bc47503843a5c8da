// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard::sim {

// A place in its rank's order. At one operation setups come first, and the operation's own place
// last.
struct Order::Entry {
  enum class Kind : std::uint8_t { Setup, Before, Own };

  std::int32_t place;
  Seat seat;
  Kind kind;

  auto key() const { return std::tie(seat.at, kind, place); }
};

// What a rank issued last.
struct Order::Last {
  std::map<std::int32_t, std::int32_t> on_stream, of_communicator;  // end nodes
  std::int32_t host = kNone, launch = kNone;                        // an end, a gate

  static std::int32_t find(const std::map<std::int32_t, std::int32_t>& list, std::int32_t key) {
    auto it = list.find(key);
    return it == list.end() ? kNone : it->second;
  }
};

std::array<std::int32_t, 3> Order::Predecessors::ends() const {
  std::array<std::int32_t, 3> out{stream, communicator, host};
  if (out[1] == out[0]) out[1] = kNone;
  if (out[2] == out[0] || out[2] == out[1]) out[2] = kNone;
  return out;
}

Order::Order(const Workload& workload, OrderRules rules) : rules_(rules) {
  add_places(workload);
  add_dependents(workload);
  std::vector<Entry> all = entries(workload);
  for (Rank rank : ranks_) highest_ = std::max(highest_, to_int(rank));
  Grouped<std::int32_t> of_rank(to_index(highest_ + 1), [&](auto put) {
    for (std::size_t place = 0; place < places(); ++place)
      put(to_int(ranks_[place]), static_cast<std::int32_t>(place));
  });
  predecessors_.resize(places());
  waits_.resize(places());
  std::vector<Entry> own;
  for (std::int32_t rank = 0; rank <= highest_; ++rank) {
    own.clear();
    for (std::int32_t place : of_rank[rank]) own.push_back(all[to_index(place)]);
    auto before = [](const Entry& a, const Entry& b) { return a.key() < b.key(); };
    if (!std::is_sorted(own.begin(), own.end(), before)) std::sort(own.begin(), own.end(), before);
    add_launches(workload, own);
  }
  link();
}

bool Order::ends_launch(std::int32_t node) const {
  if (is_place(node)) return gate_of(node) == node;
  return (to_index(node) - places()) % 2 == 1;
}

std::span<const std::int32_t> Order::batch_of(std::int32_t node) const {
  return at_end_[is_place(node) ? gate_of(node) : ends_launch(node) ? node - 1 : node];
}

std::span<const Rank> Order::ranks_of(OpId op) const {
  return std::span(ranks_).subspan(to_index(first_of(op)), to_index(end_of(op) - first_of(op)));
}

void Order::add_places(const Workload& workload) {
  for (const Operation& operation : workload.operations) {
    std::vector<Rank> own = reshard::ranks_of(operation);
    auto op = id_of<OpId>(first_.size());
    RESHARD_CHECK(operation.seats.empty() || operation.seats.size() == own.size(),
                  "an operation with another number of seats than ranks");
    if (const auto* message = std::get_if<PointToPoint>(&operation.body);
        message != nullptr && message->source == message->destination &&
        operation.seat(0, op).stream == operation.seat(1, op).stream)
      own.pop_back();
    RESHARD_CHECK(places() + own.size() <= to_index(std::numeric_limits<std::int32_t>::max() / 2),
                  "more places than 2^30");
    first_.push_back(static_cast<std::int32_t>(places()));
    ranks_.insert(ranks_.end(), own.begin(), own.end());
    ops_.resize(ranks_.size(), op);
  }
  first_.push_back(static_cast<std::int32_t>(places()));
}

void Order::add_dependents(const Workload& workload) {
  std::size_t count = workload.operations.size();
  dependents_ = Grouped<OpId>(count, [&](auto put) {
    for (std::size_t op = 0; op < count; ++op)
      for (OpId before : workload.operations[op].after) {
        RESHARD_CHECK(to_index(before) < count,
                      fmt::format("operation {} comes after operation {}, which does not exist", op,
                                  to_index(before)));
        put(before, id_of<OpId>(op));
      }
  });
}

// By place.
std::vector<Order::Entry> Order::entries(const Workload& workload) const {
  std::vector<Entry> out;
  out.reserve(places());
  for (std::size_t i = 0; i < places(); ++i) {
    auto place = static_cast<std::int32_t>(i);
    OpId op = op_of(place);
    const Operation& operation = workload.operations[to_index(op)];
    Seat seat = operation.seat(to_index(place - first_of(op)), op);
    Entry::Kind kind = std::holds_alternative<Setup>(operation.body) ? Entry::Kind::Setup
                       : seat.at == op                               ? Entry::Kind::Own
                                                                     : Entry::Kind::Before;
    out.push_back({place, seat, kind});
  }
  return out;
}

// A batch: its gate releases the places, its end follows all of them.
Order::LaunchNodes Order::join(std::span<const Entry> batch) {
  if (gates_.empty()) {
    gates_.resize(places());
    ends_.resize(places(), kNone);
    for (std::size_t place = 0; place < places(); ++place)
      gates_[place] = static_cast<std::int32_t>(place);
  }
  auto gate = static_cast<std::int32_t>(nodes()), end = gate + 1;
  predecessors_.resize(nodes() + 2);
  waits_.resize(nodes());
  ranks_.resize(nodes(), ranks_[batch.front().place]);
  for (const Entry& entry : batch) {
    gates_[entry.place] = gate;
    ends_[entry.place] = end;
    waits_[entry.place] = 1;
  }
  waits_[end] = static_cast<std::int32_t>(batch.size());
  return {gate, end};
}

void Order::add_launches(const Workload& workload, std::span<const Entry> of_rank) {
  Last last;
  for (std::size_t first = 0, next = 0; first < of_rank.size(); first = next) {
    const Seat& seat = of_rank[first].seat;
    for (next = first + 1;
         seat.batch >= 0 && next < of_rank.size() && of_rank[next].seat.batch == seat.batch;)
      ++next;
    std::span<const Entry> entries = of_rank.subspan(first, next - first);
    std::int32_t place = entries.front().place;
    const Operation& operation = workload.operations[to_index(op_of(place))];
    LaunchNodes launch = entries.size() == 1 ? LaunchNodes{place, place} : join(entries);
    launches_.push_back(launch);
    Predecessors& predecessors = predecessors_[launch.gate];
    predecessors.host = last.host;
    if (std::holds_alternative<Setup>(operation.body)) {
      last.host = launch.end;
    } else {
      predecessors.stream = Last::find(last.on_stream, seat.stream);
      if (!seat.async) last.on_stream[seat.stream] = launch.end;
      if (operation.communicator >= 0 && rules_.communicators) {
        predecessors.communicator = Last::find(last.of_communicator, operation.communicator);
        last.of_communicator[operation.communicator] = launch.end;
        if (rules_.implicit_launch_order) {
          predecessors.launch = last.launch;
          last.launch = launch.gate;
        }
      }
    }
    for (std::int32_t node : predecessors.ends()) waits_[launch.gate] += node != kNone ? 1 : 0;
    waits_[launch.gate] += predecessors.launch != kNone ? 1 : 0;
  }
}

void Order::link() {
  at_end_ = Grouped<std::int32_t>(nodes(), [this](auto put) {
    for (std::size_t i = 0; i < nodes(); ++i) {
      auto node = static_cast<std::int32_t>(i);
      for (std::int32_t before : predecessors_[node].ends())
        if (before != kNone) put(before, node);
      if (!is_place(node) || gate_of(node) == node) continue;
      put(gate_of(node), node);
      put(node, ends_[node]);
    }
  });
  at_start_ = Grouped<std::int32_t>(nodes(), [this](auto put) {
    for (std::size_t node = 0; node < nodes(); ++node)
      if (predecessors_[node].launch != kNone)
        put(predecessors_[node].launch, static_cast<std::int32_t>(node));
  });
  issued_ = Grouped<std::int32_t>(to_index(highest_ + 1), [this](auto put) {
    for (std::size_t i = 0; i < launches_.size(); ++i)
      put(to_int(ranks_[launches_[i].gate]), static_cast<std::int32_t>(i));
  });
}

}  // namespace reshard::sim
