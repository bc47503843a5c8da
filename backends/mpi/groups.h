// SPDX-License-Identifier: BSD-3-Clause
// One communicator per distinct group of a collective, in the group's declared order, made once and
// kept.
//
// MPI implementations have a few thousand communicators at most, and one process may run many
// plans, so the least recently used are given up. All processes see the same plans in the same
// order and keep the same books, also of groups that they are not in; so the members of a group
// make and free its communicator at the same point of their programs.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "backends/mpi/calls.h"

namespace reshard::backends::mpi {

using Group = std::vector<int>;  // processes, in the order declared

class GroupCache {
 public:
  explicit GroupCache(std::size_t capacity = 256) : capacity_(capacity) {}

  bool has(const Group& group) const { return by_group_.count(group) != 0; }
  // Collective over the members. The communicator of the group where `rank` is in it, else null;
  // stays while it is held.
  std::shared_ptr<Communicator> get(MPI_Comm world, int rank, const Group& group);
  std::size_t size() const { return by_group_.size(); }

 private:
  struct Entry {
    std::shared_ptr<Communicator> comm;
    std::list<Group>::iterator use;
  };
  std::size_t capacity_;
  std::list<Group> uses_;  // the most recent first
  std::map<Group, Entry> by_group_;
};

}  // namespace reshard::backends::mpi
