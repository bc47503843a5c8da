// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of the NCCL stand-in share: communicators, messages in flight, and what each
// driver waits for. Test code only.
//
// Ranks are driven by one thread, or by one thread each ("drivers"). Every driver's devices are
// used by its own thread; everything here is under one lock. Deadlock: when every driver that still
// runs has polled several times in a row and nothing has happened anywhere in between, nothing ever
// will. Then, and when NCCL is misused, the world is spoilt: the finding is thrown from the current
// call and from every later call of every driver, so that no test hangs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/nccl/nccl_api.h"
#include "tests/support/standins/host_device.h"

namespace reshard::test {

// A mistake that real NCCL would answer with wrong bytes, an error or a hang.
class NcclMisuse : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

struct NcclFault {
  enum class Kind { Never, Slow, AsyncError };
  Kind kind;
  std::int32_t rank;        // global
  std::int64_t launch = 0;  // its n-th launch
};

// A kernel has so many thread blocks if nothing limits them.
inline constexpr int kBlocksOfKernel = 32;

struct NcclWorldOptions {
  int version = 22809;
  std::uint64_t seed = 1;  // of the devices; 0: the laziest order
  std::int64_t memory_bytes = std::int64_t{1} << 26;
  int in_progress_polls =
      0;  // how often async_error returns InProgress after a group with communication
  std::vector<NcclFault> faults;
  bool one_gpu = false;  // all ranks report the same GPU
  // Each holds one thread block of a kernel. Room for one kernel of NCCL's own choice is the worst
  // case for kernels that wait for each other; plans on several streams need room for as many.
  int multiprocessors = kBlocksOfKernel;
};

struct NcclHandle;  // one rank's end of a communicator, which an NcclComm points to
struct NcclLaunch;  // the operations of one group on one communicator end

struct NcclMessage {
  std::vector<std::byte> bytes;
  std::int64_t count;
  backends::nccl::NcclType type;
  bool taken = false;
};

enum class NcclCall { Send, Receive, AllGather, ReduceScatter, AllReduce, AllToAll };

struct NcclCollective {
  NcclCall call;
  std::int64_t count;
  backends::nccl::NcclType type;
  backends::nccl::NcclOp op;
  std::vector<std::optional<std::vector<std::byte>>> parts;  // by rank, as they arrive
  std::size_t came = 0;
};

struct NcclSplitEntry {
  NcclHandle* parent;
  int color, key;
  backends::nccl::NcclComm* child;
  int most_blocks;
};

// A communicator: all of its ends.
struct NcclFamily {
  std::string name;
  std::vector<NcclHandle*> members;  // by rank; null until it has joined
  std::size_t came = 0, finalized = 0;
  // By (source, destination).
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<NcclMessage>>> messages;
  std::vector<NcclCollective> collectives;  // by position in the order of the communicator
  std::vector<std::vector<NcclSplitEntry>> splits;
  bool complete() const { return came == members.size(); }
};

class StandinDevice;

struct NcclHandle {
  NcclFamily* family = nullptr;
  int rank = -1;  // in the family
  StandinDevice* device = nullptr;
  std::int32_t global_rank = -1;
  int blocks = kBlocksOfKernel;
  std::size_t next_collective = 0, next_split = 0;
  int outstanding = 0;  // launches not done
  int pending_polls = 0;
  bool splitting = false, finalized = false, gone = false, aborted = false;
  backends::nccl::NcclResult error = backends::nccl::NcclResult::Success;
};

class NcclWorld {
 public:
  // drivers[d]: the ranks of driver d.
  NcclWorld(std::vector<std::vector<std::int32_t>> drivers, NcclWorldOptions options);

  struct Driver {
    std::vector<std::int32_t> ranks;
    StandinDevice* current = nullptr;  // selected device
    std::vector<StandinDevice*> devices;
    std::uint64_t seen = 0;  // activity at the last idle poll
    int idle_polls = 0;
    bool ended = false;
    bool pumping = false;   // in let_devices_run
    std::string waits_for;  // other than launches
    std::size_t gathers = 0, broadcasts = 0;
  };

  std::mutex& mutex() { return mutex_; }
  // Everything below must be called with the lock held.
  const NcclWorldOptions& options() const { return options_; }
  Driver& driver(std::size_t d) { return drivers_[d]; }
  std::size_t driver_count() const { return drivers_.size(); }
  void activity() { ++activity_; }
  // Called when a driver has polled without result. Throws if that is a deadlock.
  void idle(std::size_t driver);
  // From now on, waiting for ever is not a deadlock but a fault that somebody else must notice: a
  // rank has died, hangs or has aborted.
  void expect_hanging() { hanging_expected_ = true; }
  void ensure_sound() const;
  [[noreturn]] void misuse(const std::string& what);
  void note_misuse(const std::string& what) noexcept;
  const std::string& finding() const { return finding_; }

  NcclFamily& add_family(std::size_t size, std::string name);
  NcclHandle& add_handle(NcclFamily& family, int rank, StandinDevice& device, int most_blocks);
  // Throws if it is not a communicator, or is gone.
  NcclHandle& handle(backends::nccl::NcclComm comm, const char* call);
  NcclFamily* family_of(const backends::nccl::NcclUniqueId& id);
  backends::nccl::NcclUniqueId new_id();
  void set_family(const backends::nccl::NcclUniqueId& id, NcclFamily& family);
  // The number of this launch on a global rank.
  std::int64_t next_launch(std::int32_t rank) { return launches_of_[rank]++; }
  void add_launch(std::shared_ptr<NcclLaunch> launch) { launches_.push_back(std::move(launch)); }
  // The launches whose kernels occupy a GPU, as many as have room, by global rank.
  std::map<std::int32_t, std::vector<NcclLaunch*>> running;

  // State of the meeting.
  std::deque<std::vector<std::optional<std::vector<std::byte>>>> gathered;
  std::deque<std::vector<std::byte>> broadcast;
  std::string given_up;

  const std::deque<std::shared_ptr<NcclLaunch>>& launches() const { return launches_; }
  std::int64_t launch_count() const { return static_cast<std::int64_t>(launches_.size()); }
  std::int64_t family_count() const { return static_cast<std::int64_t>(families_.size()); }
  // Ends of communicators that have neither been destroyed nor aborted.
  std::int64_t live_handles() const;

 private:
  std::string who_waits() const;

  std::mutex mutex_;
  NcclWorldOptions options_;
  std::vector<Driver> drivers_;
  std::uint64_t activity_ = 1;
  bool hanging_expected_ = false;
  std::string finding_;
  std::deque<NcclFamily> families_;
  std::deque<NcclHandle> handles_;
  std::vector<std::pair<backends::nccl::NcclUniqueId, NcclFamily*>> ids_;  // null: none joined
  std::deque<std::shared_ptr<NcclLaunch>> launches_;
  std::map<std::int32_t, std::int64_t> launches_of_;
};

// A host device that belongs to a rank of the world.
class StandinDevice : public HostDevice {
 public:
  StandinDevice(NcclWorld& world, std::size_t driver, std::int32_t rank);
  ~StandinDevice() override;
  std::int32_t rank() const { return rank_; }
  std::size_t driver() const { return driver_; }
  void select() override;
  void record(Event event, Stream stream) override;
  bool done(Event event) override;

 private:
  NcclWorld& world_;
  std::size_t driver_;
  std::int32_t rank_;
  std::map<Event, bool> known_;  // events that have been seen complete
};

// Runs everything that a driver's devices can do without waiting; does nothing if that is already
// running. Call without the lock.
void let_devices_run(NcclWorld& world, std::size_t driver);

}  // namespace reshard::test
