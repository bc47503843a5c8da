// SPDX-License-Identifier: BSD-3-Clause
#include "core/bytes/block.h"

#include <algorithm>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace reshard {
namespace {

constexpr std::int64_t kAlignment = 64, kHugePage = std::int64_t{1} << 21;

std::align_val_t alignment(std::int64_t bytes) {
  return std::align_val_t(
      static_cast<std::size_t>(bytes >= 2 * kHugePage ? kHugePage : kAlignment));
}

// Nothrow `new`, because under sanitizers the throwing one ends the program.
std::byte* allocate(std::int64_t bytes) {
  void* data = ::operator new(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)),
                              alignment(bytes), std::nothrow);
  if (!data) throw std::bad_alloc();
  return static_cast<std::byte*>(data);
}

}  // namespace

Block::Block(std::int64_t bytes) : data_(allocate(bytes)), bytes_(bytes) {
#if defined(__linux__)
  // Only a hint: without huge pages the memory is just slower.
  if (bytes >= 2 * kHugePage)
    madvise(data_, static_cast<std::size_t>(bytes / kHugePage * kHugePage), MADV_HUGEPAGE);
#endif
}

Block::~Block() { ::operator delete(data_, alignment(bytes_)); }

}  // namespace reshard
