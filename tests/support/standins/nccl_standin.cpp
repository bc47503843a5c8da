// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/standins/nccl_standin.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace reshard::test {

using namespace reshard::backends::nccl;
using Lock = std::unique_lock<std::mutex>;

std::string NcclStandin::error_text(NcclResult result) {
  return fmt::format("stand-in error {}", static_cast<int>(result));
}

// ---- communicators ----

NcclResult NcclStandin::get_unique_id(NcclUniqueId* id) {
  Lock lock(world_.mutex());
  world_.ensure_sound();
  *id = world_.new_id();
  return NcclResult::Success;
}

NcclResult NcclStandin::init_rank(NcclComm* comm, int size, const NcclUniqueId& id, int rank,
                                  int most_blocks) {
  {
    Lock lock(world_.mutex());
    world_.ensure_sound();
    StandinDevice* device = world_.driver(driver_).current;
    if (device == nullptr) world_.misuse("ncclCommInitRankConfig without a current device");
    if (size < 1 || rank < 0 || rank >= size)
      world_.misuse(fmt::format("ncclCommInitRankConfig as rank {} of {}", rank, size));
    NcclFamily* family = world_.family_of(id);
    if (family == nullptr) {
      family = &world_.add_family(static_cast<std::size_t>(size), fmt::format("of {} ranks", size));
      world_.set_family(id, *family);
    }
    NcclHandle& handle = world_.add_handle(*family, rank, *device, most_blocks);
    *comm = reinterpret_cast<NcclComm>(&handle);
    joining_.push_back({&handle, static_cast<std::size_t>(size), id});
  }
  return end_unless_grouped();
}

void NcclStandin::join(const Joining& joining) {
  NcclFamily& family = *joining.handle->family;
  int rank = joining.handle->rank;
  if (family.members.size() != joining.size)
    world_.misuse(fmt::format("ncclCommInitRankConfig: rank {} says {} ranks, another {}", rank,
                              joining.size, family.members.size()));
  NcclHandle*& member = family.members[static_cast<std::size_t>(rank)];
  if (member != nullptr)
    world_.misuse(fmt::format("ncclCommInitRankConfig: two ranks {} in one communicator", rank));
  member = joining.handle;
  ++family.came;
  if (world_.options().one_gpu && world_.options().version < kNcclSharedGpu && family.came > 1)
    world_.misuse("ncclCommInitRankConfig: Duplicate GPU detected");
  world_.activity();
}

NcclResult NcclStandin::split(NcclComm parent, int color, int key, NcclComm* child,
                              int most_blocks) {
  {
    Lock lock(world_.mutex());
    NcclHandle& handle = world_.handle(parent, "ncclCommSplit");
    if (version() < kNcclSplit) world_.misuse("ncclCommSplit is not in this version");
    if (!handle.family->complete() || handle.pending_polls > 0)
      world_.misuse("ncclCommSplit of a communicator that is in progress");
    if (handle.outstanding > 0)
      world_.misuse(fmt::format("ncclCommSplit: rank {} has work outstanding on the parent",
                                handle.global_rank));
    splits_.push_back({&handle, color, key, child, most_blocks});
  }
  return end_unless_grouped();
}

void NcclStandin::join_split(const NcclSplitEntry& entry) {
  NcclFamily& family = *entry.parent->family;
  std::size_t place = entry.parent->next_split++;
  if (family.splits.size() <= place) family.splits.resize(place + 1);
  family.splits[place].push_back(entry);
  entry.parent->splitting = true;
  world_.activity();
  if (family.splits[place].size() == family.members.size()) build_children(family.splits[place]);
}

void NcclStandin::build_children(const std::vector<NcclSplitEntry>& entries) {
  std::map<int, std::vector<NcclSplitEntry>> by_color;
  for (const NcclSplitEntry& entry : entries) {
    entry.parent->splitting = false;
    if (entry.color != kNcclNoColor) by_color[entry.color].push_back(entry);
  }
  for (auto& [color, members] : by_color) {
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return std::pair(a.key, a.parent->rank) < std::pair(b.key, b.parent->rank);
    });
    NcclFamily& child = world_.add_family(
        members.size(), fmt::format("split {} of {}", color, members[0].parent->family->name));
    for (std::size_t r = 0; r < members.size(); ++r) {
      child.members[r] = &world_.add_handle(child, static_cast<int>(r), *members[r].parent->device,
                                            members[r].most_blocks);
      ++child.came;
      *members[r].child = reinterpret_cast<NcclComm>(child.members[r]);
    }
  }
}

