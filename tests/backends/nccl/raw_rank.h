// SPDX-License-Identifier: BSD-3-Clause
// One rank that calls the NCCL stand-in directly: for tests that misuse it, or that need no plan.
#pragma once

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/standins/nccl_ranks.h"

namespace reshard::test {

using backends::Event;
using backends::Stream;
using backends::nccl::NcclComm;
using backends::nccl::NcclOp;
using backends::nccl::NcclResult;
using backends::nccl::NcclType;
using backends::nccl::NcclUniqueId;

struct RawRank {
  StandinParts parts;
  std::int32_t rank = 0, world = 0;
  StandinDevice* device = nullptr;
  Stream stream = nullptr;
  Event event = nullptr;
  NcclComm comm = nullptr;
  std::byte *a = nullptr, *b = nullptr;  // 4 KiB each

  RawRank(StandinParts parts_in, std::int32_t rank_in, std::int32_t world_in)
      : parts(std::move(parts_in)), rank(rank_in), world(world_in) {
    device = parts.devices[0].get();
    stream = device->create_stream();
    event = device->create_event();
    a = device->allocate(4096);
    b = device->allocate(4096);
  }
  backends::nccl::NcclApi& api() { return *parts.api; }

  NcclUniqueId shared_id() {
    NcclUniqueId id;
    if (rank == 0) api().get_unique_id(&id);
    std::vector<std::byte> bytes = parts.meeting->broadcast(std::as_bytes(std::span(&id, 1)));
    std::memcpy(&id, bytes.data(), sizeof id);
    return id;
  }
  void init() { init(world, rank, shared_id()); }
  void init(int size, int as, const NcclUniqueId& id) {
    device->select();
    api().init_rank(&comm, size, id, as, 0);
    settle(comm);
  }
  void settle(NcclComm one) {
    NcclResult state = NcclResult::InProgress;
    while (state == NcclResult::InProgress) api().async_error(one, &state);
  }
  void wait() {
    device->record(event, stream);
    while (!device->done(event)) std::this_thread::yield();
  }
  void send(int peer, std::int64_t bytes = 64) {
    api().send(a, bytes, NcclType::Uint8, peer, comm, stream);
  }
  void receive(int peer, std::int64_t bytes = 64) {
    api().receive(b, bytes, NcclType::Uint8, peer, comm, stream);
  }
  void close() {
    api().finalize(comm);
    settle(comm);
    api().destroy(comm);
  }
};

}  // namespace reshard::test
