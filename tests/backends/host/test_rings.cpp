// SPDX-License-Identifier: BSD-3-Clause
// Messages through rings of shared memory; threads act as processes, each with its own view.
#include <catch2/catch.hpp>

#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "backends/host/ring_traffic.h"
#include "core/base/errors.h"
#include "core/bytes/block.h"

using namespace reshard;
using namespace reshard::backends::host;

namespace {

constexpr std::int64_t kBudget = 1;  // the smallest slots, 16 KiB

struct Memory {
  explicit Memory(int places)
      : block(Rings(0, places, kBudget).bytes() + Doorbells::bytes(places) + Rings::kPage) {
    std::memset(block.data(), 0, to_index(block.size()));
    void* at = block.data();
    auto room = to_index(block.size());
    begin = static_cast<std::byte*>(std::align(Rings::kPage, 1, at, room));
  }
  Block block;
  std::byte* begin;
};

// One process's view.
struct Process {
  Process(const Memory& memory, int place, int places)
      : rings(place, places, kBudget), doorbells(place, places, memory.begin + rings.bytes()) {
    rings.lie_at(memory.begin);
  }
  Rings rings;
  Doorbells doorbells;
  RingTraffic traffic{rings, doorbells};
};

HostMessage message(std::vector<std::int32_t>& values, int peer, std::int64_t slot_bytes) {
  HostMessage out;
  out.peer = peer;
  auto count = static_cast<std::int64_t>(values.size());
  append(out, {reinterpret_cast<std::byte*>(values.data()), {count}, {0}, {count}, 4}, slot_bytes);
  return out;
}

bool for_ever(int, std::chrono::milliseconds) { return true; }

void run_all(int places, const std::function<void(int place)>& body) {
  std::vector<std::thread> threads;
  for (int place = 0; place < places; ++place) threads.emplace_back(body, place);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("messages of any length arrive whole, call after call") {
  constexpr int kPlaces = 3, kCalls = 200;
  Memory memory(kPlaces);
  std::atomic<int> wrong{0};
  run_all(kPlaces, [&](int place) {
    Process process(memory, place, kPlaces);
    for (int call = 0; call < kCalls; ++call) {
      // Up to twice what all slots of a ring hold, of another length for each pair.
      auto length = [&](int from, int to) {
        return static_cast<std::size_t>(1 + (7919 * call + 104'729 * from + 611 * to) % 32'768);
      };
      auto value = [&](int from, std::size_t i) {
        return call * 1'000 + from + static_cast<int>(i);
      };
      std::vector<std::vector<std::int32_t>> sent(kPlaces), received(kPlaces);
      std::vector<HostMessage> sends, receives;
      for (int peer = 0; peer < kPlaces; ++peer) {
        if (peer == place) continue;
        auto& out = sent[to_index(peer)];
        out.resize(length(place, peer));
        std::iota(out.begin(), out.end(), value(place, 0));
        received[to_index(peer)].resize(length(peer, place));
        sends.push_back(message(out, peer, process.rings.slot_bytes()));
        receives.push_back(message(received[to_index(peer)], peer, process.rings.slot_bytes()));
      }
      process.traffic.carry(sends, receives, call, 0, for_ever);
      for (int peer = 0; peer < kPlaces; ++peer)
        for (std::size_t i = 0; i < received[to_index(peer)].size(); ++i)
          if (received[to_index(peer)][i] != value(peer, i)) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("one that sleeps is woken, and is asked meanwhile whether it waits on") {
  Memory memory(2);
  std::atomic<int> asked{0};
  std::vector<std::int32_t> values{1, 2, 3}, found(3);
  run_all(2, [&](int place) {
    Process process(memory, place, 2);
    if (place == 0) {
      while (asked == 0) std::this_thread::yield();
      process.traffic.carry({message(values, 1, process.rings.slot_bytes())}, {}, 0, 0, for_ever);
    } else {
      process.traffic.carry({}, {message(found, 0, process.rings.slot_bytes())}, 0, 0,
                            [&](int from, std::chrono::milliseconds) {
                              asked += from == 0 ? 1 : 1'000;
                              return true;
                            });
    }
  });
  CHECK(found == values);
  CHECK((asked >= 1 && asked < 1'000));
}

TEST_CASE("who waits in vain gives up, and is not taken for one that still sleeps") {
  Memory memory(2);
  Process process(memory, 1, 2);
  std::vector<std::int32_t> found(3);
  auto give_up = [](int, std::chrono::milliseconds) { return false; };
  CHECK_THROWS_AS(
      process.traffic.carry({}, {message(found, 0, process.rings.slot_bytes())}, 0, 0, give_up),
      BackendError);
  auto* bell = reinterpret_cast<std::atomic<std::uint32_t>*>(memory.begin + process.rings.bytes() +
                                                             Doorbells::bytes(1));
  CHECK(*bell == 0);
}

TEST_CASE("another message than the one awaited is refused") {
  Memory memory(2);
  Process here(memory, 0, 2), there(memory, 1, 2);
  std::int64_t slot = here.rings.slot_bytes();
  std::vector<std::int32_t> three{1, 2, 3}, four(4);
  here.traffic.carry({message(three, 1, slot)}, {}, 8, 5, for_ever);
  auto refused = [&](std::vector<std::int32_t>& into, std::int64_t run, std::int64_t tag,
                     const std::string& expected) {
    CHECK_THROWS_WITH(
        there.traffic.carry({}, {message(into, 0, slot)}, run, tag, for_ever),
        Catch::Contains("expected " + expected + "; found 12 B of run 8, exchange 5"));
  };
  std::vector<std::int32_t> found(3);
  refused(four, 8, 5, "16 B of run 8, exchange 5");
  refused(found, 8, 6, "12 B of run 8, exchange 6");
  refused(found, 7, 5, "12 B of run 7, exchange 5");
  there.traffic.carry({}, {message(found, 0, slot)}, 8, 5, for_ever);
  CHECK(found == three);
}
