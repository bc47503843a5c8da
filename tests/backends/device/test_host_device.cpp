// SPDX-License-Identifier: BSD-3-Clause
// The device made of host memory itself: it runs correct work in every order, and finds mistakes.
#include <catch2/catch.hpp>

#include <algorithm>

#include "backends/device/launch_tables.h"
#include "backends/device/owners.h"
#include "core/base/errors.h"
#include "tests/support/standins/host_device.h"

using namespace reshard;
using namespace reshard::test;
using namespace reshard::backends;
using Catch::Matchers::Contains;

namespace {

std::vector<std::byte> filled(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

// Two streams, one buffer: the first writes it, the second reads it and a third write follows;
// `wait` and `wait_back` order them.
struct Race {
  bool shows(std::uint64_t seed, bool wait, bool wait_back) {
    HostDevice device({.seed = seed});
    StreamOwner one(device), two(device);
    EventOwner written(device), read(device), end(device), other_end(device);
    DeviceMemory memory(device, 64);
    std::vector<std::byte> first = filled(64, 1), second = filled(64, 2), out = filled(64, 0);
    device.upload(memory.data(), first, one.get());
    device.record(written.get(), one.get());
    if (wait) device.wait(two.get(), written.get());
    device.download(out, memory.data(), two.get());
    device.record(read.get(), two.get());
    if (wait_back) device.wait(one.get(), read.get());
    device.upload(memory.data(), second, one.get());
    device.record(end.get(), one.get());
    device.record(other_end.get(), two.get());
    CHECK(device.done(other_end.get()));
    CHECK(device.done(end.get()));
    return out != first;
  }
};

// One tile, launched and waited for.
void launch(HostDevice& device, CopyTile tile, int unit_bytes = 16, int lanes = 4) {
  StreamOwner stream(device);
  EventOwner end(device);
  DeviceMemory table(device, sizeof tile);
  device.upload(table.data(), std::as_bytes(std::span(&tile, 1)), stream.get());
  device.copy({reinterpret_cast<const CopyTile*>(table.data()), 1, unit_bytes, lanes},
              stream.get());
  device.record(end.get(), stream.get());
  device.done(end.get());
}

}  // namespace

TEST_CASE("host device: a missing wait shows in some order, a complete set of them in none") {
  Race race;
  int without_wait = 0, without_wait_back = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CHECK_FALSE(race.shows(seed, true, true));
    without_wait += race.shows(seed, false, true);
    without_wait_back += race.shows(seed, true, false);
  }
  CHECK(without_wait > 10);
  CHECK(without_wait_back > 10);
}

TEST_CASE("host device: nothing runs before somebody asks, and host memory is read only then") {
  HostDevice device({.seed = 0});
  StreamOwner stream(device);
  EventOwner end(device);
  DeviceMemory memory(device, 16);
  std::vector<std::byte> in = filled(16, 1), out = filled(16, 9);
  device.upload(memory.data(), in, stream.get());
  device.download(out, memory.data(), stream.get());
  device.record(end.get(), stream.get());
  CHECK(out == filled(16, 9));
  std::fill(in.begin(), in.end(), std::byte{3});
  CHECK(device.done(end.get()));
  CHECK(out == filled(16, 3));
}

TEST_CASE("host device: tiles that are wrong are refused") {
  auto refused = [](const char* what, auto&& make, int unit_bytes = 16, int lanes = 4) {
    HostDevice device;
    DeviceMemory from(device, 1024), to(device, 1024);
    CopyTile tile{to.data(), from.data(), 64, 64, 2, 4};
    make(device, tile);
    CHECK_THROWS_WITH(launch(device, tile, unit_bytes, lanes), Contains(what));
    CHECK_THROWS_AS(device.set_bytes(to.data(), 1, 0, device.create_stream()),
                    CheckFailure);  // nothing runs after a failure
  };
  refused("destination of a copy: not aligned to 16 bytes",
          [](HostDevice&, CopyTile& tile) { tile.destination += 8; });
  refused("source of a copy: not aligned to 16 bytes",
          [](HostDevice&, CopyTile& tile) { tile.source_pitch = 72; });
  refused("destination of a copy: 1040 bytes at 0 of an allocation of 1024",
          [](HostDevice&, CopyTile& tile) { tile.destination_pitch = 976; });
  refused("source of a copy", [](HostDevice&, CopyTile& tile) { tile.source -= 16; });
  refused("rows of 64 bytes, 32 apart",
          [](HostDevice&, CopyTile& tile) { tile.destination_pitch = 32; });
  refused(
      "by 3 lanes", [](HostDevice&, CopyTile&) {}, 16, 3);
  refused(
      "units of 5 bytes", [](HostDevice&, CopyTile&) {}, 5);
  refused("0 x 4 units", [](HostDevice&, CopyTile& tile) { tile.rows = 0; });
  refused("not allocated", [](HostDevice& device, CopyTile& tile) {
    tile.source = device.allocate(256);
    device.release(const_cast<std::byte*>(tile.source));
  });
  HostDevice device;
  DeviceMemory from(device, 1024), to(device, 1024);
  CHECK_NOTHROW(launch(device, {to.data(), from.data(), 64, 64, 2, 4}));
}

