// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/groups.h"

#include <algorithm>

namespace reshard::backends::mpi {
namespace {

std::shared_ptr<Communicator> made(MPI_Comm world, int rank, const Group& group) {
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
  auto out = std::make_shared<Communicator>(comm);
  RESHARD_MPI_CALL(rank, MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  return out;
}

}  // namespace

std::shared_ptr<Communicator> GroupCache::get(MPI_Comm world, int rank, const Group& group) {
  if (auto found = by_group_.find(group); found != by_group_.end()) {
    uses_.splice(uses_.begin(), uses_, found->second.use);
    return found->second.comm;
  }
  while (by_group_.size() >= capacity_) {
    by_group_.erase(uses_.back());
    uses_.pop_back();
  }
  std::shared_ptr<Communicator> comm = made(world, rank, group);
  uses_.push_front(group);
  by_group_.emplace(group, Entry{comm, uses_.begin()});
  return comm;
}

}  // namespace reshard::backends::mpi
