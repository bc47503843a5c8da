// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/streams.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

Streams::Streams(const Workload& workload) {
  add_places(workload);
  link(workload);
  std::size_t count = workload.operations.size();
  dependents = Grouped<std::int32_t>(count, [&](auto put) {
    for (std::size_t op = 0; op < count; ++op)
      for (OpId before : workload.operations[op].after) {
        RESHARD_CHECK(to_index(before) < count,
                      fmt::format("operation {} comes after operation {}, which does not exist", op,
                                  to_index(before)));
        put(to_index(before), static_cast<std::int32_t>(op));
      }
  });
}

void Streams::add_places(const Workload& workload) {
  for (const Operation& operation : workload.operations) {
    std::vector<Rank> own = ranks_of(operation);
    const auto* message = std::get_if<Message>(&operation.body);
    if (message != nullptr && message->source == message->destination &&
        message->destination_stream == operation.stream)
      own.pop_back();
    RESHARD_CHECK(places.size() + own.size() <=
                      static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
                  "more places than 2^31");
    auto op = static_cast<std::int32_t>(first_.size());
    first_.push_back(static_cast<std::int32_t>(places.size()));
    ranks.insert(ranks.end(), own.begin(), own.end());
    places.resize(ranks.size(), {op});
  }
  first_.push_back(static_cast<std::int32_t>(places.size()));
}

void Streams::link(const Workload& workload) {
  // `at`: index among the operations. The operation of that index itself (`own`) comes after
  // receiving ends placed before it.
  struct Entry {
    Rank rank;
    std::int32_t stream, at;
    bool own;
    std::int32_t place;
    auto key() const { return std::tie(rank, stream, at, own, place); }
  };
  std::vector<Entry> entries;
  entries.reserve(places.size());
  for (std::size_t place = 0; place < places.size(); ++place) {
    std::int32_t op = places[place].op;
    const Operation& operation = workload.operations[static_cast<std::size_t>(op)];
    Entry entry{ranks[place], operation.stream, op, true, static_cast<std::int32_t>(place)};
    const auto* message = std::get_if<Message>(&operation.body);
    if (message != nullptr && entry.place != first_of(static_cast<std::size_t>(op))) {
      entry.stream = message->destination_stream;
      entry.at = static_cast<std::int32_t>(to_index(message->destination_place));
      entry.own = entry.at == op;
    }
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.key() < b.key(); });
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i].rank == entries[i - 1].rank && entries[i].stream == entries[i - 1].stream)
      places[static_cast<std::size_t>(entries[i - 1].place)].next = entries[i].place;
}

}  // namespace reshard::sim
