// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/standins/host_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "backends/device/kernels/host_kernels.h"
#include "core/base/errors.h"
#include "core/bytes/box_fold.h"

namespace reshard::test {
namespace {

using namespace reshard::backends;

constexpr std::int64_t kAlignment =
    256;  // of allocations; also what lies between two of them, at least
constexpr std::int64_t kWanderBytes = 128 << 10;
constexpr std::int64_t kTickPs = 1'000'000;

std::int64_t rounded_up(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool is_aligned(const std::byte* at, int alignment) {
  return reinterpret_cast<std::uintptr_t>(at) % static_cast<std::uintptr_t>(alignment) == 0;
}

[[noreturn]] void refuse(const std::string& what) { throw CheckFailure("host device: " + what); }

}  // namespace

class HostDevice::Open {
 public:
  explicit Open(HostDevice& device) : device_(device) {
    if (device_.opened_++ == 0)
      mprotect(device_.arena_, static_cast<std::size_t>(device_.arena_bytes_),
               PROT_READ | PROT_WRITE);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open() {
    if (--device_.opened_ == 0)
      mprotect(device_.arena_, static_cast<std::size_t>(device_.arena_bytes_), PROT_NONE);
  }

 private:
  HostDevice& device_;
};

HostDevice::HostDevice(HostDeviceOptions options)
    : options_(options),
      prng_(options.seed),
      arena_bytes_(2 * options.memory_bytes + (std::int64_t{1} << 20)) {
  void* arena = mmap(nullptr, static_cast<std::size_t>(arena_bytes_), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) refuse(fmt::format("no address space for {} bytes", arena_bytes_));
  arena_ = static_cast<std::byte*>(arena);
}

HostDevice::~HostDevice() { munmap(arena_, static_cast<std::size_t>(arena_bytes_)); }

std::string HostDevice::description() const {
  return fmt::format("host memory that stands in for a GPU, {} bytes", options_.memory_bytes);
}

// ---- memory ----

// The first place from `from` on that is free with a gap on both sides; null where there is none.
std::byte* HostDevice::first_fit(std::byte* from, std::int64_t bytes) const {
  std::byte* at = from;
  for (auto [begin, size] : allocations_) {
    if (begin + size <= from) continue;
    if (begin - at >= bytes + kAlignment) break;
    at = arena_ + rounded_up(begin + size - arena_) + kAlignment;
  }
  return at + bytes + kAlignment <= arena_ + arena_bytes_ ? at : nullptr;
}

// Behind the latest allocation, so that freed memory stays free for a while; not for long, as pages
// once used make every mprotect slower.
std::byte* HostDevice::allocate(std::int64_t bytes) {
  RESHARD_CHECK(bytes > 0, "host device: an allocation of no bytes");
  if (bytes > free_bytes())
    throw BackendError("host device", fmt::format("allocate({})", bytes), "out of memory", -1);
  std::byte* at = first_fit(arena_ + latest_end_ + kAlignment, bytes);
  if (at == nullptr) at = first_fit(arena_ + kAlignment, bytes);
  if (at == nullptr)
    throw BackendError("host device", fmt::format("allocate({})", bytes), "fragmented", -1);
  allocations_[at] = bytes;
  latest_end_ = rounded_up(at + bytes - arena_) % kWanderBytes;
  allocated_ += bytes;
  peak_ = std::max(peak_, allocated_);
  poison(at, bytes);
  return at;
}

void HostDevice::release(std::byte* memory) noexcept {
  auto found = allocations_.find(memory);
  if (found == allocations_.end()) {
    broken_ = true;  // told by the next call that may throw
    return;
  }
  poison(memory, found->second);
  allocated_ -= found->second;
  allocations_.erase(found);
}

void HostDevice::poison(std::byte* at, std::int64_t bytes) {
  Open open(*this);
  std::memset(at, static_cast<int>(0x81 | (prng_.next() & 0x7e)), static_cast<std::size_t>(bytes));
}

void HostDevice::check_range(const std::byte* at, std::int64_t bytes, const char* what) const {
  auto next = allocations_.upper_bound(at);
  if (next != allocations_.begin()) {
    auto [begin, size] = *std::prev(next);
    if (bytes >= 0 && at + bytes <= begin + size) return;
    if (at < begin + size)
      refuse(
          fmt::format("{}: {} bytes at {} of an allocation of {}", what, bytes, at - begin, size));
  }
  refuse(fmt::format("{}: {} bytes in memory that is not allocated", what, bytes));
}

// ---- streams and events ----

HostDevice::Stream HostDevice::create_stream() {
  auto handle = reinterpret_cast<Stream>(++handles_);
  streams_[handle].id = handles_;
  return handle;
}

void HostDevice::destroy(Stream stream) noexcept {
  auto found = streams_.find(stream);
  if (found == streams_.end()) {
    broken_ = true;
    return;
  }
  dropped_ += static_cast<std::int64_t>(found->second.pieces.size());
  streams_.erase(found);
}

HostDevice::Event HostDevice::create_event() {
  auto handle = reinterpret_cast<Event>(++handles_);
  events_[handle] = nullptr;
  return handle;
}

void HostDevice::destroy(Event event) noexcept {
  if (events_.erase(event) == 0) broken_ = true;
}

HostDevice::Queue& HostDevice::queue_of(Stream stream) {
  if (broken_) refuse("used after it had failed, or a handle was destroyed twice");
  auto found = streams_.find(stream);
  if (found == streams_.end()) refuse("a stream that is not there");
  return found->second;
}

HostDevice::RecordRef& HostDevice::record_of(Event event) {
  if (broken_) refuse("used after it had failed, or a handle was destroyed twice");
  auto found = events_.find(event);
  if (found == events_.end()) refuse("an event that is not there");
  return found->second;
}

void HostDevice::record(Event event, Stream stream) {
  RecordRef& record = record_of(event);
  record = std::make_shared<Record>();
  record->stream = stream;
  queue_of(stream).pieces.push_back({nullptr, record, nullptr});
}

void HostDevice::wait(Stream stream, Event event) {
  RecordRef& record = record_of(event);
  if (!record) refuse("a stream waits for an event that was never recorded");
  if (waits_++ == options_.forget_wait) return;
  queue_of(stream).pieces.push_back({nullptr, nullptr, record});
}

bool HostDevice::done(Event event) {
  RecordRef record = record_of(event);
  if (!record) refuse("an event that was never recorded is asked for");
  try {
    return run_until(record);
  } catch (...) {
    broken_ = true;
    throw;
  }
}

std::int64_t HostDevice::elapsed_ps(Event from, Event to) {
  RecordRef a = record_of(from), b = record_of(to);
  if (!a || !b || !a->complete || !b->complete)
    refuse("the time between events of which one is not complete");
  return (b->tick - a->tick) * kTickPs;
}

bool HostDevice::is_ready(const Queue& queue) const {
  if (queue.pieces.empty() || queue.running) return false;
  const StreamTask& piece = queue.pieces.front();
  return !piece.awaited || piece.awaited->complete;
}

// Whether the stream got on by one piece.
bool HostDevice::run_next(Queue& queue) {
  if (!is_ready(queue) || (options_.stuck_after >= 0 && ticks_ >= options_.stuck_after))
    return false;
  StreamTask& piece = queue.pieces.front();
  if (piece.work) {
    // Work of another library may make this device go on, but not past that work.
    queue.running = true;
    bool is_done = piece.work();
    queue.running = false;
    if (!is_done) return false;
    ++ticks_;
  }
  if (piece.record) {
    piece.record->complete = true;
    piece.record->tick = ticks_;
  }
  queue.pieces.pop_front();
  return true;
}

// Streams that run ahead although nobody waits for them: none, some, or all; the most recent first,
// or any.
void HostDevice::run_some_others() {
  if (options_.seed == 0 || streams_.empty() || prng_.one_in(3)) return;
  std::int64_t most = prng_.one_in(3) ? 1'000'000 : prng_.below(6);
  bool recent_first = prng_.one_in(2);
  for (std::int64_t i = 0; i < most; ++i) {
    std::vector<Queue*> ready;
    for (auto& [handle, queue] : streams_)
      if (is_ready(queue)) ready.push_back(&queue);
    if (ready.empty()) return;
    if (!run_next(recent_first ? *ready.back() : *prng_.pick(ready))) return;
  }
}

// Runs what the recording needs, backwards from it: its own stream up to it, and what that waits
// for.
bool HostDevice::run_until(const RecordRef& record) {
  Open open(*this);
  // Held: what waits for a recording may let go of it meanwhile.
  std::vector<RecordRef> wanted{record};
  while (!wanted.empty()) {
    RecordRef held = wanted.back();
    const Record& now = *held;
    if (now.complete) {
      wanted.pop_back();
      continue;
    }
    run_some_others();
    if (now.complete) continue;
    auto found = streams_.find(now.stream);
    if (found == streams_.end())
      refuse("waiting for an event whose stream was destroyed before it got there");
    Queue& queue = found->second;
    RESHARD_CHECK(!queue.pieces.empty(), "an incomplete event is in its stream's queue");
    const RecordRef& awaited = queue.pieces.front().awaited;
    if (awaited && !awaited->complete)
      wanted.push_back(awaited);
    else if (!run_next(queue))
      return false;
  }
  return true;
}

bool HostDevice::progress() {
  Open open(*this);
  bool any = false;
  while (true) {
    std::vector<Queue*> queues;
    for (auto& [handle, queue] : streams_) queues.push_back(&queue);
    prng_.shuffle(queues);
    if (!std::any_of(queues.begin(), queues.end(), [&](Queue* queue) { return run_next(*queue); }))
      return any;
    any = true;
  }
}

void HostDevice::enqueue(Stream stream, Work work) { put(stream, std::move(work)); }

// ---- work ----

void HostDevice::upload(std::byte* to, std::span<const std::byte> from_host, Stream stream) {
  put(stream, [this, to, from_host] {
    check_range(to, static_cast<std::int64_t>(from_host.size()), "upload");
    std::memcpy(to, from_host.data(), from_host.size());
    return true;
  });
}

void HostDevice::download(std::span<std::byte> to_host, const std::byte* from, Stream stream) {
  put(stream, [this, to_host, from] {
    check_range(from, static_cast<std::int64_t>(to_host.size()), "download");
    std::memcpy(to_host.data(), from, to_host.size());
    return true;
  });
}

void HostDevice::set_bytes(std::byte* to, std::int64_t bytes, std::uint8_t value, Stream stream) {
  put(stream, [this, to, bytes, value] {
    check_range(to, bytes, "set_bytes");
    std::memset(to, value, static_cast<std::size_t>(bytes));
    return true;
  });
}

void HostDevice::copy(const CopyLaunch& launch, Stream stream) {
  put(stream, [this, launch] {
    check_range(reinterpret_cast<const std::byte*>(launch.tiles),
                launch.count * static_cast<std::int64_t>(sizeof(CopyTile)), "tiles of a copy");
    for (std::int64_t i = 0; i < launch.count; ++i) check_copy(launch.tiles[i], launch);
    std::vector<CopyTile> tiles = drawn_order(launch.tiles, launch.count);
    host_kernels::copy({tiles.data(), launch.count, launch.unit_bytes, launch.lanes});
    return true;
  });
}

void HostDevice::fold(const FoldLaunch& launch, Stream stream) {
  put(stream, [this, launch] {
    check_range(reinterpret_cast<const std::byte*>(launch.tiles),
                launch.count * static_cast<std::int64_t>(sizeof(FoldTile)), "tiles of a fold");
    for (std::int64_t i = 0; i < launch.count; ++i) check_fold(launch.tiles[i], launch);
    std::vector<FoldTile> tiles = drawn_order(launch.tiles, launch.count);
    FoldLaunch shuffled = launch;
    shuffled.tiles = tiles.data();
    host_kernels::fold(shuffled);
    return true;
  });
}

template <class Tile>
std::vector<Tile> HostDevice::drawn_order(const Tile* tiles, std::int64_t count) {
  std::vector<Tile> out(tiles, tiles + count);
  if (options_.seed != 0) prng_.shuffle(out);
  return out;
}

void HostDevice::check_rows(const std::byte* at, std::int64_t pitch, std::int64_t rows,
                            std::int64_t row_bytes, int alignment, const char* what) const {
  if (!is_aligned(at, alignment) || (rows > 1 && pitch % alignment != 0))
    refuse(fmt::format("{}: not aligned to {} bytes", what, alignment));
  if (rows > 1 && pitch < row_bytes)
    refuse(fmt::format("{}: rows of {} bytes, {} apart", what, row_bytes, pitch));
  check_range(at, (rows - 1) * pitch + row_bytes, what);
}

void HostDevice::check_copy(const CopyTile& tile, const CopyLaunch& launch) const {
  int unit = launch.unit_bytes, lanes = launch.lanes;
  if ((unit != 1 && unit != 2 && unit != 4 && unit != 8 && unit != 16) || lanes < 1 ||
      (lanes & (lanes - 1)) != 0 || tile.rows < 1 || tile.units < 1)
    refuse(fmt::format("a copy of {} x {} units of {} bytes by {} lanes", tile.rows, tile.units,
                       unit, lanes));
  std::int64_t row_bytes = std::int64_t{tile.units} * unit;
  check_rows(tile.destination, tile.destination_pitch, tile.rows, row_bytes, unit,
             "destination of a copy");
  if (tile.source != nullptr)
    check_rows(tile.source, tile.source_pitch, tile.rows, row_bytes, unit, "source of a copy");
}

void HostDevice::check_fold(const FoldTile& tile, const FoldLaunch& launch) const {
  int lanes = launch.lanes;
  std::int64_t width = size_bytes(launch.dtype), row_bytes = tile.count * width;
  if (!can_fold(launch.op, launch.dtype, launch.divisor) ||
      (launch.unit_bytes != 16 && launch.unit_bytes != width) || lanes < 1 ||
      (lanes & (lanes - 1)) != 0 || tile.rows < 1 || tile.count < 1 || tile.operand_count < 1 ||
      row_bytes % launch.unit_bytes != 0)
    refuse(fmt::format("a fold of {} operands, {} x {} elements in units of {} bytes by {} lanes",
                       tile.operand_count, tile.rows, tile.count, launch.unit_bytes, lanes));
  check_rows(tile.destination, tile.destination_pitch, tile.rows, row_bytes, launch.unit_bytes,
             "destination of a fold");
  check_range(reinterpret_cast<const std::byte*>(tile.operands),
              tile.operand_count * static_cast<std::int64_t>(sizeof(FoldOperand)),
              "operands of a fold");
  for (std::int32_t k = 0; k < tile.operand_count; ++k) {
    const FoldOperand& operand = tile.operands[k];
    check_rows(operand.data + tile.first_row * operand.pitch + tile.offset, operand.pitch,
               tile.rows, row_bytes, launch.unit_bytes, "operand of a fold");
  }
}

}  // namespace reshard::test
