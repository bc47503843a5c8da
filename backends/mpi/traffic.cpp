// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/traffic.h"

#include <algorithm>
#include <cstring>

namespace reshard::backends::mpi {
namespace {

// Staging that is kept for the next message, in blocks.
constexpr std::size_t kSpareBlocks = 32;

}  // namespace

void Traffic::carry(const Message& message, bool receives, Pending& pending) {
  if (!world_.on_node(message.peer)) return begin(message, receives, pending);
  (receives ? incoming_ : outgoing_)[to_index(message.peer)].push_back({&message, &pending, 0});
  ++streams_;
  ++pending;
}

void Traffic::begin(const Message& message, bool receives, Pending& pending) {
  for (const Chunk& chunk : message.chunks) {
    Call call{&message, &chunk, &pending, nullptr, nullptr, receives};
    std::byte* at = chunk.in_place;
    if (at == nullptr) {
      call.staging = staging(chunk.bytes);
      at = call.staging->data();
      if (!receives) pack(message, chunk, at);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    int count = static_cast<int>(chunk.bytes);
    MPI_Comm comm = world_.comm.get();
    if (receives)
      RESHARD_MPI_CALL(world_.rank,
                       MPI_Irecv(at, count, MPI_BYTE, message.peer, message.tag, comm, &request));
    else
      RESHARD_MPI_CALL(world_.rank,
                       MPI_Isend(at, count, MPI_BYTE, message.peer, message.tag, comm, &request));
    requests_.push_back(request);
    calls_.push_back(std::move(call));
    ++pending;
  }
}

void Traffic::track(MPI_Request request, const std::vector<int>& group, Pending& pending) {
  requests_.push_back(request);
  calls_.push_back({nullptr, nullptr, &pending, nullptr, &group, true});
  ++pending;
}

// The smallest spare block that is large enough and not wastefully so.
std::unique_ptr<Block> Traffic::staging(std::int64_t bytes) {
  std::size_t best = spare_.size();
  for (std::size_t i = 0; i < spare_.size(); ++i) {
    std::int64_t size = spare_[i]->size();
    if (size >= bytes && size / 2 <= bytes &&
        (best == spare_.size() || size < spare_[best]->size()))
      best = i;
  }
  if (best == spare_.size()) return std::make_unique<Block>(bytes);
  std::unique_ptr<Block> out = std::move(spare_[best]);
  spare_.erase(spare_.begin() + static_cast<std::ptrdiff_t>(best));
  return out;
}

bool Traffic::progress() {
  bool moved = streams_ > 0 && progress_rings();
  if (!requests_.empty()) moved = progress_calls() || moved;
  return moved;
}

// One chunk each way with every process: all peers are served alike, and what was packed is
// unpacked while it is in the caches.
bool Traffic::progress_rings() {
  bool moved = false;
  for (int i = 1; i < world_.size && streams_ > 0; ++i) {
    if (pack_one((world_.rank + i) % world_.size)) moved = true;
    if (unpack_one((world_.rank - i + world_.size) % world_.size)) moved = true;
  }
  return moved;
}

bool Traffic::pack_one(int process) {
  std::deque<Stream>& queue = outgoing_[to_index(process)];
  if (queue.empty()) return false;
  int place = world_.node_place[to_index(process)];
  Stream& stream = queue.front();
  std::byte* slot = world_.rings->free_slot(place);
  if (slot == nullptr) return false;
  pack(*stream.message, stream.message->chunks[stream.next_chunk], slot);
  world_.rings->filled(place);
  if (++stream.next_chunk == stream.message->chunks.size()) {
    --*stream.pending;
    --streams_;
    queue.pop_front();
  }
  return true;
}

bool Traffic::unpack_one(int process) {
  std::deque<Stream>& queue = incoming_[to_index(process)];
  if (queue.empty()) return false;
  int place = world_.node_place[to_index(process)];
  const std::byte* slot = world_.rings->full_slot(place);
  if (slot == nullptr) return false;
  Stream& stream = queue.front();
  unpack(*stream.message, stream.message->chunks[stream.next_chunk], slot);
  world_.rings->drained(place);
  if (++stream.next_chunk == stream.message->chunks.size()) {
    --*stream.pending;
    --streams_;
    queue.pop_front();
  }
  return true;
}

bool Traffic::progress_calls() {
  completed_.resize(requests_.size());
  int count = 0;
  RESHARD_MPI_CALL(world_.rank, MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(),
                                             &count, completed_.data(), MPI_STATUSES_IGNORE));
  if (count == MPI_UNDEFINED || count == 0) return false;
  // From the back, so that what fills a gap is never one of those still to be finished.
  std::sort(completed_.begin(), completed_.begin() + count, std::greater<>());
  for (int i = 0; i < count; ++i) {
    auto at = to_index(completed_[to_index(i)]);
    finish(calls_[at]);
    calls_[at] = std::move(calls_.back());
    requests_[at] = requests_.back();
    calls_.pop_back();
    requests_.pop_back();
  }
  return true;
}

void Traffic::finish(Call& call) {
  if (call.staging != nullptr) {
    if (call.receives) unpack(*call.message, *call.chunk, call.staging->data());
    if (spare_.size() < kSpareBlocks) spare_.push_back(std::move(call.staging));
    call.staging.reset();
  }
  --*call.pending;
}

std::vector<int> Traffic::awaited(const std::vector<const Pending*>& pending) const {
  std::vector<int> out;
  auto asked = [&](const Pending* one) {
    return std::find(pending.begin(), pending.end(), one) != pending.end();
  };
  for (std::size_t process = 0; process < outgoing_.size(); ++process)
    for (const auto* queue : {&outgoing_[process], &incoming_[process]})
      for (const Stream& stream : *queue)
        if (asked(stream.pending)) out.push_back(static_cast<int>(process));
  for (const Call& call : calls_) {
    if (!asked(call.pending)) continue;
    if (call.message != nullptr) out.push_back(call.message->peer);
    if (call.group != nullptr)
      for (int process : *call.group)
        if (process != world_.rank) out.push_back(process);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void Traffic::abandon() noexcept {
  for (std::size_t i = 0; i < requests_.size(); ++i)
    if (calls_[i].message != nullptr && calls_[i].receives) MPI_Cancel(&requests_[i]);
}

}  // namespace reshard::backends::mpi