TEST_CASE("host device: memory is bounded, aligned, and rubbish when it is new") {
  HostDevice device({.seed = 1, .memory_bytes = 10'000});
  DeviceMemory a(device, 6'000);
  CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 256 == 0);
  CHECK(device.free_bytes() == 4'000);
  CHECK_THROWS_AS(device.allocate(4'001), BackendError);
  StreamOwner stream(device);
  EventOwner end(device);
  std::vector<std::byte> out = filled(6'000, 0);
  device.download(out, a.data(), stream.get());
  device.record(end.get(), stream.get());
  CHECK(device.done(end.get()));
  CHECK(out[0] != std::byte{0});
  CHECK(out == filled(6'000, static_cast<int>(out[0])));
}

TEST_CASE("host device: misuse of events is refused") {
  HostDevice device;
  StreamOwner stream(device);
  EventOwner never(device), begin(device), end(device);
  CHECK_THROWS_WITH(device.done(never.get()), Contains("never recorded"));
  CHECK_THROWS_WITH(device.wait(stream.get(), never.get()), Contains("never recorded"));
  device.record(begin.get(), stream.get());
  device.record(end.get(), stream.get());
  CHECK_THROWS_WITH(device.elapsed_ps(begin.get(), end.get()), Contains("not complete"));
  CHECK(device.done(end.get()));
  CHECK(device.elapsed_ps(begin.get(), end.get()) == 0);
}

TEST_CASE("host device: work of a stand-in library holds its stream until it is done") {
  HostDevice device;
  StreamOwner stream(device);
  EventOwner end(device);
  bool arrived = false;
  int asked = 0;
  device.enqueue(stream.get(), [&] {
    ++asked;
    return arrived;
  });
  device.record(end.get(), stream.get());
  CHECK_FALSE(device.done(end.get()));
  CHECK_FALSE(device.done(end.get()));
  arrived = true;
  CHECK(device.progress());
  CHECK(device.done(end.get()));
  CHECK(asked >= 3);
}

TEST_CASE("launch tables: one upload, launched on any stream as often as asked") {
  HostDevice device({.seed = 4});
  StreamOwner stream(device);
  EventOwner end(device);
  DeviceMemory from(device, 4'096), to(device, 4'096), sum(device, 4'096);
  CopyTiles copies(0);
  Shape all{4'096}, words{1'024}, some{17};
  DimVector zero{0};
  copies.copy(to.data(), {all, zero}, from.data(), {all, zero}, all, 1);
  FoldTiles folds(0, 4);
  std::vector<const std::byte*> operands{from.data(), to.data()};
  std::vector<BoxPlace> word_places(2, {words, zero}), some_places(2, {some, zero});
  folds.fold(sum.data(), {words, zero}, operands, word_places, words);
  FoldTiles odd(0, 1);
  std::vector<const std::byte*> odd_operands{from.data() + 1, to.data()};
  odd.fold(sum.data() + 4, {some, zero}, odd_operands, some_places, some);
  LaunchTables tables;
  LaunchTables::Id copy = tables.add(copies),
                   fold = tables.add(folds, ReduceOp::Sum, DType::I32, 1),
                   empty = tables.add(CopyTiles(0));
  LaunchTables::Id odd_fold = tables.add(odd, ReduceOp::Max, DType::U8, 1);
  CHECK(tables.bytes() > 0);
  tables.upload(device, stream.get());
  std::vector<std::byte> out(4'096);
  for (int round = 1; round <= 3; ++round) {
    std::vector<std::byte> in = filled(4'096, round);
    device.upload(from.data(), in, stream.get());
    for (LaunchTables::Id id : {copy, fold, empty}) tables.launch(id, device, stream.get());
    device.download(out, sum.data(), stream.get());
    device.record(end.get(), stream.get());
    REQUIRE(device.done(end.get()));
    CHECK(out == filled(4'096, 2 * round));
  }
  tables.launch(odd_fold, device, stream.get());
  device.download(out, sum.data(), stream.get());
  device.record(end.get(), stream.get());
  REQUIRE(device.done(end.get()));
  CHECK(out[3] == std::byte{6});
  CHECK(out[4] == std::byte{3});
  CHECK(out[20] == std::byte{3});
  CHECK(out[21] == std::byte{6});
}
