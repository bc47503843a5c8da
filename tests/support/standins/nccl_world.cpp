// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/standins/nccl_world.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/support/standins/nccl_standin.h"

namespace reshard::test {

using namespace reshard::backends::nccl;

namespace {
constexpr int kIdlePolls = 4;
}

NcclWorld::NcclWorld(std::vector<std::vector<std::int32_t>> drivers, NcclWorldOptions options)
    : options_(std::move(options)) {
  for (std::vector<std::int32_t>& ranks : drivers) {
    Driver driver;
    driver.ranks = std::move(ranks);
    drivers_.push_back(std::move(driver));
  }
}

void NcclWorld::ensure_sound() const {
  if (!finding_.empty()) throw NcclMisuse(finding_);
}

void NcclWorld::note_misuse(const std::string& what) noexcept {
  if (finding_.empty()) finding_ = what;
}

void NcclWorld::misuse(const std::string& what) {
  note_misuse(what);
  throw NcclMisuse(finding_);
}

void NcclWorld::idle(std::size_t d) {
  ensure_sound();
  Driver& driver = drivers_[d];
  driver.idle_polls = driver.seen == activity_ ? driver.idle_polls + 1 : 1;
  driver.seen = activity_;
  if (hanging_expected_) return;
  for (const Driver& other : drivers_)
    if (!other.ended && (other.seen != activity_ || other.idle_polls < kIdlePolls)) return;
  misuse("deadlock: " + who_waits());
}

std::string NcclWorld::who_waits() const {
  std::vector<std::string> lines;
  for (const std::shared_ptr<NcclLaunch>& launch : launches_)
    if (!launch->done) lines.push_back(text(*launch));
  for (const NcclFamily& family : families_) {
    if (family.complete()) continue;
    std::vector<std::size_t> missing;
    for (std::size_t r = 0; r < family.members.size(); ++r)
      if (family.members[r] == nullptr) missing.push_back(r);
    lines.push_back(fmt::format("communicator {} lacks its rank{} {}", family.name,
                                missing.size() > 1 ? "s" : "", fmt::join(missing, ",")));
  }
  for (const NcclHandle& handle : handles_)
    if (handle.splitting && !handle.gone)
      lines.push_back(fmt::format("rank {} waits in a split of communicator {}", handle.global_rank,
                                  handle.family->name));
  for (const Driver& driver : drivers_) {
    if (driver.ended)
      lines.push_back(fmt::format("rank {} has ended", fmt::join(driver.ranks, ",")));
    if (!driver.waits_for.empty())
      lines.push_back(
          fmt::format("rank {} waits in {}", fmt::join(driver.ranks, ","), driver.waits_for));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

NcclFamily& NcclWorld::add_family(std::size_t size, std::string name) {
  NcclFamily& family = families_.emplace_back();
  family.name = std::move(name);
  family.members.resize(size);
  return family;
}

NcclHandle& NcclWorld::add_handle(NcclFamily& family, int rank, StandinDevice& device,
                                  int most_blocks) {
  NcclHandle& handle = handles_.emplace_back();
  handle.family = &family;
  handle.rank = rank;
  handle.device = &device;
  handle.global_rank = device.rank();
  if (most_blocks > 0) handle.blocks = std::min(most_blocks, kBlocksOfKernel);
  return handle;
}

NcclHandle& NcclWorld::handle(NcclComm comm, const char* call) {
  ensure_sound();
  for (NcclHandle& handle : handles_) {
    if (reinterpret_cast<NcclComm>(&handle) != comm) continue;
    if (handle.aborted) misuse(fmt::format("{} of a communicator that was aborted", call));
    if (handle.gone) misuse(fmt::format("{} of a communicator that was destroyed", call));
    return handle;
  }
  misuse(fmt::format("{} of what is no communicator", call));
}

NcclUniqueId NcclWorld::new_id() {
  NcclUniqueId id;
  std::uint64_t number = ids_.size() + 1;
  std::memcpy(id.bytes.data() + 40, &number, sizeof number);
  ids_.emplace_back(id, nullptr);
  return id;
}

NcclFamily* NcclWorld::family_of(const NcclUniqueId& id) {
  for (auto& [known, family] : ids_)
    if (known.bytes == id.bytes) return family;
  misuse("ncclCommInitRankConfig with a unique id that nobody made");
}

void NcclWorld::set_family(const NcclUniqueId& id, NcclFamily& family) {
  for (auto& [known, entry] : ids_)
    if (known.bytes == id.bytes) entry = &family;
}

std::int64_t NcclWorld::live_handles() const {
  return std::count_if(handles_.begin(), handles_.end(),
                       [](const NcclHandle& handle) { return !handle.gone; });
}

// ---- devices ----

namespace {
HostDeviceOptions device_options(NcclWorld& world, std::int32_t rank) {
  std::uint64_t seed = world.options().seed;
  HostDeviceOptions options;
  options.seed = seed == 0 ? 0 : seed * 1000 + static_cast<std::uint64_t>(rank);
  options.memory_bytes = world.options().memory_bytes;
  options.multiprocessors = world.options().multiprocessors;
  return options;
}
}  // namespace

StandinDevice::StandinDevice(NcclWorld& world, std::size_t driver, std::int32_t rank)
    : HostDevice(device_options(world, rank)), world_(world), driver_(driver), rank_(rank) {
  std::lock_guard lock(world.mutex());
  world.driver(driver).devices.push_back(this);
}

StandinDevice::~StandinDevice() {
  std::lock_guard lock(world_.mutex());
  NcclWorld::Driver& driver = world_.driver(driver_);
  std::erase(driver.devices, this);
  if (driver.current == this) driver.current = nullptr;
}

void StandinDevice::select() {
  std::lock_guard lock(world_.mutex());
  world_.driver(driver_).current = this;
}

void StandinDevice::record(Event event, Stream stream) {
  known_.erase(event);
  HostDevice::record(event, stream);
}

bool StandinDevice::done(Event event) {
  bool is_done = HostDevice::done(event);
  std::lock_guard lock(world_.mutex());
  if (!is_done)
    world_.idle(driver_);
  else if (known_.try_emplace(event, true).second)
    world_.activity();
  return is_done;
}

void let_devices_run(NcclWorld& world, std::size_t d) {
  std::vector<StandinDevice*> devices;
  {
    std::lock_guard lock(world.mutex());
    NcclWorld::Driver& driver = world.driver(d);
    if (std::exchange(driver.pumping, true)) return;
    devices = driver.devices;
  }
  try {
    while (std::count_if(devices.begin(), devices.end(),
                         [](StandinDevice* device) { return device->progress(); }) > 0) {
    }
  } catch (...) {
    std::lock_guard lock(world.mutex());
    world.driver(d).pumping = false;
    throw;
  }
  std::lock_guard lock(world.mutex());
  world.driver(d).pumping = false;
}

}  // namespace reshard::test
