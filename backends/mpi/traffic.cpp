// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/traffic.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"

namespace reshard::backends::mpi {
namespace {

// Blocks of staging memory kept for later messages.
constexpr std::size_t kSpareBlocks = 32;

// The inverse of LaunchContext::tag(), as long as its modulus has not wrapped.
std::int64_t step_of(std::int64_t tag) { return tag - 1; }

}  // namespace

void Traffic::carry(const HostMessage& message, bool receives, Pending& pending) {
  if (!world_.on_node(message.peer)) return begin(message, receives, pending);
  (receives ? incoming_ : outgoing_)[to_index(message.peer)].push_back({&message, &pending, 0});
  ++streams_;
  ++pending;
}

void Traffic::begin(const HostMessage& message, bool receives, Pending& pending) {
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

// The smallest spare block that is large enough and at most about twice as large as needed.
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

// Moves one chunk in each direction with every process: all peers are served equally, and packed
// data is unpacked while still in the caches.
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
  const Chunk& chunk = stream.message->chunks[stream.next_chunk];
  pack(*stream.message, chunk, slot);
  world_.rings->filled(place, {stream.message->tag, chunk.bytes});
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
  SharedRings::Label label{};
  const std::byte* slot = world_.rings->full_slot(place, label);
  if (slot == nullptr) return false;
  Stream& stream = queue.front();
  const Chunk& chunk = stream.message->chunks[stream.next_chunk];
  if (label != SharedRings::Label{stream.message->tag, chunk.bytes})
    refuse(*stream.message, chunk,
           fmt::format("{} of step {}", bytes_text(label.bytes), step_of(label.tag)));
  unpack(*stream.message, chunk, slot);
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
  statuses_.resize(requests_.size());
  int count = 0;
  int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                          completed_.data(), statuses_.data());
  if (code == MPI_ERR_IN_STATUS)
    for (int i = 0; i < count; ++i) check_status(calls_[to_index(completed_[to_index(i)])], i);
  check(code, "MPI_Testsome", world_.rank);
  if (count == MPI_UNDEFINED || count == 0) return false;
  for (int i = 0; i < count; ++i) check_length(calls_[to_index(completed_[to_index(i)])], i);
  // From the back, so that the entry moved into a gap is never one that is still to be finished.
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

// Checks the i-th completed call: throws its own error, naming the peer.
void Traffic::check_status(const Call& call, int i) const {
  int code = statuses_[to_index(i)].MPI_ERROR;
  if (code == MPI_SUCCESS || code == MPI_ERR_PENDING) return;
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  if (kind == MPI_ERR_TRUNCATE && call.message != nullptr && call.receives)
    refuse(*call.message, *call.chunk, "more");
  check(code,
        (call.message == nullptr
             ? std::string("a collective")
             : fmt::format("{} rank {} in step {}", call.receives ? "receiving from" : "sending to",
                           call.message->peer, step_of(call.message->tag)))
            .c_str(),
        world_.rank);
}

// MPI silently accepts a message that is too short.
void Traffic::check_length(const Call& call, int i) const {
  if (call.message == nullptr || !call.receives) return;
  int bytes = 0;
  check(MPI_Get_count(&statuses_[to_index(i)], MPI_BYTE, &bytes), "MPI_Get_count", world_.rank);
  if (bytes != call.chunk->bytes) refuse(*call.message, *call.chunk, bytes_text(bytes));
}

void Traffic::refuse(const HostMessage& expected, const Chunk& chunk,
                     const std::string& found) const {
  throw BackendError(
      "MPI", fmt::format("receiving from rank {} in step {}", expected.peer, step_of(expected.tag)),
      fmt::format("expected {}, found {}", bytes_text(chunk.bytes), found), world_.rank);
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
    if (calls_[i].message != nullptr && calls_[i].receives && requests_[i] != MPI_REQUEST_NULL)
      MPI_Cancel(&requests_[i]);
}

}  // namespace reshard::backends::mpi
