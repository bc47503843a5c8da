// SPDX-License-Identifier: BSD-3-Clause
// NCCL for tests: the calls of one driver (nccl_world.h), checked and carried out on host devices
// with real bytes. Never part of the program.
//
// The semantics are those of NCCL's guide. An operation outside a group is a group of one: a send
// blocks its stream until the matching receive runs. The operations of one group on one
// communicator are one launch, which is done when all of them are. Sends and receives of a pair
// match in order and must have equal counts and types; collectives match in order and must agree in
// everything. A launch occupies room on its GPU until it is done. All-reduce and reduce-scatter
// fold in an order of their own. Making communicators is collective and may not share a group with
// communication.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/standins/nccl_world.h"

namespace reshard::test {

struct NcclOperation {
  NcclCall call;
  const std::byte* from;
  std::byte* to;
  std::int64_t count;
  backends::nccl::NcclType type;
  backends::nccl::NcclOp op;
  int peer;
  // The state of the operation.
  std::shared_ptr<NcclMessage> message = {};
  std::size_t place = 0;
  bool done = false;
};

struct NcclLaunch {
  NcclHandle* handle;
  backends::Stream stream;
  std::vector<NcclOperation> operations;
  bool started = false, done = false, stuck = false;
  int slow_polls = 0;
};
// "rank 2 waits in communicator 0-3: send of 64 x 1 bytes to rank 3, ...".
std::string text(const NcclLaunch& launch);

class NcclStandin : public backends::nccl::NcclApi {
 public:
  using NcclResult = backends::nccl::NcclResult;
  using NcclType = backends::nccl::NcclType;
  using NcclOp = backends::nccl::NcclOp;
  using NcclComm = backends::nccl::NcclComm;
  using NcclUniqueId = backends::nccl::NcclUniqueId;
  using Stream = backends::Stream;

  NcclStandin(NcclWorld& world, std::size_t driver) : world_(world), driver_(driver) {}

  int version() const override { return world_.options().version; }
  std::string error_text(NcclResult result) override;
  std::string last_error(NcclComm) override { return "as the test wants it"; }
  NcclResult get_unique_id(NcclUniqueId* id) override;
  NcclResult init_rank(NcclComm* comm, int size, const NcclUniqueId& id, int rank,
                       int most_blocks) override;
  NcclResult split(NcclComm parent, int color, int key, NcclComm* child, int most_blocks) override;
  NcclResult finalize(NcclComm comm) override;
  NcclResult destroy(NcclComm comm) override;
  NcclResult abort(NcclComm comm) override;
  NcclResult async_error(NcclComm comm, NcclResult* state) override;
  NcclResult count(NcclComm comm, int* count) override;
  NcclResult user_rank(NcclComm comm, int* rank) override;
  NcclResult device(NcclComm comm, int* device) override;
  NcclResult group_start() override;
  NcclResult group_end() override;
  NcclResult send(const std::byte* from, std::int64_t count, NcclType type, int peer, NcclComm comm,
                  Stream stream) override;
  NcclResult receive(std::byte* to, std::int64_t count, NcclType type, int peer, NcclComm comm,
                     Stream stream) override;
  NcclResult all_gather(const std::byte* from, std::byte* to, std::int64_t count, NcclType type,
                        NcclComm comm, Stream stream) override;
  NcclResult reduce_scatter(const std::byte* from, std::byte* to, std::int64_t count, NcclType type,
                            NcclOp op, NcclComm comm, Stream stream) override;
  NcclResult all_reduce(const std::byte* from, std::byte* to, std::int64_t count, NcclType type,
                        NcclOp op, NcclComm comm, Stream stream) override;
  NcclResult all_to_all(const std::byte* from, std::byte* to, std::int64_t count, NcclType type,
                        NcclComm comm, Stream stream) override;

 private:
  struct Joining {
    NcclHandle* handle;
    std::size_t size;
    NcclUniqueId id;
  };
  // Ends the implicit group of a call outside a group.
  NcclResult end_unless_grouped();
  NcclResult issue(NcclOperation operation, NcclComm comm, Stream stream);
  NcclResult run_group();
  void join(const Joining& joining);
  void join_split(const NcclSplitEntry& entry);
  void build_children(const std::vector<NcclSplitEntry>& entries);
  void launch(std::shared_ptr<NcclLaunch> launch);
  void apply_faults(NcclLaunch& launch);

  NcclWorld& world_;
  std::size_t driver_;
  int depth_ = 0;
  // The state of the current group.
  std::vector<Joining> joining_;
  std::vector<NcclSplitEntry> splits_;
  std::vector<NcclHandle*> finalizing_;
  std::vector<std::shared_ptr<NcclLaunch>> launches_;
};

// Advances a launch as far as possible; true when it is done. Called with the world's lock held, on
// the thread of the launch's device, while the device is open.
bool carry_on(NcclWorld& world, NcclLaunch& launch);

}  // namespace reshard::test
