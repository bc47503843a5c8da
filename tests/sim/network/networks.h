// SPDX-License-Identifier: BSD-3-Clause
// Small topologies and workloads shared by the engine's tests and benchmarks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/topology/topology.h"
#include "core/traffic/workload.h"

namespace reshard::test {

// n devices around one switch that is never the limit: each device has a way out and a way in, all
// alike.
inline Topology switched(std::int32_t n, std::int64_t bytes_per_s, std::int64_t latency_ps = 0,
                         std::optional<std::int64_t> cap = {}) {
  NodeTemplate node;
  node.devices = n;
  node.ports = {{"port", bytes_per_s, bytes_per_s}};
  node.rules = {{{{Hop::Kind::SourceOut, 0}, {Hop::Kind::DestinationIn, 0}},
                 latency_ps,
                 cap,
                 Transport::NVLink}};
  node.rule_within = {0};
  return Topology("star", node, {}, 1);
}

// n devices that reach each other through one shared resource only.
inline Topology shared_medium(std::int32_t n, std::int64_t bytes_per_s, std::int64_t latency_ps = 0,
                              std::optional<std::int64_t> cap = {}) {
  NodeTemplate node;
  node.devices = n;
  node.shared = {{"staging", bytes_per_s}};
  node.rules = {{{{Hop::Kind::SourceNodeShared, 0}}, latency_ps, cap, Transport::Host}};
  node.rule_within = {0};
  return Topology("medium", node, {}, 1);
}

inline ResourceId out_of(std::int32_t device) { return ResourceId{2 * device}; }
inline ResourceId into(std::int32_t device) { return ResourceId{2 * device + 1}; }

inline Operation message(std::int32_t source, std::int32_t destination, std::int64_t bytes,
                         std::int32_t index, std::vector<OpId> after = {}, std::int32_t stream = 0,
                         std::int32_t destination_stream = 0) {
  Operation out{PointToPoint{Rank{source}, Rank{destination}, bytes}, stream, std::move(after)};
  if (destination_stream != stream)
    out.seats = {{OpId{index}, stream}, {OpId{index}, destination_stream}};
  return out;
}

// Both ends on stream 0, the receiving one just before the operation `place`; of that index itself.
inline Operation received_at(std::int32_t place, std::int32_t source, std::int32_t destination,
                             std::int64_t bytes, std::int32_t index) {
  Operation out{PointToPoint{Rank{source}, Rank{destination}, bytes}, 0, {}};
  out.seats = {{OpId{index}, 0}, {OpId{place}, 0}};
  return out;
}

inline std::vector<Rank> ranks(std::int32_t count, std::int32_t first = 0) {
  std::vector<Rank> out;
  for (std::int32_t r = first; r < first + count; ++r) out.push_back(Rank{r});
  return out;
}

// All pairs of n ranks, one message each, all free to start at once: each end has a stream of its
// own.
template <typename Bytes>
Workload all_pairs(std::int32_t n, Bytes bytes) {
  Workload workload;
  for (std::int32_t i = 0; i < n; ++i)
    for (std::int32_t j = 1; j < n; ++j) {
      auto index = static_cast<std::int32_t>(workload.operations.size());
      workload.operations.push_back(
          message(i, (i + j) % n, bytes(i, j), index, {}, 2 * j, 2 * j + 1));
    }
  return workload;
}

// Sizes without pattern: 97 of them.
inline std::int64_t uneven_bytes(std::int32_t i, std::int32_t j) {
  return 1'000'000 * (1 + (7919 * std::int64_t{i} + 104729 * std::int64_t{j}) % 97);
}

// A plan without steps on ranks 0..n-1, one byte per element. The engine asks for nothing else of a
// request.
inline Plan empty_plan(std::int32_t n) {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({n}));
  return Plan(Request(parse_layout("64", "u8", mesh, "S(0)"), parse_layout("64", "u8", mesh, "R")),
              "test");
}

struct Sent {
  Slot source, destination;
  std::int64_t bytes;
};

// One message per entry, ascending by (source, destination).
inline ExchangeStep exchange(const std::vector<Sent>& sent) {
  ExchangeStep step;
  for (const Sent& message : sent) {
    step.messages.push_back(
        {message.source, message.destination, {static_cast<std::uint32_t>(step.moves.size()), 1}});
    step.moves.push_back({kSourceBuffer, kDestinationBuffer, {0}, {0}, {message.bytes}});
  }
  return step;
}

// Every slot copies something of its own.
inline CopyStep copies(const std::vector<Slot>& slots) {
  CopyStep step;
  for (Slot slot : slots) {
    step.parts.push_back({slot, {static_cast<std::uint32_t>(step.moves.size()), 1}});
    step.moves.push_back({kSourceBuffer, kDestinationBuffer, {0}, {0}, {1}});
  }
  return step;
}

}  // namespace reshard::test
