// SPDX-License-Identifier: BSD-3-Clause
// Every check of the stand-in fires on the mistake that it is for, and not on similar correct use.
#include <catch2/catch.hpp>

#include "tests/backends/nccl/raw_rank.h"

namespace reshard::test {
namespace {

// What the stand-in found when every rank ran the body; empty where nothing was wrong.
std::string finding(std::int32_t world, const std::function<void(RawRank&)>& body,
                    NcclWorldOptions options = {}) {
  StandinJob job;
  job.world = world;
  job.standin = options;
  StandinOutcome outcome = run_parts(job, [&](StandinParts parts, std::int32_t driver) {
    RawRank rank(std::move(parts), driver, world);
    body(rank);
  });
  return outcome.misuse;
}

using Catch::Matchers::Contains;

TEST_CASE("right use is not complained of, and bytes arrive") {
  for (std::uint64_t seed : {0u, 1u, 2u, 3u}) {
    NcclWorldOptions options;
    options.seed = seed;
    bool right = true;
    std::string found = finding(
        3,
        [&](RawRank& rank) {
          rank.init();
          rank.device->set_bytes(rank.a, 4096, static_cast<std::uint8_t>(10 + rank.rank),
                                 rank.stream);
          // A ring in one group, then two messages of a pair in order, then collectives.
          rank.api().group_start();
          rank.send((rank.rank + 1) % 3);
          rank.receive((rank.rank + 2) % 3);
          rank.api().group_end();
          std::byte got{};
          rank.device->download({&got, 1}, rank.b, rank.stream);
          if (rank.rank == 0) {
            rank.send(1, 8);
            rank.send(1, 16);
          } else if (rank.rank == 1) {
            rank.receive(0, 8);
            rank.receive(0, 16);
          }
          rank.api().all_reduce(rank.a, rank.b, 4, NcclType::Int32, NcclOp::Sum, rank.comm,
                                rank.stream);
          rank.api().all_to_all(rank.a, rank.b, 4, NcclType::Uint8, rank.comm, rank.stream);
          rank.wait();
          if (got != std::byte(10 + (rank.rank + 2) % 3)) right = false;
          rank.close();
        },
        options);
    CHECK(found.empty());
    CHECK(right);
  }
}

TEST_CASE("sizes, types and order of messages") {
  auto both = [](std::int64_t sent, NcclType sent_type, std::int64_t received,
                 NcclType received_type) {
    return finding(2, [=](RawRank& rank) {
      rank.init();
      if (rank.rank == 0)
        rank.api().send(rank.a, sent, sent_type, 1, rank.comm, rank.stream);
      else
        rank.api().receive(rank.b, received, received_type, 0, rank.comm, rank.stream);
      rank.wait();
    });
  };
  CHECK(both(64, NcclType::Uint8, 64, NcclType::Uint8).empty());
  CHECK_THAT(both(64, NcclType::Uint8, 32, NcclType::Uint8),
             Contains("rank 1 receives 32 x type 1 from rank 0, which sends 64"));
  CHECK_THAT(both(64, NcclType::Uint8, 64, NcclType::Int8),
             Contains("rank 1 receives 64 x type 0"));
  std::string found = finding(2, [](RawRank& rank) {
    rank.init();
    if (rank.rank == 0) {
      rank.send(1, 8);
      rank.send(1, 16);
    } else {
      rank.receive(0, 16);
      rank.receive(0, 8);
    }
    rank.wait();
  });
  CHECK_THAT(found, Contains("rank 1 receives 16 x type 1 from rank 0, which sends 8"));
}

TEST_CASE("what would hang is found, with who waits for what") {
  // Both send first, outside a group.
  CHECK_THAT(
      finding(2,
              [](RawRank& rank) {
                rank.init();
                rank.send(1 - rank.rank);
                rank.receive(1 - rank.rank);
                rank.wait();
              }),
      Contains("deadlock") &&
          Contains("rank 0 waits in communicator of 2 ranks: send of 64 x type 1 to rank 1") &&
          Contains("rank 1 waits in communicator of 2 ranks: send"));
  // A receive that nobody sends to, one that nobody joins, a ring cut open.
  CHECK_THAT(
      finding(2,
              [](RawRank& rank) {
                rank.init();
                if (rank.rank == 1) rank.receive(0);
                rank.wait();
              }),
      Contains("rank 1 waits in communicator of 2 ranks: receive of 64 x type 1 from rank 0") &&
          Contains("rank 0 has ended"));
  CHECK_THAT(finding(3,
                     [](RawRank& rank) {
                       rank.init();
                       if (rank.rank != 2)
                         rank.api().all_gather(rank.a, rank.b, 8, NcclType::Uint8, rank.comm,
                                               rank.stream);
                       rank.wait();
                       rank.parts.meeting->gather({});
                       rank.parts.meeting->broadcast({});
                     }),
             Contains("rank 0 waits in communicator of 3 ranks: all_gather") &&
                 Contains("rank 2 waits in broadcast"));
  // A rank that does not come when a communicator is made.
  CHECK_THAT(finding(3,
                     [](RawRank& rank) {
                       NcclUniqueId id = rank.shared_id();
                       if (rank.rank != 1) rank.init(3, rank.rank, id);
                     }),
             Contains("communicator of 3 ranks lacks its rank 1"));
  // A rank that does not take part in a split.
  CHECK_THAT(finding(2,
                     [](RawRank& rank) {
                       rank.init();
                       NcclComm child = nullptr;
                       if (rank.rank == 0) rank.api().split(rank.comm, 0, 0, &child, 0);
                       if (rank.rank == 0) rank.settle(rank.comm);
                     }),
             Contains("rank 0 waits in a split"));
  // Two communicators used in different order: kernels of one wait for a GPU that the other holds.
  CHECK_THAT(finding(2,
                     [](RawRank& rank) {
                       rank.init();
                       NcclComm first = rank.comm;
                       rank.init();
                       NcclComm second = rank.comm;
                       for (int i = 0; i < 2; ++i)
                         rank.api().all_gather(rank.a, rank.b, 8, NcclType::Uint8,
                                               (i == rank.rank) ? first : second,
                                               i == 0 ? rank.stream : rank.device->create_stream());
                       rank.wait();
                     }),
             Contains("deadlock"));
  // And hosts that wait for each other without NCCL.
  CHECK_THAT(finding(2,
                     [](RawRank& rank) {
                       rank.rank == 0 ? rank.parts.meeting->gather({}).clear()
                                      : rank.parts.meeting->broadcast({}).clear();
                     }),
             Contains("rank 0 waits in gather; rank 1 waits in broadcast"));
}

TEST_CASE("collectives must agree") {
  auto pair = [](const std::function<void(RawRank&)>& first,
                 const std::function<void(RawRank&)>& second) {
    return finding(2, [&](RawRank& rank) {
      rank.init();
      (rank.rank == 0 ? first : second)(rank);
      rank.wait();
    });
  };
  auto reduce = [](std::int64_t count, NcclType type, NcclOp op) {
    return [=](RawRank& rank) {
      rank.api().all_reduce(rank.a, rank.b, count, type, op, rank.comm, rank.stream);
    };
  };
  auto right = reduce(4, NcclType::Int32, NcclOp::Sum);
  CHECK(pair(right, right).empty());
  for (auto& wrong :
       {reduce(5, NcclType::Int32, NcclOp::Sum), reduce(4, NcclType::Float32, NcclOp::Sum),
        reduce(4, NcclType::Int32, NcclOp::Max)})
    CHECK_THAT(pair(right, wrong), Contains("collective 0 of communicator of 2 ranks"));
  CHECK_THAT(pair(right,
                  [](RawRank& rank) {
                    rank.api().all_gather(rank.a, rank.b, 4, NcclType::Int32, rank.comm,
                                          rank.stream);
                  }),
             Contains("calls all_") && Contains("another all_"));
}

TEST_CASE("groups and life of communicators") {
  auto alone = [](const std::function<void(RawRank&)>& body, NcclWorldOptions options = {}) {
    return finding(
        1,
        [&](RawRank& rank) {
          rank.init();
          body(rank);
        },
        options);
  };
  CHECK(alone([](RawRank& rank) { rank.close(); }).empty());
  CHECK_THAT(alone([](RawRank& rank) { rank.api().group_end(); }),
             Contains("ncclGroupEnd without ncclGroupStart"));
  CHECK_THAT(alone([](RawRank& rank) {
               NcclComm child = nullptr;
               rank.api().group_start();
               rank.send(0);
               rank.receive(0);
               rank.api().split(rank.comm, 0, 0, &child, 0);
               rank.api().group_end();
             }),
             Contains("communicators are made and used in one group"));
  CHECK_THAT(alone([](RawRank& rank) { rank.send(1); }),
             Contains("names peer 1 of a communicator of 1: not a member"));
  CHECK_THAT(alone([](RawRank& rank) {
               rank.close();
               rank.send(0);
             }),
             Contains("communication of a communicator that was destroyed"));
  CHECK_THAT(alone([](RawRank& rank) {
               rank.api().abort(rank.comm);
               rank.send(0);
             }),
             Contains("communication of a communicator that was aborted"));
  CHECK_THAT(alone([](RawRank& rank) {
               rank.api().abort(rank.comm);
               rank.api().abort(rank.comm);
             }),
             Contains("ncclCommAbort of a communicator that is gone"));
  CHECK_THAT(alone([](RawRank& rank) {
               rank.api().finalize(rank.comm);
               rank.send(0);
             }),
             Contains("is finalized"));
  CHECK_THAT(alone([](RawRank& rank) {
               rank.send(0);
               rank.api().destroy(rank.comm);
             }),
             Contains("ncclCommDestroy with work outstanding"));
  CHECK_THAT(alone([](RawRank& rank) {
               NcclComm child = nullptr;
               rank.send(0);
               rank.api().split(rank.comm, 0, 0, &child, 0);
             }),
             Contains("work outstanding on the parent"));
  CHECK_THAT(alone([](RawRank& rank) {
               rank.api().group_start();
               rank.send(0);
               rank.api().receive(rank.b, 64, NcclType::Uint8, 0, rank.comm,
                                  rank.device->create_stream());
               rank.api().group_end();
             }),
             Contains("on two streams in one group"));
  CHECK_THAT(alone([](RawRank& rank) {
               rank.api().send(rank.a, 64, NcclType::Uint8, 0, reinterpret_cast<NcclComm>(rank.a),
                               rank.stream);
             }),
             Contains("what is no communicator"));
  NcclWorldOptions old;
  old.version = 21700;
  CHECK_THAT(alone(
                 [](RawRank& rank) {
                   NcclComm child = nullptr;
                   rank.api().split(rank.comm, 0, 0, &child, 0);
                 },
                 old),
             Contains("ncclCommSplit is not in this version"));
  CHECK_THAT(alone(
                 [](RawRank& rank) {
                   rank.api().all_to_all(rank.a, rank.b, 8, NcclType::Uint8, rank.comm,
                                         rank.stream);
                 },
                 old),
             Contains("ncclAlltoAll is not in this version"));
  NcclWorldOptions slow;
  slow.in_progress_polls = 3;
  CHECK_THAT(alone(
                 [](RawRank& rank) {
                   rank.api().group_start();
                   rank.send(0);
                   rank.receive(0);
                   rank.api().group_end();
                   rank.send(0);
                 },
                 slow),
             Contains("uses a communicator that is in progress"));
}

TEST_CASE("making communicators is collective and must agree") {
  CHECK_THAT(finding(2,
                     [](RawRank& rank) {
                       NcclUniqueId id = rank.shared_id();
                       rank.init(2 + rank.rank, rank.rank, id);
                     }),
             Contains("ranks, another"));
  CHECK_THAT(finding(2,
                     [](RawRank& rank) {
                       NcclUniqueId id = rank.shared_id();
                       rank.init(2, 0, id);
                     }),
             Contains("two ranks 0 in one communicator"));
  CHECK_THAT(finding(1, [](RawRank& rank) { rank.init(1, 0, NcclUniqueId{}); }),
             Contains("a unique id that nobody made"));
  NcclWorldOptions one_gpu;
  one_gpu.one_gpu = true;
  CHECK_THAT(finding(
                 2, [](RawRank& rank) { rank.init(); }, one_gpu),
             Contains("Duplicate GPU detected"));
  one_gpu.version = 23000;
  CHECK(finding(
            2, [](RawRank& rank) { rank.init(); }, one_gpu)
            .empty());
}

TEST_CASE("buffers must be device memory, all of them") {
  auto sends = [](std::int64_t offset, std::int64_t bytes) {
    std::vector<std::string> errors;
    StandinJob job;
    job.world = 1;
    return run_parts(job,
                     [&](StandinParts parts, std::int32_t driver) {
                       RawRank rank(std::move(parts), driver, 1);
                       rank.init();
                       rank.api().group_start();
                       rank.api().send(rank.a + offset, bytes, NcclType::Uint8, 0, rank.comm,
                                       rank.stream);
                       rank.api().receive(rank.b, bytes, NcclType::Uint8, 0, rank.comm,
                                          rank.stream);
                       rank.api().group_end();
                       rank.wait();
                     })
        .errors[0];
  };
  CHECK(sends(0, 4096).empty());
  CHECK_THAT(sends(1, 4096), Contains("ncclSend: 4096 bytes at 1 of an allocation of 4096"));
}

}  // namespace
}  // namespace reshard::test