NcclResult NcclStandin::finalize(NcclComm comm) {
  {
    Lock lock(world_.mutex());
    NcclHandle& handle = world_.handle(comm, "ncclCommFinalize");
    if (handle.finalized) world_.misuse("ncclCommFinalize twice");
    finalizing_.push_back(&handle);
  }
  return end_unless_grouped();
}

// Misuse in these two is noted, not thrown: they are called where nothing may throw.
NcclResult NcclStandin::destroy(NcclComm comm) {
  Lock lock(world_.mutex());
  if (!world_.finding().empty()) return NcclResult::InternalError;
  NcclHandle& handle = *reinterpret_cast<NcclHandle*>(comm);
  if (handle.gone) world_.note_misuse("ncclCommDestroy of a communicator that is gone");
  if (handle.outstanding > 0) world_.note_misuse("ncclCommDestroy with work outstanding");
  handle.gone = true;
  world_.activity();
  return NcclResult::Success;
}

NcclResult NcclStandin::abort(NcclComm comm) {
  Lock lock(world_.mutex());
  NcclHandle& handle = *reinterpret_cast<NcclHandle*>(comm);
  if (handle.gone) world_.note_misuse("ncclCommAbort of a communicator that is gone");
  handle.gone = handle.aborted = true;
  world_.expect_hanging();
  world_.activity();
  return NcclResult::Success;
}

NcclResult NcclStandin::async_error(NcclComm comm, NcclResult* state) {
  Lock lock(world_.mutex());
  NcclHandle& handle = world_.handle(comm, "ncclCommGetAsyncError");
  *state = handle.error;
  if (handle.error != NcclResult::Success) return NcclResult::Success;
  if (handle.pending_polls > 0) {
    --handle.pending_polls;
    world_.activity();
    *state = NcclResult::InProgress;
  } else if (!handle.family->complete() || handle.splitting ||
             (handle.finalized && handle.family->finalized < handle.family->members.size())) {
    *state = NcclResult::InProgress;
    world_.idle(driver_);
  }
  return NcclResult::Success;
}

NcclResult NcclStandin::count(NcclComm comm, int* count) {
  Lock lock(world_.mutex());
  *count = static_cast<int>(world_.handle(comm, "ncclCommCount").family->members.size());
  return NcclResult::Success;
}

NcclResult NcclStandin::user_rank(NcclComm comm, int* rank) {
  Lock lock(world_.mutex());
  *rank = world_.handle(comm, "ncclCommUserRank").rank;
  return NcclResult::Success;
}

NcclResult NcclStandin::device(NcclComm comm, int* device) {
  Lock lock(world_.mutex());
  *device = static_cast<int>(world_.handle(comm, "ncclCommCuDevice").global_rank);
  return NcclResult::Success;
}

// ---- groups ----

NcclResult NcclStandin::group_start() {
  Lock lock(world_.mutex());
  world_.ensure_sound();
  ++depth_;
  return NcclResult::Success;
}

NcclResult NcclStandin::group_end() {
  Lock lock(world_.mutex());
  if (depth_ == 0) world_.misuse("ncclGroupEnd without ncclGroupStart");
  if (--depth_ > 0) return NcclResult::Success;
  return run_group();
}

NcclResult NcclStandin::end_unless_grouped() {
  Lock lock(world_.mutex());
  return depth_ > 0 ? NcclResult::Success : run_group();
}

NcclResult NcclStandin::run_group() {
  auto joining = std::exchange(joining_, {});
  auto splits = std::exchange(splits_, {});
  auto finalizing = std::exchange(finalizing_, {});
  auto launches = std::exchange(launches_, {});
  world_.ensure_sound();
  bool makes = !joining.empty() || !splits.empty() || !finalizing.empty();
  if (makes && !launches.empty()) world_.misuse("communicators are made and used in one group");
  for (const Joining& one : joining) join(one);
  for (const NcclSplitEntry& one : splits) join_split(one);
  for (NcclHandle* handle : finalizing) {
    if (handle->outstanding > 0) world_.misuse("ncclCommFinalize with work outstanding");
    handle->finalized = true;
    ++handle->family->finalized;
    world_.activity();
  }
  for (std::shared_ptr<NcclLaunch>& one : launches) launch(one);
  return makes || (!launches.empty() && world_.options().in_progress_polls > 0)
             ? NcclResult::InProgress
             : NcclResult::Success;
}

// ---- communication ----

