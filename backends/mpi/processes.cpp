// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/processes.h"

#include <algorithm>

namespace reshard::backends::mpi {
namespace {

constexpr int kRoot = 0;
constexpr int kTag = 0;  // those of steps are larger

std::span<const std::byte> bytes_of(const std::int64_t& value) {
  return std::as_bytes(std::span(&value, 1));
}
std::span<std::byte> bytes_of(std::int64_t& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// visit(chunk) for consecutive chunks of at most `limit` bytes.
template <class Byte, class Visit>
void for_each_chunk(std::span<Byte> bytes, std::int64_t limit, const Visit& visit) {
  auto most = static_cast<std::size_t>(limit);
  for (std::size_t at = 0; at < bytes.size(); at += most)
    visit(bytes.subspan(at, std::min(most, bytes.size() - at)));
}

}  // namespace

void MpiProcesses::send(std::span<const std::byte> bytes, int to) {
  for_each_chunk(bytes, world_.options.chunk_bytes, [&](std::span<const std::byte> chunk) {
    MPI_Request request = MPI_REQUEST_NULL;
    RESHARD_MPI_CALL(world_.rank, MPI_Isend(chunk.data(), static_cast<int>(chunk.size()), MPI_BYTE,
                                            to, kTag, world_.comm.get(), &request));
    world_.wait(request, "gather", to);
  });
}

void MpiProcesses::receive(std::span<std::byte> bytes, int from) {
  for_each_chunk(bytes, world_.options.chunk_bytes, [&](std::span<std::byte> chunk) {
    MPI_Request request = MPI_REQUEST_NULL;
    RESHARD_MPI_CALL(world_.rank, MPI_Irecv(chunk.data(), static_cast<int>(chunk.size()), MPI_BYTE,
                                            from, kTag, world_.comm.get(), &request));
    world_.wait(request, "gather", from);
  });
}

std::vector<std::vector<std::byte>> MpiProcesses::gather(std::span<const std::byte> mine) {
  std::vector<std::vector<std::byte>> out;
  auto size = static_cast<std::int64_t>(mine.size());
  if (!is_root()) {
    send(bytes_of(std::as_const(size)), kRoot);
    send(mine, kRoot);
    return out;
  }
  out.resize(static_cast<std::size_t>(count()));
  for (int process = 0; process < count(); ++process) {
    std::vector<std::byte>& bytes = out[static_cast<std::size_t>(process)];
    if (process == kRoot) {
      bytes.assign(mine.begin(), mine.end());
      continue;
    }
    receive(bytes_of(size), process);
    bytes.resize(static_cast<std::size_t>(size));
    receive(bytes, process);
  }
  return out;
}

std::vector<std::byte> MpiProcesses::broadcast(std::span<const std::byte> mine) {
  auto size = static_cast<std::int64_t>(mine.size());
  std::vector<std::byte> out;
  auto spread = [&](std::span<std::byte> bytes) {
    for_each_chunk(bytes, world_.options.chunk_bytes, [&](std::span<std::byte> chunk) {
      MPI_Request request = MPI_REQUEST_NULL;
      RESHARD_MPI_CALL(world_.rank, MPI_Ibcast(chunk.data(), static_cast<int>(chunk.size()),
                                               MPI_BYTE, kRoot, world_.comm.get(), &request));
      world_.wait(request, "broadcast", is_root() ? -1 : kRoot);
    });
  };
  spread(bytes_of(size));
  if (is_root()) out.assign(mine.begin(), mine.end());
  out.resize(static_cast<std::size_t>(size));
  spread(out);
  return out;
}

void MpiProcesses::abort(int exit_code) noexcept {
  if (count() > 1) MPI_Abort(world_.comm.get(), exit_code);
}

}  // namespace reshard::backends::mpi
