// SPDX-License-Identifier: BSD-3-Clause
// The processes that an executor was made for, and everything that its plans share. Global rank r
// is process r of the communicator.
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
// cached.
//
// MPI implementations support only a few thousand communicators, and one process may run many
// plans, so the least recently used ones are dropped. All processes see the same plans in the same
// order and keep the same records, even for groups that they are not in; so the members of a group
// make and free its communicator at the same point of their programs.
using Group = std::vector<int>;  // processes, in declared order

class GroupCache {
 public:
  explicit GroupCache(std::size_t capacity = 256) : capacity_(capacity) {}

  bool has(const Group& group) const { return by_group_.count(group) != 0; }
  // Collective over the members. Returns the group's communicator, or null if `rank` is not a
  // member; it stays valid while held.
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
  // The most bytes per MPI call; tests make it small, to get many calls.
  std::int64_t chunk_bytes = std::int64_t{16} << 20;
  // The largest buffer of a collective that MPI itself may run: its counts are 32-bit.
  std::int64_t collective_bytes = (std::int64_t{1} << 31) - 1;
  // Whether processes of one node exchange bytes through shared memory instead of MPI.
  bool shared_memory = true;
};

struct World {
  // Duplicates `parent`, so that our traffic never meets the caller's.
  World(MPI_Comm parent, const WorldOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  launch::Patience patience() const {
    return launch::Patience(std::chrono::seconds(options.time_limit_s));
  }
  // Called when a wait took too long: throws a BackendError with what was waited for.
  [[noreturn]] void give_up(const std::string& what, const std::string& awaited) const;
  // Waits for a request within the time limit. `from`: the process that it depends on; -1: any.
  void wait(MPI_Request& request, const std::string& what, int from = -1);
  // Returns once all processes have called it; throws after the time limit.
  void barrier(const std::string& what);
  // Also a barrier, to which each process passes one number; returns the least and the largest,
  // each with a process that passed it.
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
  int largest_tag = 32767;      // of this MPI; the standard guarantees this much
  std::vector<int> node_place;  // by process: its rank in the communicator of this node; else -1
  std::unique_ptr<SharedRings> rings;  // null: everything goes through MPI
  GroupCache groups;
  std::int32_t prepared = 0;  // plans so far; equal on all processes, as preparing is collective
  bool broken = false;        // a run has failed: requests may never complete
};

// "rank 3", "ranks 0, 2, 5".
std::string ranks_text(std::span<const int> ranks);

}  // namespace reshard::backends::mpi
