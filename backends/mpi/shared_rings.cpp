// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/shared_rings.h"

#include <filesystem>
#include <memory>

#include "backends/mpi/calls.h"
#include "core/base/ids.h"

namespace reshard::backends::mpi {
namespace {

// For all slots of a node: a container often has 64 MiB of shared memory, and MPI takes half of it.
constexpr std::int64_t kBudget = std::int64_t{16} << 20;

// If Open MPI finds no room for a window, one process reports that and the others wait for ever.
bool there_is_room(std::int64_t bytes) {
  std::error_code none;
  std::filesystem::space_info space = std::filesystem::space("/dev/shm", none);
  return none || space.available > static_cast<std::uintmax_t>(bytes);
}

bool all(bool mine, MPI_Comm node) {
  int here = mine ? 1 : 0, everywhere = 0;
  RESHARD_MPI_CALL(-1, MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, node));
  return everywhere == 1;
}

}  // namespace

std::unique_ptr<SharedRings> SharedRings::make(MPI_Comm node) {
  int place = 0, places = 0;
  RESHARD_MPI_CALL(-1, MPI_Comm_rank(node, &place));
  RESHARD_MPI_CALL(-1, MPI_Comm_size(node, &places));
  if (places == 1) return nullptr;
  std::unique_ptr<SharedRings> rings(new SharedRings(place, places, kBudget));
  if (all(there_is_room(2 * rings->bytes()), node) && all(rings->allocate(node), node))
    return rings;
  // Freeing a window is collective over its processes, some of which may have none.
  rings->window_ = MPI_WIN_NULL;
  return nullptr;
}

bool SharedRings::allocate(MPI_Comm node) {
  void* memory = nullptr;
  // One page more than needed, to align: implementations align to a few bytes only, and packing
  // into slots not aligned to cache lines took a third longer.
  MPI_Aint size = place() == 0 ? bytes() + kPage : 0;
  int unit = 0;
  if (MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, node, &memory, &window_) != MPI_SUCCESS ||
      MPI_Win_shared_query(window_, 0, &size, &unit, &memory) != MPI_SUCCESS)
    return false;
  auto room = to_index(size);
  lie_at(static_cast<std::byte*>(std::align(kPage, room - kPage, memory, room)));
  if (place() == 0) begin();
  return true;
}

SharedRings::~SharedRings() {
  if (window_ != MPI_WIN_NULL && mpi_is_up()) MPI_Win_free(&window_);
}

}  // namespace reshard::backends::mpi
