// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/world.h"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard::backends::mpi {

namespace {

MpiCommunicator duplicate(MPI_Comm parent) {
  MPI_Comm comm = MPI_COMM_NULL;
  RESHARD_MPI_CALL(-1, MPI_Comm_dup(parent, &comm));
  MpiCommunicator out(comm);
  RESHARD_MPI_CALL(-1, MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  return out;
}

// Options that must be equal on all processes: otherwise some would wait for others that make
// shared memory, or the two ends of a message would cut it differently.
void agree_on_options(const World& world) {
  const WorldOptions& options = world.options;
  for (auto [name, value] : {std::pair{"shared_memory", std::int64_t{options.shared_memory}},
                             {"chunk_bytes", options.chunk_bytes},
                             {"collective_bytes", options.collective_bytes}}) {
    std::vector<std::int64_t> all(to_index(world.size));
    RESHARD_MPI_CALL(world.rank, MPI_Allgather(&value, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T,
                                               world.comm.get()));
    auto other = std::find_if(all.begin(), all.end(), [&](auto each) { return each != all[0]; });
    if (other != all.end())
      throw InputError(fmt::format(
          "{}: expected the same on all processes, found {} on rank 0 and {} on rank {}", name,
          all[0], *other, other - all.begin()));
  }
}

// By process: its rank in the node's communicator, or -1 if it is on another node.
std::vector<int> places_on_node(int rank, int size, MPI_Comm node) {
  int node_size = 0;
  RESHARD_MPI_CALL(rank, MPI_Comm_size(node, &node_size));
  std::vector<int> members(to_index(node_size)), places(to_index(size), -1);
  RESHARD_MPI_CALL(rank, MPI_Allgather(&rank, 1, MPI_INT, members.data(), 1, MPI_INT, node));
  for (int place = 0; place < node_size; ++place)
    places[to_index(members[to_index(place)])] = place;
  return places;
}

}  // namespace

World::World(MPI_Comm parent, const WorldOptions& options_in)
    : options(options_in), comm(duplicate(parent)) {
  RESHARD_MPI_CALL(-1, MPI_Comm_rank(comm.get(), &rank));
  RESHARD_MPI_CALL(rank, MPI_Comm_size(comm.get(), &size));
  int *tag = nullptr, found = 0;
  RESHARD_MPI_CALL(rank,
                   MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&tag), &found));
  if (found != 0) largest_tag = *tag;
  agree_on_options(*this);
  MPI_Comm node_handle = MPI_COMM_NULL;
  RESHARD_MPI_CALL(rank, MPI_Comm_split_type(comm.get(), MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL,
                                             &node_handle));
  MpiCommunicator node(node_handle);
  node_place = places_on_node(rank, size, node.get());
  if (options.shared_memory) rings = SharedRings::make(node.get());
}

World::~World() {
  // Freeing shared memory waits for all processes, which do not come if only this one fails.
  if (std::uncaught_exceptions() > 0) broken = true;
  if (rings != nullptr && !broken && mpi_is_up()) try {
      barrier("releasing shared memory");
    } catch (const std::exception&) {
      broken = true;
    }
  // After a failure the state of the other processes is not known, so nothing collective may be
  // called.
  if (!broken) return;
  comm.leak();
  if (rings != nullptr) rings->leak();
}

void World::give_up(const std::string& what, const std::string& awaited) const {
  throw BackendError(
      "MPI", what, fmt::format("nothing received for {} s from {}", options.time_limit_s, awaited),
      rank);
}

void World::wait(MPI_Request& request, const std::string& what, int from) {
  launch::Patience wait = patience();
  for (int done = 0;;) {
    RESHARD_MPI_CALL(rank, MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    if (!wait.idle()) {
      broken = true;
      give_up(what, from < 0 ? "some of the other ranks" : fmt::format("rank {}", from));
    }
  }
}

void World::barrier(const std::string& what) {
  MPI_Request request = MPI_REQUEST_NULL;
  RESHARD_MPI_CALL(rank, MPI_Ibarrier(comm.get(), &request));
  wait(request, what);
}

World::Range World::meet(const std::string& what, std::int32_t number) {
  // Negated, the largest number is the least. MINLOC takes the lowest process among equal numbers.
  Numbered mine[2] = {{number, rank}, {-number, rank}}, least[2] = {};
  MPI_Request request = MPI_REQUEST_NULL;
  RESHARD_MPI_CALL(rank,
                   MPI_Iallreduce(mine, least, 2, MPI_2INT, MPI_MINLOC, comm.get(), &request));
  wait(request, what);
  return {least[0], {-least[1].number, least[1].process}};
}

std::string ranks_text(std::span<const int> ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

namespace {

std::shared_ptr<MpiCommunicator> made(MPI_Comm world, int rank, const Group& group) {
  if (std::find(group.begin(), group.end(), rank) == group.end()) return nullptr;
  MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  RESHARD_MPI_CALL(rank, MPI_Comm_group(world, &all));
  int code = MPI_Group_incl(all, static_cast<int>(group.size()), group.data(), &members);
  if (code == MPI_SUCCESS) {
    code = MPI_Comm_create_group(world, members, 0, &comm);
    MPI_Group_free(&members);
  }
  MPI_Group_free(&all);
  check(code, "MPI_Comm_create_group(world, members, 0, &comm)", rank);
  auto out = std::make_shared<MpiCommunicator>(comm);
  RESHARD_MPI_CALL(rank, MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  return out;
}

}  // namespace

std::shared_ptr<MpiCommunicator> GroupCache::get(MPI_Comm world, int rank, const Group& group) {
  if (auto found = by_group_.find(group); found != by_group_.end()) {
    uses_.splice(uses_.begin(), uses_, found->second.use);
    return found->second.comm;
  }
  while (by_group_.size() >= capacity_) {
    by_group_.erase(uses_.back());
    uses_.pop_back();
  }
  std::shared_ptr<MpiCommunicator> comm = made(world, rank, group);
  uses_.push_front(group);
  by_group_.emplace(group, CachedGroup{comm, uses_.begin()});
  return comm;
}

}  // namespace reshard::backends::mpi
