// SPDX-License-Identifier: BSD-3-Clause
// All changes of a word are atomic exchanges, which have a total order. Either the sleeper's
// exchange comes first, and the one that rings then wakes it; or the ring comes first, and the
// sleeper sees what was written before it.
#include "backends/host/doorbells.h"

#include <cerrno>
#include <ctime>
#include <memory>
#include <thread>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace reshard::backends::host {
namespace {

using Word = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(std::uint32_t));

#if defined(__linux__)
void wake(Word& word) { syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0); }

// Waits while the word is 1.
bool wait_on(Word& word, std::chrono::milliseconds most) {
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(most.count() / 1000);
  limit.tv_nsec = static_cast<long>(most.count() % 1000 * 1'000'000);
  return syscall(SYS_futex, &word, FUTEX_WAIT, 1, &limit, nullptr, 0) == 0 || errno == EAGAIN;
}
#else
void wake(Word&) {}

bool wait_on(Word& word, std::chrono::milliseconds most) {
  constexpr std::chrono::microseconds kNap{50};
  for (std::chrono::microseconds slept{0}; slept < most; slept += kNap) {
    if (word.load(std::memory_order_acquire) == 0) return true;
    std::this_thread::sleep_for(kNap);
  }
  return false;
}
#endif

}  // namespace

Doorbells::Doorbells(int place, int places, std::byte* memory)
    : doorbells_(reinterpret_cast<Doorbell*>(memory)), place_(place), places_(places) {}

std::int64_t Doorbells::bytes(int places) {
  return places * static_cast<std::int64_t>(sizeof(Doorbell));
}

void Doorbells::begin() { std::uninitialized_value_construct_n(doorbells_, places_); }

void Doorbells::ring(int place) {
  Word& word = doorbells_[place].listening;
  if (word.exchange(0, std::memory_order_acq_rel) == 1) wake(word);
}

void Doorbells::listen() { doorbells_[place_].listening.exchange(1, std::memory_order_acq_rel); }

bool Doorbells::sleep(std::chrono::milliseconds most) {
  return wait_on(doorbells_[place_].listening, most);
}

void Doorbells::stop_listening() {
  doorbells_[place_].listening.exchange(0, std::memory_order_acq_rel);
}

}  // namespace reshard::backends::host