NcclResult NcclStandin::issue(NcclOperation operation, NcclComm comm, Stream stream) {
  {
    Lock lock(world_.mutex());
    NcclHandle& handle = world_.handle(comm, "communication");
    std::int32_t rank = handle.global_rank;
    int size = static_cast<int>(handle.family->members.size());
    if (!handle.family->complete() || handle.pending_polls > 0 || handle.splitting)
      world_.misuse(fmt::format("rank {} uses a communicator that is in progress", rank));
    if (handle.finalized)
      world_.misuse(fmt::format("rank {} uses a communicator that is finalized", rank));
    if (handle.device->driver() != driver_)
      world_.misuse(fmt::format("rank {}'s communicator is used by another process", rank));
    if (operation.count < 0)
      world_.misuse(fmt::format("rank {}: a count of {}", rank, operation.count));
    bool to_peer = operation.call == NcclCall::Send || operation.call == NcclCall::Receive;
    if (to_peer && (operation.peer < 0 || operation.peer >= size))
      world_.misuse(fmt::format("rank {} names peer {} of a communicator of {}: not a member", rank,
                                operation.peer, size));
    auto found = std::find_if(launches_.begin(), launches_.end(),
                              [&](const auto& launch) { return launch->handle == &handle; });
    if (found == launches_.end())
      found =
          launches_.insert(found, std::make_shared<NcclLaunch>(NcclLaunch{&handle, stream, {}}));
    if ((*found)->stream != stream)
      world_.misuse(fmt::format("rank {} uses a communicator on two streams in one group", rank));
    (*found)->operations.push_back(std::move(operation));
  }
  return end_unless_grouped();
}

void NcclStandin::launch(std::shared_ptr<NcclLaunch> launch) {
  NcclHandle& handle = *launch->handle;
  ++handle.outstanding;
  handle.pending_polls = world_.options().in_progress_polls;
  apply_faults(*launch);
  world_.add_launch(launch);
  world_.activity();
  NcclWorld& world = world_;
  std::size_t driver = driver_;
  handle.device->enqueue(launch->stream, [&world, driver, launch] {
    {
      Lock lock(world.mutex());
      if (carry_on(world, *launch)) return true;
    }
    // What it waits for may wait for other work of this driver.
    let_devices_run(world, driver);
    Lock lock(world.mutex());
    return carry_on(world, *launch);
  });
}

void NcclStandin::apply_faults(NcclLaunch& launch) {
  std::int32_t rank = launch.handle->global_rank;
  std::int64_t number = world_.next_launch(rank);
  for (const NcclFault& fault : world_.options().faults) {
    if (fault.rank != rank || fault.launch != number) continue;
    if (fault.kind == NcclFault::Kind::Slow) {
      launch.slow_polls = 200;
      continue;
    }
    launch.stuck = true;
    world_.expect_hanging();
    if (fault.kind == NcclFault::Kind::AsyncError) launch.handle->error = NcclResult::RemoteError;
  }
}

NcclResult NcclStandin::send(const std::byte* from, std::int64_t count, NcclType type, int peer,
                             NcclComm comm, Stream stream) {
  return issue({NcclCall::Send, from, nullptr, count, type, NcclOp::Sum, peer}, comm, stream);
}
NcclResult NcclStandin::receive(std::byte* to, std::int64_t count, NcclType type, int peer,
                                NcclComm comm, Stream stream) {
  return issue({NcclCall::Receive, nullptr, to, count, type, NcclOp::Sum, peer}, comm, stream);
}
NcclResult NcclStandin::all_gather(const std::byte* from, std::byte* to, std::int64_t count,
                                   NcclType type, NcclComm comm, Stream stream) {
  return issue({NcclCall::AllGather, from, to, count, type, NcclOp::Sum, -1}, comm, stream);
}
NcclResult NcclStandin::reduce_scatter(const std::byte* from, std::byte* to, std::int64_t count,
                                       NcclType type, NcclOp op, NcclComm comm, Stream stream) {
  return issue({NcclCall::ReduceScatter, from, to, count, type, op, -1}, comm, stream);
}
NcclResult NcclStandin::all_reduce(const std::byte* from, std::byte* to, std::int64_t count,
                                   NcclType type, NcclOp op, NcclComm comm, Stream stream) {
  return issue({NcclCall::AllReduce, from, to, count, type, op, -1}, comm, stream);
}
NcclResult NcclStandin::all_to_all(const std::byte* from, std::byte* to, std::int64_t count,
                                   NcclType type, NcclComm comm, Stream stream) {
  {
    Lock lock(world_.mutex());
    if (version() < kNcclAllToAll) world_.misuse("ncclAlltoAll is not in this version");
  }
  return issue({NcclCall::AllToAll, from, to, count, type, NcclOp::Sum, -1}, comm, stream);
}

}  // namespace reshard::test
