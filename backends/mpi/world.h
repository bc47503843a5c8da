// SPDX-License-Identifier: BSD-3-Clause
// The processes that an executor was made over and what all its plans share. Global rank r is
// process r of the communicator.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/launch/patience.h"
#include "backends/mpi/calls.h"
#include "backends/mpi/shared_rings.h"
#include "core/base/ids.h"

namespace reshard::backends::mpi {

// One communicator per distinct group of a collective, in the group's declared order, made once and
// kept.
//
// MPI implementations have a few thousand communicators at most, and one process may run many
// plans, so the least recently used are given up. All processes see the same plans in the same
// order and keep the same books, also of groups that they are not in; so the members of a group
// make and free its communicator at the same point of their programs.
using Group = std::vector<int>;  // processes, in the order declared

class GroupCache {
 public:
  explicit GroupCache(std::size_t capacity = 256) : capacity_(capacity) {}

  bool has(const Group& group) const { return by_group_.count(group) != 0; }
  // Collective over the members. The communicator of the group where `rank` is in it, else null;
  // stays while it is held.
  std::shared_ptr<MpiCommunicator> get(MPI_Comm world, int rank, const Group& group);
  std::size_t size() const { return by_group_.size(); }

 private:
  struct CachedGroup {
    std::shared_ptr<MpiCommunicator> comm;
    std::list<Group>::iterator use;
  };
  std::size_t capacity_;
  std::list<Group> uses_;  // the most recent first
  std::map<Group, CachedGroup> by_group_;
};

struct WorldOptions {
  std::int64_t time_limit_s = 300;
  // What travels in one MPI call at most: tests make it small to have many.
  std::int64_t chunk_bytes = std::int64_t{16} << 20;
  // The largest buffer of a collective that MPI's own may take: its counts are 32-bit.
  std::int64_t collective_bytes = (std::int64_t{1} << 31) - 1;
  // Whether processes of one node hand bytes over in memory that they share, instead of through
  // MPI.
  bool shared_memory = true;
};

struct World {
  // Duplicates `parent`: traffic of ours never meets the caller's.
  World(MPI_Comm parent, const WorldOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  launch::Patience patience() const {
    return launch::Patience(std::chrono::seconds(options.time_limit_s));
  }
  // Ends every wait that took too long: throws the BackendError that says what was waited for.
  [[noreturn]] void give_up(const std::string& what, const std::string& awaited) const;
  // Waits for a request within the time limit. `from`: the process that it depends on; -1 for any.
  void wait(MPI_Request& request, const std::string& what, int from = -1);
  // All processes are here, within the time limit.
  void barrier(const std::string& what);
  // The same, and all bring one number; else it says who brings which of the least and the largest.
  struct Numbered {
    std::int32_t number, process;
  };
  struct Range {
    Numbered least, largest;
    bool one() const { return least.number == largest.number; }
  };
  Range meet(const std::string& what, std::int32_t number);
  bool on_node(int process) const { return rings != nullptr && node_place[to_index(process)] >= 0; }

  WorldOptions options;
  MpiCommunicator comm;
  int rank = 0, size = 1;
  int largest_tag = 32767;      // of this MPI; the standard promises so much
  std::vector<int> node_place;  // by process: its place among those of this node; -1 elsewhere
  std::unique_ptr<SharedRings> rings;  // null: everything goes through MPI
  GroupCache groups;
  std::int32_t prepared = 0;  // plans so far: the same on all processes, as preparing is collective
  bool broken = false;        // a run has failed: requests may be under way for ever
};

// "rank 3", "ranks 0, 2, 5".
std::string ranks_text(std::span<const int> ranks);

}  // namespace reshard::backends::mpi
