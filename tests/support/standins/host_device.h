// SPDX-License-Identifier: BSD-3-Clause
// A GPU made of host memory, for tests only: the code above Device runs on it on machines without a
// GPU, and mistakes that a GPU would tolerate on most days fail on it every time.
//
// Streams run nothing when work is given to them. Work runs when somebody queries an event: then
// what that event needs and, as determined by the seed, more or less of what other streams hold, in
// any order that streams and events allow. So a missing wait shows as wrong bytes: the work to wait
// for has not run at all, or has run too soon. New and freed memory holds garbage. Kernels run the
// Thrust source of backends/device compiled for the host, with their tiles in a random order, after
// every tile has been checked against the memory that is allocated at that time. Device memory
// cannot be accessed from outside: if the host follows a pointer to it, the test ends with a
// segmentation fault.
//
// Mistakes are CheckFailures, thrown from the call that makes the work run; after one the device
// runs nothing more. The clock counts pieces of work done, in the order in which they were done.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backends/device/device.h"
#include "tests/support/prng.h"

namespace reshard::test {

struct HostDeviceOptions {
  std::uint64_t seed = 1;  // 0: the laziest order, only what is needed
  std::int64_t memory_bytes = std::int64_t{1} << 28;
  int multiprocessors = 32;
  // Faults, to show that tests detect them.
  std::int64_t forget_wait = -1;  // the n-th wait() is ignored
  std::int64_t stuck_after = -1;  // no work runs after this many pieces
};

class HostDevice : public backends::Device {
 public:
  using Stream = backends::Stream;
  using Event = backends::Event;

  explicit HostDevice(HostDeviceOptions options = {});
  ~HostDevice() override;

  std::string description() const override;
  int multiprocessors() const override { return options_.multiprocessors; }
  void select() override {}
  std::byte* allocate(std::int64_t bytes) override;
  void release(std::byte* memory) noexcept override;
  std::int64_t free_bytes() override { return options_.memory_bytes - allocated_; }
  Stream create_stream() override;
  void destroy(Stream stream) noexcept override;
  Event create_event() override;
  void destroy(Event event) noexcept override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  bool done(Event event) override;
  std::int64_t elapsed_ps(Event from, Event to) override;
  void upload(std::byte* to, std::span<const std::byte> from_host, Stream stream) override;
  void download(std::span<std::byte> to_host, const std::byte* from, Stream stream) override;
  void set_bytes(std::byte* to, std::int64_t bytes, std::uint8_t value, Stream stream) override;
  void copy(const backends::CopyLaunch& launch, Stream stream) override;
  void fold(const backends::FoldLaunch& launch, Stream stream) override;

  // For stand-ins of libraries that put their own work on a stream; it may access device memory.
  // Returns whether it is done; until then it is called again, and the stream does not advance.
  using Work = std::function<bool()>;
  void enqueue(Stream stream, Work work);
  // Runs everything that can run on any stream, in a random order. Returns whether anything ran.
  // For libraries whose work waits for other devices.
  bool progress();
  // Throws CheckFailure unless the bytes are within one allocation; `what` names them.
  void check_range(const std::byte* at, std::int64_t bytes, const char* what) const;

  // What has not been released; 0 at the end of a clean test.
  std::size_t live_allocations() const { return allocations_.size(); }
  std::size_t live_streams() const { return streams_.size(); }
  std::size_t live_events() const { return events_.size(); }
  // Pieces of work that were still pending when their stream was destroyed.
  std::int64_t dropped_work() const { return dropped_; }
  std::int64_t waits() const { return waits_; }
  std::int64_t peak_bytes() const { return peak_; }

 private:
  // One recording of an event.
  struct Record {
    bool complete = false;
    std::int64_t tick = 0;
    Stream stream = nullptr;
  };
  using RecordRef = std::shared_ptr<Record>;
  struct StreamTask {
    Work work;         // none: a recording or a wait
    RecordRef record;  // becomes complete
    RecordRef awaited;
  };
  struct Queue {
    std::uint64_t id = 0;
    std::deque<StreamTask> pieces;
    bool running = false;  // its first piece is running now
  };
  // Lets work access device memory while it exists.
  class Open;

  std::byte* first_fit(std::byte* from, std::int64_t bytes) const;
  Queue& queue_of(Stream stream);
  RecordRef& record_of(Event event);
  bool is_ready(const Queue& queue) const;
  bool run_next(Queue& queue);
  void run_some_others();
  bool run_until(const RecordRef& record);
  void put(Stream stream, Work work) {
    queue_of(stream).pieces.push_back({std::move(work), nullptr, nullptr});
  }
  void check_copy(const backends::CopyTile& tile, const backends::CopyLaunch& launch) const;
  void check_fold(const backends::FoldTile& tile, const backends::FoldLaunch& launch) const;
  void check_rows(const std::byte* at, std::int64_t pitch, std::int64_t rows,
                  std::int64_t row_bytes, int alignment, const char* what) const;
  template <class Tile>
  std::vector<Tile> drawn_order(const Tile* tiles, std::int64_t count);
  void poison(std::byte* at, std::int64_t bytes);

  HostDeviceOptions options_;
  Prng prng_;
  std::byte* arena_;
  std::int64_t arena_bytes_, latest_end_ = 0;
  int opened_ = 0;
  std::map<const std::byte*, std::int64_t> allocations_;  // by address
  std::map<Stream, Queue> streams_;
  std::map<Event, RecordRef> events_;  // null: never recorded
  std::uintptr_t handles_ = 0;
  std::int64_t allocated_ = 0, peak_ = 0, dropped_ = 0, waits_ = 0, ticks_ = 0;
  bool broken_ = false;
};

}  // namespace reshard::test
